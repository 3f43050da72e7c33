"""The server's part: open a round, collect vectors, close it with one release, send that to all.

A `Server` counts every agent that has not sent a valid vector as zero, draws who is in the sum
itself and in secret, and commits the release to its ledger before anyone can read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.errors import (
    InvalidInput,
    ProtocolError,
    RejectedVector,
    SimulationOnly,
    WrongRound,
)
from sottovoce.federation.aggregate import aggregate, planned_event, summed
from sottovoce.federation.messages import Broadcast, Message, check_turn
from sottovoce.federation.study import FederatedStudy, check_agent, plain
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.budget import Budget
from sottovoce.privacy.events import LARGEST, Event
from sottovoce.privacy.ledger import Ledger
from sottovoce.privacy.noise import Seeded, Source, SystemEntropy
from sottovoce.privacy.notes import SPEAKERS
from sottovoce.privacy.release import (
    Release,
)

_BLOCK = 2048  # vectors copied at a time: they stay in the processor's cache
_STUDY, _ROUND, _AGENT, _VECTOR = map(attrgetter, ("study", "round", "agent", "vector"))


class Server:
    """One federation's server.

    A real one needs a ledger on disk and a budget, and takes no seeded randomness. For
    simulation there is `Server.simulation(study, seed)`.

    Args:
        study: the federation's public constants.
        ledger: the file of its ledger; opened and verified if it is there.
        budget: what may be spent, checked before a round opens.
        source: where noise comes from; the operating system, unless said.

    Example:
        >>> study = FederatedStudy(Space([Float("x", 0.0, 1.0)]), DP_FTS_DE, agents=4, rounds=2)
        >>> server = Server.simulation(study, seed=0)
        >>> server.open_round()
        0
        >>> server.close_round().vectors.shape  # nobody has sent anything: pure noise
        (2, 50)
    """

    def __init__(
        self,
        study: FederatedStudy,
        ledger: str | Path,
        budget: Budget,
        source: Source | None = None,
    ) -> None:
        _check_served(study)
        source = SystemEntropy() if source is None else source
        if source.simulation:
            raise SimulationOnly(
                f"a server that is not a simulation takes no seeded randomness, got {source.label}"
            )
        constants = {**study.to_dict(), **_granted(budget)}
        self._start(study, source, budget, Ledger(ledger, constants))

    @classmethod
    def simulation(
        cls,
        study: FederatedStudy,
        seed: int,
        ledger: str | Path | None = None,
        budget: Budget | None = None,
    ) -> Server:
        """A server whose noise can be repeated, hence protects nobody."""
        _check_served(study)
        server = cls.__new__(cls)
        constants = {**study.to_dict(), **_granted(budget), "simulation": True}
        server._start(study, Seeded(seed), budget, Ledger(ledger, constants))
        return server

    def _start(
        self, study: FederatedStudy, source: Source, budget: Budget | None, ledger: Ledger
    ) -> None:
        self.study = study
        self.budget = budget
        self._source = source
        self._ledger = ledger
        self._vectors = np.zeros((study.agents, study.method.features))  # zero: of the absent
        self._sent = np.zeros(study.agents, dtype=np.bool_)  # who has
        self._open: int | None = None

    def _forget(self) -> None:
        """What was sent is gone: all agents are absent."""
        self._vectors.fill(0.0)
        self._sent.fill(False)

    @property
    def events(self) -> list[Event]:
        """What has been released so far."""
        return self._ledger.events

    def spent(self, delta: float, accountant: str = "pld") -> float:
        """ε(δ) of everything released so far."""
        return epsilon(self.events, delta, accountant)

    def next_round(self) -> int | None:
        """The round that `open_round` would open; None when the study is over."""
        done = self._ledger.entries
        first = done[-1].round + 1 if done else 0
        return next((r for r in self.study.release_rounds[len(done) :] if r >= first), None)

    def open_round(self) -> int:
        """Begin the next round that speaks and return its number.

        Refused, before anyone sends anything, when its release would break the budget.
        """
        if self._open is not None:
            raise ProtocolError(f"round {self._open} is still open")
        number = self.next_round()
        if number is None:
            raise ProtocolError(f"the study is over: all its {self.study.rounds} rounds are done")
        if self.budget is not None:
            self.budget.allow(self.events, planned_event(self.study, self._source.label))
        self._open = number
        return number

    def submit(self, message: Message) -> None:
        """Take an agent's vector. A refused one changes nothing: its sender stays absent."""
        self.study.check_same(message.study)
        check_agent(message.agent, self.study.agents)
        agent = int(message.agent)  # True is 1 to Python, but all rows to NumPy
        check_turn(agent, message.round, self._open, (agent,) if self._sent[agent] else ())
        self._vectors[agent] = _accepted(message.vector, self.study.method.features)
        self._sent[agent] = True

    def submit_all(self, messages: Sequence[Message]) -> dict[int, ProtocolError]:
        """Take many vectors, each as `submit` would; errors of those refused, by position.

        For messages without fault many times as fast as one call each.
        """
        batch = list(messages)
        if self._take_whole(batch):
            return {}
        errors = {}
        for position, message in enumerate(batch):
            try:
                self.submit(message)
            except ProtocolError as error:
                errors[position] = error
        return errors

    def _take_whole(self, batch: list[Message]) -> bool:
        """Take all at once if none of them would be refused; else none is taken."""
        studies, rounds = set(map(_STUDY, batch)), set(map(_ROUND, batch))
        if studies != {self.study.fingerprint} or rounds != {self._open}:
            return False
        found = _sorted(list(map(_AGENT, batch)), list(map(_VECTOR, batch)), self.study)
        if found is None or np.any(self._sent[found[0]]):
            return False
        agents, vectors = found
        everybody = len(agents) == self.study.agents  # so nobody has sent before
        rows = self._vectors if everybody else np.empty((len(agents), self._vectors.shape[1]))
        if not _stacked(vectors, rows):
            if everybody:
                self._forget()
            return False
        if not everybody:
            self._vectors[agents] = rows
        self._sent[agents] = True
        return True

    def close_round(self) -> Broadcast:
        """Release the round: coins, clip, sum, noise, ledger, and only then the broadcast."""
        if self._open is None:
            raise ProtocolError("no round is open")
        if self._ledger.find(self._open) is None:
            published = aggregate(self.study, self._open, self._vectors, self._source)
            return self._publish(published)
        return self._publish(None)

    def _publish(self, published: Release | None, answers: bytes | None = None) -> Broadcast:
        """Commit what is to be published of the open round; None: it has been."""
        if self._open is None:
            raise ProtocolError("no round is open")
        if published is not None:
            self._ledger.append(self._open, published, answers)
        else:  # committed in an earlier call that could not write the head
            self._ledger.write_head()
        self._forget()
        number, self._open = self._open, None
        return self.broadcast(number)

    def noted(self, round_number: int, kind: str) -> bytes | None:
        """What the ledger notes of a round: who spoke, or what gave its release."""
        return self._ledger.noted(round_number, kind)

    def settle(self, speakers: bytes) -> None:
        """Note for good who spoke in the open round, before anybody is asked to sum."""
        if self._open is None:
            raise ProtocolError("no round is open")
        self._ledger.note(self._open, SPEAKERS, speakers)

    def close_sum(self, total: IntArray, answers: bytes) -> Broadcast:
        """Release the open round from the sum (P·M,) that the members' answers gave."""
        if self._open is None:
            raise ProtocolError("no round is open")
        if self._ledger.find(self._open) is not None:
            return self._publish(None)
        return self._publish(summed(self.study, self._open, total, self._source.label), answers)

    def broadcast(self, round_number: int) -> Broadcast:
        """A closed round as it was committed: the same bytes, however often it is asked for.

        For a cumulative shared model all rounds up to it, so that whoever missed one has it too.
        """
        entry = self._ledger.find(round_number)
        if entry is None:
            raise WrongRound(f"round {round_number} has not been released")
        vectors = entry.release.vectors
        if self.study.method.shared.cumulative:
            before = [e.release.vectors for e in self._ledger.entries if e.round <= entry.round]
            vectors = np.concatenate(before)
        return Broadcast(self.study.fingerprint, entry.round, vectors, entry.digest)

    def last_broadcast(self) -> Broadcast | None:
        """The newest closed round as it was committed; None before the first."""
        done = self._ledger.entries
        return self.broadcast(done[-1].round) if done else None

    def digest(self, round_number: int) -> str | None:
        """The ledger's digest of a round; None if it does not hold it."""
        entry = self._ledger.find(round_number)
        return None if entry is None else entry.digest

    @property
    def chain(self) -> tuple[str, ...]:
        """The ledger's digests, the study's own first: what all later ones must extend."""
        return tuple(self._ledger.digests)

    def close(self) -> None:
        """Let go of the ledger."""
        self._ledger.close()


def _granted(budget: Budget | None) -> dict[str, Any]:
    """What the ledger is to remember of a budget, so that nobody reopens it with a larger one."""
    return {} if budget is None else {"budget": plain(asdict(budget))}


def _check_served(study: FederatedStudy) -> None:
    if not study.method.shared.exchanges:
        raise InvalidInput(f"method {study.method.name!r} has no server: its agents go alone")


def _accepted(vector: object, features: int) -> FloatArray:
    """The vector as doubles, or RejectedVector saying what must hold."""
    if not isinstance(vector, np.ndarray) or vector.dtype.kind != "f":
        kind = getattr(vector, "dtype", type(vector).__name__)
        raise RejectedVector(f"a vector must be an array of real numbers, got {kind}")
    if vector.shape != (features,):
        raise RejectedVector(f"a vector must have shape ({features},), got {vector.shape}")
    values = vector.astype(np.float64)
    if not np.all(np.isfinite(values)):
        raise RejectedVector("a vector must be finite, got NaN or infinity")
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest > LARGEST:
        raise RejectedVector(f"entries must not exceed {LARGEST:g}, got {largest:.3g}")
    return values


def _sorted(
    agents: list[int], vectors: list[FloatArray], study: FederatedStudy
) -> tuple[IntArray, list[FloatArray]] | None:
    """Agents in their order, with their vectors; None unless all are different, and the study's."""
    if {*map(type, agents)} != {int}:
        return None
    try:
        order = np.fromiter(agents, np.int64, len(agents))
    except OverflowError:
        return None
    if np.any(order[1:] <= order[:-1]):
        places = np.argsort(order)
        order, vectors = order[places], [vectors[place] for place in places.tolist()]
    known = order[0] >= 0 and order[-1] < study.agents
    return (order, vectors) if known and np.all(order[1:] > order[:-1]) else None


def _stacked(vectors: list[FloatArray], rows: FloatArray) -> bool:
    """Write vectors to the rows of an array; whether `_accepted` takes each, and as it is."""
    if {*map(type, vectors)} != {np.ndarray}:
        return False
    try:
        if {*map(len, vectors)} != {rows.shape[1]}:
            return False
        beside = np.empty(_BLOCK * rows.shape[1])  # small pieces go to what is near, then as one
        for start in range(0, len(vectors), _BLOCK):
            block = rows[start : start + _BLOCK]
            flat = beside[: block.size]
            np.concatenate(vectors[start : start + _BLOCK], out=flat, casting="no")
            block[:] = flat.reshape(block.shape)
            with np.errstate(over="ignore", invalid="ignore"):
                # the square of an entry beyond LARGEST alone is more, and NaN is below nothing
                if not flat @ flat < LARGEST**2 / 2:
                    return False
    except (TypeError, ValueError):  # another dtype, another number of axes
        return False
    return True
