"""One party of a federation: it tries points, learns, says one vector a round, hears the rest.

What it says is one vector over the shared features, made once for each round: a draw from its
posterior over their weights, or what else its method says. Its history is not sent, but whoever
sees its vectors before the noise can work it out.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

import numpy as np

from sottovoce.errors import (
    InvalidInput,
    ProtocolError,
    StorageError,
    StudyMismatch,
    WrongRound,
    check,
)
from sottovoce.federation import policy
from sottovoce.federation.batch import Fitted
from sottovoce.federation.draws import OwnDraws
from sottovoce.federation.messages import Broadcast, Known, Message
from sottovoce.federation.searcher import Searcher
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate, kernel_from_list, kernel_to_list
from sottovoce.files import private, write_text


class Agent(Searcher):
    """One party: it asks what to try, is told how that went, sends vectors, hears broadcasts.

    Args:
        study: the federation's public constants.
        index: which agent it is, 0 to N − 1.
        direction: "maximize" or "minimize".
        surrogate: how it models its objective.
        seed: only makes a run repeatable; without one the operating system provides it.
        draws: in place of a seed, where its random draws come from.

    Example:
        >>> study = FederatedStudy(Space([Float("x", 0.0, 1.0)]), TS, agents=1, rounds=5)
        >>> agent = Agent(study, 0, direction="minimize", seed=0)
        >>> for _ in range(15):
        ...     params = agent.ask()
        ...     agent.tell(params, (params["x"] - 0.3) ** 2)
        >>> round(agent.best[0]["x"], 1)
        0.3
    """

    _said: Message | None = None
    _broadcast: Broadcast | None = None  # the last

    @property
    def round(self) -> int:
        """The round it speaks in next: the one after the last broadcast it received."""
        return 0 if self._broadcast is None else self._broadcast.round + 1

    def message(self, round_number: int | None = None) -> Message:
        """Its vector for a round (its next, unless another later one is named).

        Asked twice for the same round, it says the same again.
        """
        method = self.study.method
        if not method.shared.exchanges:
            raise ProtocolError(f"method {method.name!r} sends nothing: its agents go alone")
        if self.starting:
            raise ProtocolError(
                f"agent {self.index} speaks after its {method.initial} initial trials, "
                f"it has been told of {self.trials}"
            )
        earliest = self.round if self._said is None else max(self.round, self._said.round)
        number = earliest if round_number is None else round_number
        if not earliest <= number < self.study.rounds:
            raise WrongRound(
                f"agent {self.index} is at round {earliest}, asked for {number}; "
                f"the last is {self.study.rounds - 1}"
            )
        if self._said is None or self._said.round != number:
            self._said = Message(
                self.study.fingerprint, number, self.index, policy.message(self._batch, number)[0]
            )
        return self._said

    def receive(self, broadcast: Broadcast) -> None:
        """Take what the server sent. The same broadcast twice does no harm."""
        self.study.check_same(broadcast.study)
        if not 0 <= broadcast.round < self.study.rounds:
            raise WrongRound(
                f"rounds are numbered 0 to {self.study.rounds - 1}, got {broadcast.round}"
            )
        if broadcast.round < self.round - 1:
            raise WrongRound(f"agent {self.index} is at round {self.round}, got {broadcast.round}")
        method = self.study.method
        count = method.shared.broadcast_rows(self.study, broadcast.round)
        wanted = (count, method.features)
        if broadcast.vectors.shape != wanted or not np.all(np.isfinite(broadcast.vectors)):
            raise ProtocolError(
                f"a broadcast must be finite and of shape {wanted}, got {broadcast.vectors.shape}"
            )
        last = self._broadcast
        known = Known({} if last is None else {last.round: last.digest}, last=last)
        number = known.contradicted(self.study, broadcast)
        if number is not None:
            raise ProtocolError(f"round {number} was broadcast before, with other content")
        self._broadcast = broadcast
        self._batch.shared.hear(broadcast.vectors)

    def _generator(self) -> np.random.Generator:
        """Its generator, as far as it can be saved."""
        rule = "only an agent with a generator of its own can be saved"
        own = self._batch.draw
        check(isinstance(own, OwnDraws), rule, draws=type(own))
        return cast(OwnDraws, own).generator

    def save(self, path: str | Path) -> None:
        """Write everything it knows to one file, whole or not at all. It holds the history."""
        content = {
            "schema": 2,
            "study": self.study.fingerprint,
            "index": self.index,
            "direction": self.direction,
            "surrogate": self.surrogate.to_dict(),
            "initial": self._initial_points(),
            "earlier": self._batch.trials.earlier,
            "points": self._points().tolist(),
            "values": [None if math.isnan(value) else value for value in self._values()],
            "random": self._generator().bit_generator.state,
            "own": _to_list(self._batch.own),
            "joint": _to_list(self._batch.joint),
            "said": None if self._said is None else self._said.to_bytes().hex(),
            "broadcast": None if self._broadcast is None else self._broadcast.to_bytes().hex(),
        }
        with private():
            write_text(Path(path), json.dumps(content))

    @classmethod
    def load(
        cls, path: str | Path, study: FederatedStudy, surrogate: Surrogate | None = None
    ) -> Agent:
        """The agent that `save` wrote, for the same study; it goes on as if never stopped."""
        try:
            content = json.loads(Path(path).read_text())
            if content["schema"] != 2:
                raise StorageError(f"{path} is of schema {content['schema']}, this is schema 2")
            if content["study"] != study.fingerprint:
                raise StudyMismatch(f"{path} belongs to another study")
            agent = cls(
                study, content["index"], direction=content["direction"], surrogate=surrogate
            )
            agent._restore(content)
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error}") from error
        except StudyMismatch:
            raise
        except (ValueError, KeyError, TypeError, ProtocolError) as error:
            raise StorageError(f"{path} is not a saved agent: {error!r}") from error
        return agent

    def _restore(self, content: dict[str, Any]) -> None:
        """Take over what `save` wrote; raises on anything that does not fit."""
        if content["surrogate"] != self.surrogate.to_dict():
            raise InvalidInput(f"it was saved with another surrogate, {content['surrogate']}")
        earlier = content.get("earlier", 0)
        told = zip(content["points"], content["values"], strict=True)
        for number, (point, value) in enumerate(told):
            params = self.study.space.decode(np.asarray(point, dtype=float))
            (self.add_earlier if number < earlier else self.tell)(params, value)
        self._plan(content["initial"])
        self._generator().bit_generator.state = content["random"]
        if content["broadcast"] is not None:
            self.receive(Broadcast.from_bytes(bytes.fromhex(content["broadcast"])))
        self._batch.own = _from_list(content["own"])
        self._batch.joint = _from_list(content["joint"])
        if content["said"] is not None:
            said = Message.from_bytes(bytes.fromhex(content["said"]))
            if (said.study, said.agent) != (self.study.fingerprint, self.index):
                raise StudyMismatch("what it said was said in another study, or by another agent")
            self._said = said


def _to_list(fitted: Fitted) -> list[Any]:
    kernel = None if fitted.kernel is None else kernel_to_list(fitted.kernel)
    return [kernel, fitted.trials]


def _from_list(content: list[Any]) -> Fitted:
    kernel, trials = content
    return Fitted(None if kernel is None else kernel_from_list(kernel), int(trials))
