"""A coordinator that nobody trusts: what it releases, what it survives, what it never gets."""

from __future__ import annotations

import base64
import hashlib
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.unit.flower.secured import (
    AGENTS,
    PLENTY,
    Secured,
    identities,
    quadratic,
    study_file,
)

from sottovoce.errors import (
    LedgerError,
    ProtocolError,
    StorageError,
    SumRefused,
)
from sottovoce.federation.server import Server
from sottovoce.flower.coordinator.coordinator import Coordinator
from sottovoce.flower.coordinator.journal import read_journal
from sottovoce.flower.coordinator.secure import SURPLUS, SecureCoordinator, SumExchange
from sottovoce.flower.site.memory import Memory, lock
from sottovoce.flower.site.site import Site
from sottovoce.flower.site.summing import Member, sealed_once
from sottovoce.flower.sites import Roster, simulated_identity
from sottovoce.flower.statement.promise import promise_of
from sottovoce.flower.sumwire import SumReply, answers_in
from sottovoce.privacy.accountant import epsilon
from sottovoce.privacy.ledger import read_ledger
from sottovoce.privacy.noise import SystemEntropy
from sottovoce.privacy.notes import ANSWERS
from sottovoce.privacy.release import limited_sum, sensitivity
from sottovoce.secure_sum import field, sharing
from sottovoce.secure_sum.grid import rounded, spoken
from sottovoce.secure_sum.keys import SEALED, SIGNATURE
from sottovoce.secure_sum.protocol import answered, opened, speech
from sottovoce.secure_sum.terms import SecureSum


@pytest.fixture
def all_parties(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


def stored(parties: Secured, agent: int) -> Memory:
    folder, file = parties.folder / str(agent), parties.file
    return Memory(folder, "journal", file.study, file.direction)


def shares_of(parties: Secured, agent: int, number: int) -> dict[int, np.ndarray]:
    """What a site sent to each member, opened with everybody's keys, which only a test has."""
    return shares_in(parties, str(agent), agent, number)


def shares_in(
    parties: Secured, place: str, agent: int = 0, number: int = 0
) -> dict[int, np.ndarray]:
    """The same of a site whose memory is in that folder."""
    file = parties.file
    with Memory(parties.folder / place, "journal", file.study, file.direction) as memory:
        packets = memory.sealed(number)
    assert packets is not None
    terms, shares = parties.file.terms, {}
    for member, packet in enumerate(packets):
        words = f"{terms.study}/{number}/{agent}/{member}".encode()
        opened_share = identities()[member].open(
            packet[SIGNATURE:], b"sottovoce/packet/v1/" + words
        )
        assert opened_share is not None
        row = field.from_bytes(opened_share, terms.grid.numbers)
        assert row is not None
        shares[member] = row
    return shares


def spoken_steps(parties: Secured, agent: int, number: int) -> np.ndarray:
    """What a site said, noise and all."""
    shares = shares_of(parties, agent, number)
    return field.decode(sharing.joined(shares, parties.file.terms.committee.threshold))


def forms(numbers: np.ndarray) -> Iterator[bytes]:
    """How numbers may lie about: each raw, in words and in hexadecimal; base64 of all of them."""
    for number in numbers:
        yield from (number.tobytes(), repr(number.item()).encode(), number.tobytes().hex().encode())
    yield base64.b64encode(numbers.tobytes())


def test_a_study_releases_exactly_the_sum_of_what_its_sites_said(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    study, mechanism = all_parties.file.study, all_parties.file.study.method.mechanism
    assert mechanism is not None
    for number in study.release_rounds:
        released = all_parties.release(coordinator)
        assert released.round == number
        steps = [spoken_steps(all_parties, n, number) for n in range(AGENTS)]
        weights = study.weights(number)
        step = sensitivity(weights, mechanism) / study.grid.limit
        assert np.array_equal(released.vectors[-1], np.sum(steps, axis=0).astype(float) * step)
        # a trusted server with the same noise would have released the same, to the grid
        vectors = []
        for n in range(AGENTS):
            with stored(all_parties, n) as memory:
                vectors.append(memory.said(number).vector)
        bare = [rounded(v, n, weights, mechanism, study.grid) for n, v in enumerate(vectors)]
        noise = sum(s - b for s, b in zip(steps, bare, strict=True)) * step
        trusted = limited_sum(np.array(vectors), weights, np.ones(AGENTS, bool), mechanism) + noise
        assert np.abs(trusted[0] - released.vectors[-1]).max() < 1.01 * AGENTS * step
    assert all_parties.release(coordinator) is None
    assert coordinator.next_step() is None
    events = read_ledger(all_parties.folder / "hub" / "ledger.db").entries
    spent = epsilon([entry.release.event for entry in events], 1e-5)
    assert spent == pytest.approx(epsilon({study.grid.event(""): 2}, 1e-5))
    coordinator.stop()


def held_by(folder: Path, *parts: object) -> bytes:
    """All bytes in a folder, and in what these hold in memory, as it is and in words."""
    found = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"\n".join([*found, *(form for part in parts for form in _in_memory(part, 6))])


def _in_memory(part: object, depth: int) -> Iterator[bytes]:
    if isinstance(part, bytes):
        yield part
    elif isinstance(part, np.ndarray):
        yield part.tobytes()
        yield repr(part.tolist()).encode()
    elif isinstance(part, dict):
        for key, value in part.items():
            yield repr(key).encode()
            yield from _in_memory(value, depth - 1) if depth else ()
    elif isinstance(part, list | tuple | set | frozenset):
        for each in part:
            yield from _in_memory(each, depth - 1) if depth else ()
    else:
        yield repr(part).encode()
        if depth and hasattr(part, "__dict__"):
            yield from _in_memory(vars(part), depth - 1)


def test_no_vector_noised_or_not_and_no_share_is_on_the_coordinators_side(
    all_parties: Secured,
) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator)
    second = coordinator.settle()
    assert second is not None
    held = held_by(all_parties.folder / "hub", coordinator, second)
    for n in range(AGENTS):
        with stored(all_parties, n) as memory:
            vector, packets = memory.said(0).vector, memory.sealed(0)
        assert packets is not None
        assert all(packet in held for packet in packets)  # the search does find what is there
        shares = shares_of(all_parties, n, 0)
        assert len(shares) == AGENTS
        for secret in (vector, spoken_steps(all_parties, n, 0), *shares.values()):
            assert not any(form in held for form in forms(secret))
    coordinator.stop()


def test_the_same_search_finds_every_vector_with_a_coordinator_that_is_trusted(
    tmp_path: Path,
) -> None:
    (tmp_path / "hub").mkdir()
    shared = study_file()
    file = replace(shared, study=replace(shared.study, sums=None), roster=None)
    server = Server(file.study, tmp_path / "hub" / "ledger.db", PLENTY)
    nodes = {900 + n: n for n in range(AGENTS)}
    coordinator = Coordinator(file, server, nodes, tmp_path / "hub" / "journal.jsonl")
    coordinator.open()
    for node, n in nodes.items():
        site = Site(file, quadratic, tmp_path / str(n), storage="journal")
        coordinator.take(node, site.answer(coordinator.call(node)).to_records())
    held = held_by(tmp_path / "hub", coordinator)
    for n in range(AGENTS):
        with Memory(tmp_path / str(n), "journal", file.study, file.direction) as memory:
            assert any(form in held for form in forms(memory.said(0).vector))
    coordinator.stop()


def test_absent_sites_and_members_are_borne_as_far_as_the_study_says(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    assert all_parties.release(coordinator, agents=range(4)).round == 0
    line = read_journal(all_parties.folder / "hub" / "journal.jsonl")[-1]
    assert (line["event"], line["spoke"], line["absent"], line["answered"]) == ("closed", 4, 1, 4)
    coordinator.stop()


def test_with_too_few_speakers_nothing_is_settled_spent_or_asked(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator, agents=range(3))
    with pytest.raises(ProtocolError, match="3 of 5 sites spoke in round 0, and at least 4 must"):
        coordinator.settle()
    assert coordinator.server.events == []
    coordinator.stop()
    again = all_parties.coordinator()  # nothing is lost: they say the same again
    assert all_parties.release(again).round == 0
    again.stop()


def test_with_too_few_answers_nothing_is_released_and_the_same_set_is_asked_again(
    all_parties: Secured,
) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator, agents=range(4))
    second = coordinator.settle()
    assert second is not None
    all_parties.add_up(second, agents=range(3))
    with pytest.raises(ProtocolError, match="3 of 5 members answered in round 0, and at least 4"):
        coordinator.close()
    assert coordinator.server.events == []
    coordinator.stop()

    again = all_parties.coordinator()
    again.open()
    assert again.waiting == set()  # nobody is asked to speak: who did is settled
    second = again.settle()
    assert second is not None
    assert second.call(900).speakers == (0, 1, 2, 3)
    all_parties.add_up(second)
    released = again.close()
    assert released is not None
    steps = [spoken_steps(all_parties, n, 0) for n in range(4)]
    terms = all_parties.file.terms
    noted = again.server.noted(0, ANSWERS)
    assert noted is not None
    speakers, answers = answers_in(noted)
    assert np.array_equal(opened(terms, 0, speakers, answers), sum(steps))
    again.stop()


@pytest.mark.parametrize("moment", ["spoke", "settled", "asked", "answered"])
def test_a_coordinator_killed_at_any_moment_goes_on_to_the_same_release(
    moment: str, all_parties: Secured
) -> None:
    first = all_parties.coordinator()
    first.open()
    all_parties.speak(first)
    packets = dict(first._spoken)
    if moment != "spoke":
        second = first.settle()
        assert second is not None
        if moment != "settled":
            all_parties.add_up(second, agents=range(2 if moment == "asked" else AGENTS))
    first.stop()  # as a kill leaves it: only what is on disk is left
    again = all_parties.coordinator()
    released = all_parties.release(again)
    assert again.next_step() is not None
    steps = [spoken_steps(all_parties, n, 0) for n in range(AGENTS)]
    for n in range(AGENTS):
        with stored(all_parties, n) as memory:
            assert memory.sealed(0) == packets[n]  # nobody has drawn other noise
    study, mechanism = all_parties.file.study, all_parties.file.study.method.mechanism
    assert mechanism is not None
    step = sensitivity(study.weights(0), mechanism) / study.grid.limit
    assert np.array_equal(released.vectors[-1], np.sum(steps, axis=0).astype(float) * step)
    assert not list((all_parties.folder / "hub").glob("packets-*"))
    again.stop()


def test_packets_that_are_lost_or_changed_after_they_were_settled_stop_the_study(
    all_parties: Secured,
) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator)
    coordinator.settle()
    coordinator.stop()
    path = all_parties.folder / "hub" / "packets-0.json"
    text = path.read_bytes()
    path.write_bytes(text.replace(b"a", b"b", 1))
    again = all_parties.coordinator()
    with pytest.raises(LedgerError, match="is not what the ledger notes of it"):
        again.open()
    again.stop()
    path.unlink()
    again = all_parties.coordinator()
    with pytest.raises(StorageError, match="put it back"):
        again.open()
    again.stop()
    path.write_bytes(text)
    again = all_parties.coordinator()
    assert all_parties.release(again).round == 0
    again.stop()


def test_a_bare_vector_or_a_strangers_packets_are_not_taken(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    said = all_parties.say(coordinator.call(900))
    bare = replace(said, answer="vector", packets=(), vector=np.zeros(16))
    coordinator.take(900, bare)
    coordinator.take(901, replace(said, agent=1))
    coordinator.take(902, replace(all_parties.say(coordinator.call(902)), packets=said.packets[:2]))
    reasons = [
        line.get("reason") for line in read_journal(all_parties.folder / "hub/journal.jsonl")
    ]
    assert "agent 0 sent a bare vector: it is not looked at" in reasons
    assert "agent 1 did not sign its packet to member 0" in reasons
    assert "5 packets must come, got 2" in reasons
    assert coordinator._spoken == {}
    coordinator.stop()


@pytest.mark.parametrize("size", [0, 64, 1 << 20])
def test_packets_of_another_size_are_not_taken_so_that_they_stop_nobody(
    size: int, all_parties: Secured
) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator, agents=range(4))
    said = all_parties.say(coordinator.call(904))
    terms, packets = all_parties.file.terms, list(said.packets)
    sealed, words = bytes(size), f"{terms.study}/0/4/3".encode()
    content = b"sottovoce/packet/v1/" + words + b"/" + hashlib.sha256(sealed).digest()
    packets[3] = identities()[4].sign(content) + sealed  # well signed, and it opens for nobody
    coordinator.take(904, replace(said, packets=tuple(packets)))
    right = len(said.packets[0])
    line = read_journal(all_parties.folder / "hub/journal.jsonl")[-1]
    assert line["reason"] == f"packets must be of {right} bytes each, got one of {64 + size}"
    second = coordinator.settle()
    assert second is not None
    assert second.call(900).speakers == (0, 1, 2, 3)
    all_parties.add_up(second)
    assert coordinator.close() is not None  # the others go on
    coordinator.stop()


def test_a_speaker_named_twice_is_not_summed_and_settles_nothing(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator)
    second = coordinator.settle()
    assert second is not None
    call = second.call(900)
    twice = replace(call, speakers=(0, *call.speakers), packets=(call.packets[0], *call.packets))
    reply = all_parties.sum(twice)
    assert (reply.kind, reply.share) == ("refused", b"")
    assert "speakers must be different agents" in reply.reason
    with stored(all_parties, 0) as memory:
        assert memory.answered(0) is None
    assert all_parties.sum(call).kind == "share"
    coordinator.stop()


def test_a_coordinator_that_asks_for_two_sets_is_refused_by_every_member(
    all_parties: Secured,
) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator)
    second = coordinator.settle()
    assert second is not None
    all_parties.add_up(second)
    smaller = SumExchange(coordinator, second._step, {n: coordinator._spoken[n] for n in range(4)})
    for node in sorted(smaller.waiting):
        reply = all_parties.sum(smaller.call(node))
        assert reply.kind == "refused"
        assert "does not answer for two sets" in reply.reason
        assert all_parties.sum(second.call(node)).share == second.answers[node - 900].share
    coordinator.stop()


def test_members_that_are_told_different_sets_give_neither_sum(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    step = coordinator.open()
    all_parties.speak(coordinator)
    second = coordinator.settle()
    assert second is not None
    sets = {everybody: dict(coordinator._spoken) for everybody in (True, False)}
    del sets[False][4]
    asked = {which: SumExchange(coordinator, step, said) for which, said in sets.items()}
    told = {900: True, 901: True, 902: True, 903: False, 904: False}
    shares = {}
    for node, which in told.items():
        reply = all_parties.sum(asked[which].call(node))
        asked[which].take(node, reply)
        row = field.from_bytes(reply.share, all_parties.file.study.grid.numbers)
        assert row is not None
        shares[node - 900] = row
        assert all_parties.sum(asked[not which].call(node)).kind == "refused"
    threshold = all_parties.file.terms.committee.threshold
    for which, exchange in asked.items():
        answers = list(exchange.answers.values())
        assert len(answers) == list(told.values()).count(which) < threshold
        with pytest.raises(SumRefused, match="shares of 4 members are needed"):
            opened(all_parties.file.terms, 0, sorted(sets[which]), answers)
    with pytest.raises(SumRefused, match="do not fit each other"):
        sharing.joined(shares, threshold)
    said = [spoken_steps(all_parties, n, 0) for n in range(AGENTS)]
    for some in combinations(shares, threshold):  # nor do any four of them, of whatever set
        found = field.decode(sharing.joined({m: shares[m] for m in some}, threshold))
        assert not any(np.array_equal(found, sum(said[:count])) for count in (4, 5))
        assert not np.array_equal(found, said[4])
    coordinator.stop()


def test_a_coordinator_begun_anew_gets_the_same_packets_and_no_second_sum(
    all_parties: Secured,
) -> None:
    first = all_parties.coordinator()
    first.open()
    all_parties.speak(first)
    packets, second = dict(first._spoken), first.settle()
    assert second is not None
    all_parties.add_up(second)
    first.stop()
    shutil.rmtree(all_parties.folder / "hub")  # with all that it had noted
    again = all_parties.coordinator()
    again.open()
    all_parties.speak(again, agents=range(4))
    assert again._spoken == {n: packets[n] for n in range(4)}  # not one drew other noise
    second = again.settle()
    assert second is not None
    all_parties.add_up(second)
    assert second.answers == {}  # all have answered for the five
    with pytest.raises(ProtocolError, match="0 of 5 members answered"):
        again.close()
    again.stop()


def test_the_noise_of_a_real_site_comes_from_no_generator_that_could_be_seeded(
    all_parties: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    call, file = coordinator.call(900), all_parties.file

    def seeded(*given: object, **named: object) -> None:
        raise AssertionError("a generator was asked for")

    for name in ("default_rng", "standard_normal", "normal", "randint", "random", "seed"):
        monkeypatch.setattr(np.random, name, seeded)
    drawn = []
    for place in ("one", "two"):
        with (
            lock(all_parties.folder / place, 0.0),
            Memory(all_parties.folder / place, "journal", file.study, file.direction) as memory,
        ):
            random.seed(0)
            sealed_once(file, call, np.zeros(16), memory, identities()[0])
        t, shares = file.terms.committee.threshold, shares_in(all_parties, place)
        drawn.append(field.decode(sharing.joined(shares, t)))
    assert not np.any(drawn[0] == drawn[1])
    spread = np.concatenate(drawn).astype(float) / file.study.grid.share
    assert 0.5 < spread.std() < 1.6
    coordinator.stop()


@pytest.mark.parametrize("size", [0.0, 1e-300, 1.0, 1e300, np.nan])
def test_what_a_site_says_is_as_long_whatever_it_says(size: float, all_parties: Secured) -> None:
    file, study = all_parties.file, all_parties.file.study
    mechanism = study.method.mechanism
    assert mechanism is not None
    steps = rounded(np.full(16, size), 0, study.weights(0), mechanism, study.grid)
    noised = spoken(steps, study.grid, SystemEntropy())
    packets = speech(file.terms, 0, 0, noised, identities()[0])
    assert {len(packet) for packet in packets} == {SIGNATURE + SEALED + 8 * 16}


def test_a_coordinator_that_leaves_a_site_out_leaves_the_noise_of_two_to_two_in_league(
    all_parties: Secured,
) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator)
    del coordinator._spoken[4]  # it did speak
    second = coordinator.settle()
    assert second is not None
    all_parties.add_up(second)
    total = opened(all_parties.file.terms, 0, (0, 1, 2, 3), list(second.answers.values()))
    known = spoken_steps(all_parties, 0, 0) + spoken_steps(all_parties, 1, 0)
    rest = spoken_steps(all_parties, 2, 0) + spoken_steps(all_parties, 3, 0)
    assert np.array_equal(total - known, rest)  # two shares of noise, where three are counted on
    league = promise_of(all_parties.file).league
    fewer = all_parties.file.study.grid.event("").counting_on(2)
    assert league is not None
    assert league.left_out is not None
    assert fewer is not None
    assert league.left_out[0].epsilon == epsilon({fewer: 2}, all_parties.file.delta)
    assert len(all_parties.file.study.release_rounds) == 2
    coordinator.stop()


def test_members_in_league_below_the_threshold_open_nothing_and_at_it_everything(
    all_parties: Secured,
) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator)
    victim, terms = coordinator._spoken[0], all_parties.file.terms
    # members in league open their own packets of one speaker, as if it had spoken alone
    shares = {}
    for member in range(AGENTS):
        words = f"{terms.study}/0/0/{member}".encode()
        plain = identities()[member].open(
            victim[member][SIGNATURE:], b"sottovoce/packet/v1/" + words
        )
        assert plain is not None
        row = field.from_bytes(plain, terms.grid.numbers)
        assert row is not None
        shares[member] = row
    t = terms.committee.threshold
    found = field.decode(sharing.joined({m: shares[m] for m in range(t)}, t))
    assert np.array_equal(found, spoken_steps(all_parties, 0, 0))
    with pytest.raises(SumRefused):
        sharing.joined({m: shares[m] for m in range(t - 1)}, t)
    # for any guess at what was said there are shares of the members not in league that fit it
    guess = np.arange(16)
    points = [0, *range(1, t)]
    values = np.stack([field.encode(guess), *(shares[m] for m in range(t - 1))])
    last = sharing.at(t, points, values)
    fits = sharing.joined({**{m: shares[m] for m in range(t - 1)}, t - 1: last}, t)
    assert np.array_equal(field.decode(fits), guess)
    coordinator.stop()


def test_a_member_that_lies_is_noticed_and_nothing_is_released(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    all_parties.speak(coordinator)
    second = coordinator.settle()
    assert second is not None
    terms = all_parties.file.terms

    def lying(reply: SumReply) -> SumReply:
        if reply.agent != 2:
            return reply
        wrong = speech(terms, 0, 0, np.arange(16), identities()[0])
        mine = {n: (coordinator._spoken[n] if n else wrong)[2] for n in range(AGENTS)}
        answer = answered(terms, 0, 2, mine, identities()[2])
        return replace(reply, share=answer.share, signature=answer.signature)

    all_parties.add_up(second, changed=lying)
    with pytest.raises(SumRefused, match="do not fit each other"):
        coordinator.close()
    assert coordinator.server.events == []
    coordinator.stop()
    again = all_parties.coordinator()  # without the liar, the others' answers give the sum
    again.open()
    second = again.settle()
    assert second is not None
    all_parties.add_up(second, agents=(0, 1, 3, 4))
    assert again.close() is not None
    again.stop()


def test_a_site_that_is_handed_another_sum_than_the_answers_give_refuses_it(
    all_parties: Secured,
) -> None:
    coordinator = all_parties.coordinator()
    all_parties.release(coordinator)
    coordinator.open()
    call = coordinator.call(900)
    assert call.broadcast is not None
    assert all_parties.say(replace(call, answers=b"")).answer == "refused"
    assert len(answers_in(call.answers)[1]) == AGENTS
    told = replace(call, answers=call.answers.replace(b'"speakers":[0,1,2', b'"speakers":[0,1,3'))
    assert all_parties.say(told).answer == "refused"
    assert all_parties.say(call).answer == "sealed"
    coordinator.stop()


def test_a_site_without_its_keys_or_with_anothers_takes_no_part(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    coordinator.open()
    call = coordinator.call(900)
    for identity, words in ((None, "needs its sealing key"), (identities()[1], "not this site's")):
        site = all_parties.site(0)
        site._identity = identity
        reply = site.answer(call)
        assert reply.answer == "refused"
        assert words in reply.reason
    other = study_file()
    stranger = Secured(all_parties.folder, replace(other, roster=None))
    reply = stranger.site(0).answer(call)
    assert "sites.toml with the keys of all 5 sites must lie beside study.toml" in reply.reason
    coordinator.stop()


def test_a_vector_far_beyond_the_clip_moves_the_mean_as_far_as_a_sum_may_be_long(
    all_parties: Secured,
) -> None:
    coordinator = all_parties.coordinator()
    study, terms = all_parties.file.study, all_parties.file.terms
    coordinator.open()
    all_parties.speak(coordinator, agents=range(4))
    far = np.zeros(16, dtype=np.int64)
    far[0] = 4 * study.grid.limit  # four times what a site may say
    packets = speech(terms, 0, 4, far, identities()[4])
    said = all_parties.say(coordinator.call(904))
    coordinator.take(904, replace(said, packets=packets))
    second = coordinator.settle()
    assert second is not None
    all_parties.add_up(second)
    assert coordinator.close() is not None  # below the bound nobody can tell
    coordinator.stop()


def test_members_beyond_the_threshold_are_waited_for_a_while_only(all_parties: Secured) -> None:
    coordinator = all_parties.coordinator()
    step = coordinator.open()
    all_parties.speak(coordinator)
    coordinator.settle()
    now = [0.0]
    second = SumExchange(coordinator, step, coordinator._spoken, clock=lambda: now[0])
    all_parties.add_up(second, agents=range(4))
    assert second.waiting == {904}
    now[0] = SURPLUS + 1
    assert second.waiting == set()
    coordinator.stop()


def test_a_trusted_servers_calls_do_not_release_where_nobody_is_trusted(tmp_path: Path) -> None:
    server = Server(study_file().study, tmp_path / "ledger.db", PLENTY)
    server.open_round()
    with pytest.raises(Exception, match="no one party has all vectors"):
        server.close_round()
    assert server.events == []
    server.close()


def test_three_aggregators_sum_in_the_sites_place_and_none_of_them_may_be_missing(
    tmp_path: Path,
) -> None:
    who = [*identities(), *(simulated_identity(n) for n in range(3))]
    names = tuple(f"party-{n}" for n in range(8))
    roster = Roster(names, tuple(each.public for each in who))
    plain = study_file()
    study = replace(plain.study, sums=SecureSum(2, roster.digest, aggregators=3))
    parties = Secured(tmp_path, replace(plain, study=study, roster=roster))
    server = Server(study, tmp_path / "ledger.db", PLENTY)
    sites, summing = {900 + n: n for n in range(5)}, {950 + n: 5 + n for n in range(3)}
    journal = tmp_path / "journal.jsonl"
    coordinator = SecureCoordinator(parties.file, server, sites, journal, None, summing)
    for missing in (True, False):
        coordinator.open()
        parties.speak(coordinator)
        second = coordinator.settle()
        assert second is not None
        assert second.waiting == set(summing)  # no site is asked to sum
        call = second.call(950)
        refused = Member(parties.file, tmp_path / "0", who[0]).answer(replace(call, agent=0))
        assert (refused.kind, refused.share) == ("refused", b"")
        assert "party 0 is not of the committee" in refused.reason
        for node, number in summing.items():
            if not (missing and number == 6):
                member = Member(parties.file, tmp_path / f"sum-{number}", who[number])
                second.take(node, member.answer(second.call(node)))
        if missing:
            with pytest.raises(ProtocolError, match="2 of 3 members answered in round 0"):
                coordinator.close()
            coordinator.stop()
            server = Server(study, tmp_path / "ledger.db", PLENTY)
            coordinator = SecureCoordinator(parties.file, server, sites, journal, None, summing)
    assert coordinator.close() is not None
    coordinator.stop()
