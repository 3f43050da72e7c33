"""What must hold in a federation whatever happened to it; a `Broken` says what does not."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.endtoend.federation import Federation, Storage

from sottovoce.federation.messages import Broadcast
from sottovoce.flower.studyfile import Step
from sottovoce.flower.sumwire import answers_in
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.ledger import LedgerView
from sottovoce.privacy.notes import ANSWERS, SPEAKERS
from sottovoce.secure_sum.protocol import set_digest

DELTA = 1e-5


class Broken(Exception):
    """Something that must always hold did not."""


def require(condition: bool, what: str) -> None:
    """Raise unless it holds."""
    if not condition:
        raise Broken(what)


def check_kept(before: LedgerView | None, now: LedgerView) -> None:
    """Nothing that was in the ledger is lost, or has changed."""
    old = [] if before is None else [(e.round, e.digest) for e in before.entries]
    new = [(e.round, e.digest) for e in now.entries]
    require(new[: len(old)] == old, "the ledger lost or changed a round")


def check_all(fed: Federation, kills: Counter[str], *, rounds: int | None = None) -> float:
    """Everything that must hold at the end; gives the ε that was spent.

    kills: how often processes of a site were killed; rounds: how many must be released.
    """
    view = fed.ledger
    speaking = [s.round for s in fed.stage.study.steps[:-1]]
    wanted = speaking if rounds is None else speaking[:rounds]
    got = [entry.round for entry in view.entries]
    require(got == wanted, f"rounds {wanted} were to be released, the ledger has {got}")
    spent = check_spent(fed, view)
    sent = {entry.round: broadcast(fed, view, k) for k, entry in enumerate(view.entries)}
    for name in fed.stage.sites:
        stored = fed.storage(name)
        require(stored is not None, f"{name} stored nothing")
        if stored is not None:
            try:
                check_heard(stored, sent)
                check_trials(fed.stage.study.steps, fed.noted(name), stored, kills[name])
            except Broken as broken:
                raise Broken(f"{name}: {broken}") from broken
    check_sums(fed)
    again = [x for x in fed.journal if "with other content" in str(x.get("reason"))]
    require(not again, f"a site was sent other content for a round: {again}")
    return spent


def check_sums(fed: Federation) -> None:
    """Every member answered for one set of a round only: the one that the ledger notes."""
    if fed.stage.study.study.sums is None:
        return
    terms, notes = fed.stage.study.terms, fed.notes
    for number in {number for number, _ in notes}:
        named = set(json.loads(notes[number, SPEAKERS])["speakers"])
        speakers, answers = answers_in(notes[number, ANSWERS])
        require(set(speakers) == named, f"round {number} has another set than was settled")
        shares = {answer.member: answer.share for answer in answers}
        for member, name in enumerate(fed.stage.parties):
            stored = fed.storage(name)
            said = None if stored is None else stored.attrs.get(f"answered-{number}")
            if said is None:
                require(member not in shares, f"{name} answered round {number} and forgot it")
                continue
            own = said[0] == set_digest(terms, number, speakers)
            require(own, f"{name} answered for another set of round {number}")
            share = base64.b64decode(said[1])
            require(shares.get(member, share) == share, f"{name} has two shares of round {number}")


def check_spent(fed: Federation, view: LedgerView) -> float:
    """ε is that of the rounds released, each once, and within what was granted."""
    events = [entry.release.event for entry in view.entries]
    spent = epsilon(events, DELTA, "pld") if events else 0.0
    each = epsilon([events[0]] * len(events), DELTA, "pld") if events else 0.0
    require(spent <= fed.plan.epsilon, f"ε = {spent} exceeds the budget {fed.plan.epsilon}")
    require(spent == each, f"ε = {spent} is not that of {len(events)} equal rounds, {each}")
    return spent


def broadcast(fed: Federation, view: LedgerView, number: int) -> bytes:
    """What the coordinator sends of an entry of the ledger; who learns gets all up to it."""
    study, entry = fed.stage.study.study, view.entries[number]
    first = 0 if study.method.shared.cumulative else number
    vectors = np.concatenate([e.release.vectors for e in view.entries[first : number + 1]])
    return Broadcast(study.fingerprint, entry.round, vectors, entry.digest).to_bytes()


def check_heard(stored: Storage, sent: dict[int, bytes]) -> None:
    """Every broadcast that a site has stored is the ledger's, byte for byte."""
    for key, value in stored.attrs.items():
        if key.startswith("broadcast-"):
            number = int(key.removeprefix("broadcast-"))
            known = hashlib.sha256(sent.get(number, b"")).hexdigest()
            require(value == known, f"it was sent a round {number} that is not the ledger's")
    if "broadcast" in stored.attrs:
        last = base64.b64decode(stored.attrs["broadcast"])
        require(last in sent.values(), "its last broadcast is not the ledger's")


def check_trials(
    steps: Sequence[Step], lines: Sequence[dict[str, Any]], stored: Storage, kills: int
) -> None:
    """What the objective finished is stored once, and nothing ran twice that was not killed."""
    began = Counter(line["trial"] for line in lines if line["event"] == "began")
    ended = {line["trial"]: line["value"] for line in lines if line["event"] == "ended"}
    require(all(n == 1 for n in began.values()), "the objective ran a trial twice")
    require(set(ended) <= set(range(len(stored.trials))), "a trial that ended is not stored")
    for number, (state, noted, value) in enumerate(stored.trials):
        if number in ended and not noted.get("lost"):
            kept = state == "COMPLETE" and value == ended[number]
            require(kept, f"trial {number} ended, but is stored as {state}, {value}")
        if state == "COMPLETE":
            require(number in ended, f"trial {number} is stored as complete, but never ended")
    lost = sum(bool(noted.get("lost")) for _, noted, _ in stored.trials)
    require(lost <= kills, f"{lost} trials were lost in {kills} kills")
    due = {step.round: step.trials for step in steps}
    done = Counter(noted["round"] for state, noted, _ in stored.trials if state == "COMPLETE")
    require(done.total() <= sum(due.values()), f"{done.total()} trials for {sum(due.values())}")
    for number, count in done.items():
        # one that was away at first makes up for the initial trials when it comes
        most = due[number] + (due[0] - done[0] if number > 0 else 0)
        require(count <= most, f"{count} trials for {most} slots of round {number}")
