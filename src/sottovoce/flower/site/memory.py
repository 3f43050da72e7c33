"""What a site remembers: an Optuna study on its own disk, and nothing besides.

Study attributes: study (fingerprint), site (agent number), heard (round of the last broadcast, and
the ledger's chain of digests up to it), broadcast (that itself), broadcast-R (digest of the one of
round R), contradiction (that there were two of a round, in words), said-R (what it said in R),
sealed-R (the same as packets, with its noise), answered-R (as a member: for which speakers, and
with what), left (how many trials there were when it left, all failed: none of them is the study's
any more), imported (how many trials are from an earlier study).
Trial attributes: asked (all parameters, before any is suggested), attempt, round (of the call it
was run for; without it the trial never began), and of a failed one: lost (its process died),
mistake (of the objective's declarations; not a trial of the study), error. One of an earlier study
has asked and imported (its number there), and no round: it is known, but not a trial of this study.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import optuna
from optuna.samplers import BaseSampler
from optuna.storages import get_storage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from sottovoce.errors import ProtocolError, StorageError, StudyMismatch, check
from sottovoce.federation.messages import Broadcast, Known, Message
from sottovoce.federation.searcher import Direction
from sottovoce.federation.study import FederatedStudy
from sottovoce.files import locked, write_whole
from sottovoce.flower.site.storage import NAME as NAME
from sottovoce.flower.site.storage import STORAGES as STORAGES
from sottovoce.flower.site.storage import check_only, close, create, opened

ATTEMPTS = 3  # of a trial whose process dies
_ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


Point = tuple[dict[str, Any], float]  # parameters, and the value there


class Told(NamedTuple):
    """A trial that counts."""

    params: dict[str, Any]
    value: float | None  # None: it failed
    round: int


class Lost(NamedTuple):
    """A trial whose process died."""

    params: dict[str, Any]
    attempts: int


class Answered(NamedTuple):
    """A member's answer of one round, and the set of speakers it was for."""

    speakers: str  # their digest
    share: bytes
    signature: bytes


class Heard(NamedTuple):
    """The last broadcast that was heard: its round, and the ledger's newest digest in it."""

    round: int = -1  # none
    head: str = ""


@contextmanager
def lock(folder: Path, patience: float) -> Iterator[bool]:
    """Hold a site's folder; False when somebody else has held it for so many seconds."""
    with ExitStack() as kept:
        with _stored():
            folder.mkdir(parents=True, exist_ok=True)
            held = kept.enter_context(locked(folder / "lock", patience))
        yield held


@contextmanager
def _stored() -> Iterator[None]:
    """Errors of the storage as one of ours, without what was to be stored."""
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.OptunaError, OSError, KeyError) as error:
        raise StorageError(f"the site's storage failed ({type(error).__name__})") from error


class Memory:
    """The memory of one site, open for the time of one call. The folder must be locked."""

    def __init__(
        self, folder: Path, storage: str, study: FederatedStudy, direction: Direction
    ) -> None:
        check(storage in STORAGES, f"storage must be one of {tuple(STORAGES)}", storage=storage)
        self._expected, self._direction = study, StudyDirection[direction.upper()]
        path = folder / STORAGES[storage]
        with _stored():
            check_only(path)
            if not path.exists():
                write_whole(path, lambda part: create(part, storage, self._direction))
            self._opened = opened(path, storage)
            try:
                self._storage = get_storage(self._opened)  # with the cache of its study
                self._study = optuna.load_study(study_name=NAME, storage=self._storage)
                self._id = self._storage.get_study_id_from_name(NAME)
            except BaseException:
                close(self._opened)
                raise

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        close(self._opened)

    def release(self) -> None:
        """Give up what the storage holds for this thread, which ends."""
        with _stored():
            self._storage.remove_session()

    def claim(self, agent: int) -> None:
        """Be this agent of this study; refused if it has ever been another."""
        mine = self._remembered("study", self._expected.fingerprint)
        with _stored():
            turned = self._study.direction is not self._direction
        if turned:
            raise StudyMismatch("this site's folder belongs to a study of the other direction")
        if mine != self._expected.fingerprint:
            raise StudyMismatch(
                f"this site's folder belongs to study {mine[:12]}, "
                f"study.toml is now {self._expected.fingerprint[:12]}"
            )
        number = self._remembered("site", agent)
        if number != agent:
            raise ProtocolError(f"this site has always been agent {number}, it is called {agent}")

    def _remembered(self, name: str, value: Any) -> Any:
        """What was noted under the name; at first, the value."""
        with _stored():
            return self._note_once(name, value)

    def _note_once(self, name: str, value: Any) -> Any:
        noted = self._study.user_attrs
        if name not in noted:
            self._study.set_user_attr(name, value)
        return noted.get(name, value)

    def compare(self, broadcast: Broadcast | None, chain: Sequence[str]) -> None:
        """Refuse a second content for a round that was broadcast before, and all calls after."""
        with _stored():
            noted = self._study.user_attrs
        if "contradiction" not in noted and broadcast is not None:
            digests = {broadcast.round: noted.get(f"broadcast-{broadcast.round}", broadcast.digest)}
            known = Known(digests, noted["heard"]["chain"] if "heard" in noted else ())
            number = known.contradicted(self._expected, broadcast, chain)
            if number is not None:
                text = f"round {number} was broadcast before, with other content: was the "
                text += "coordinator's ledger lost, or an old one restored?"
                noted["contradiction"] = self._remembered("contradiction", text)
        if "contradiction" in noted:
            raise ProtocolError(
                f"{noted['contradiction']} This site takes no further part in the study"
            )

    def hear(self, broadcast: Broadcast, chain: Sequence[str]) -> None:
        """Remember a broadcast as the last one; first of all, that it was heard."""
        with _stored():
            heard = {"round": broadcast.round, "chain": list(chain)}
            self._study.set_user_attr("heard", heard)
            self._note_once(f"broadcast-{broadcast.round}", broadcast.digest)
            self._study.set_user_attr("broadcast", _text(broadcast.to_bytes()))

    @property
    def heard(self) -> Heard:
        """How far it has heard."""
        with _stored():
            heard = self._study.user_attrs.get("heard")
        return Heard() if heard is None else Heard(heard["round"], heard["chain"][-1])

    @property
    def broadcast(self) -> Broadcast | None:
        """The last broadcast."""
        with _stored():
            text = self._study.user_attrs.get("broadcast")
        return None if text is None else Broadcast.from_bytes(base64.b64decode(text))

    def say(self, round_number: int, message: Message) -> None:
        """Remember what is about to be said."""
        with _stored():
            self._study.set_user_attr(f"said-{round_number}", _text(message.to_bytes()))

    def spoke(self, round_number: int) -> bool:
        """Whether it is settled what is said in a round."""
        with _stored():
            return f"said-{round_number}" in self._study.user_attrs

    def said(self, round_number: int) -> Message:
        """What was said in a round."""
        with _stored():
            text = self._study.user_attrs[f"said-{round_number}"]
        return Message.from_bytes(base64.b64decode(text))

    def seal(self, round_number: int, packets: Sequence[bytes]) -> None:
        """Remember the packets that are about to be sent: with other noise they never are."""
        with _stored():
            texts = [_text(packet) for packet in packets]
            self._study.set_user_attr(f"sealed-{round_number}", texts)

    def sealed(self, round_number: int) -> tuple[bytes, ...] | None:
        """The packets of a round, once there are any."""
        with _stored():
            texts = self._study.user_attrs.get(f"sealed-{round_number}")
        return None if texts is None else tuple(map(base64.b64decode, texts))

    def answer(self, round_number: int, speakers: str, share: bytes, signature: bytes) -> Answered:
        """What it answered as a member in a round: for good, and before it is sent."""
        texts = [speakers, _text(share), _text(signature)]
        kept = self._remembered(f"answered-{round_number}", texts)
        return Answered(kept[0], base64.b64decode(kept[1]), base64.b64decode(kept[2]))

    def answered(self, round_number: int) -> Answered | None:
        """The same, if it did."""
        with _stored():
            kept = self._study.user_attrs.get(f"answered-{round_number}")
        if kept is None:
            return None
        return Answered(kept[0], base64.b64decode(kept[1]), base64.b64decode(kept[2]))

    def bury(self) -> None:
        """Give up the trials that were under way when their process died."""
        with _stored():
            for frozen in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                self._storage.set_trial_user_attr(frozen._trial_id, "lost", True)
                self._study.tell(frozen.number, state=TrialState.FAIL)

    @property
    def told(self) -> list[Told]:
        """The trials that count, in order."""
        with _stored():
            trials = self._study.get_trials(deepcopy=False, states=_ENDED)
            left = self._study.user_attrs.get("left", 0)
        return [_told(trial) for trial in trials if trial.number >= left and counts(trial)]

    @property
    def earlier(self) -> list[Point]:
        """What is known from an earlier study."""
        with _stored():
            trials = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        known = [each for each in trials if "imported" in each.user_attrs]
        return [(each.user_attrs["asked"], cast(float, each.value)) for each in known]

    @property
    def last_error(self) -> str:
        """How the last trial that failed did so, in one line."""
        with _stored():
            trials = self._study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
        noted = trials[-1].user_attrs if trials else {"error": "all were pruned"}
        lines = str(noted.get("error", "its process died")).splitlines()
        return lines[0] if lines else "one without a word"

    def leave(self) -> None:
        """Begin anew when it is called next: no trial so far counts."""
        with _stored():
            self._study.set_user_attr("left", len(self._study.get_trials(deepcopy=False)))

    def lost(self, round_number: int) -> list[Lost]:
        """The trials of this round whose process died, as far as they may be attempted again."""
        with _stored():
            trials = self._study.get_trials(deepcopy=False)
            left = self._study.user_attrs.get("left", 0)
        waiting: list[Lost] = []
        for trial in trials[left:]:
            noted = trial.user_attrs
            if noted.get("round") != round_number:
                continue
            this = Lost(noted["asked"], noted["attempt"])
            earlier = this._replace(attempts=this.attempts - 1)
            if earlier in waiting:  # it was attempted again, and this is how
                waiting.remove(earlier)
            if "lost" in noted and not counts(trial):
                waiting.append(this)
        return waiting

    def begin(self, sampler: BaseSampler, noted: Mapping[str, Any]) -> Trial:
        """A new trial, with what is to be known of it if its process dies: all in one write."""
        with _stored():
            self._study.sampler = sampler
            running = optuna.trial.create_trial(state=TrialState.RUNNING, user_attrs=dict(noted))
            return Trial(self._study, self._storage.create_new_trial(self._id, running))

    def end(self, trial: Trial, value: float | None, state: TrialState, **why: str) -> Told:
        """Record how a trial ended, and why."""
        with _stored():
            for name, reason in why.items():
                trial.set_user_attr(name, reason)
            self._study.tell(trial, value, state)
            return Told(trial.user_attrs["asked"], value, trial.user_attrs["round"])


def counts(trial: FrozenTrial) -> bool:
    """Whether an ended trial is one of the study's."""
    noted = trial.user_attrs
    if "round" not in noted or "mistake" in noted:
        return False
    return "lost" not in noted or noted["attempt"] >= ATTEMPTS


def _told(trial: FrozenTrial) -> Told:
    value = trial.value if trial.state is TrialState.COMPLETE else None
    return Told(trial.user_attrs["asked"], value, trial.user_attrs["round"])


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
