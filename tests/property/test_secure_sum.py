"""What must hold for any sum in shares, whatever is said, lost or changed on its way."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from sottovoce.errors import ProtocolError, SottovoceError, SumRefused
from sottovoce.privacy.noise import Drawn, SystemEntropy
from sottovoce.privacy.release import Mechanism, limited_sum
from sottovoce.secure_sum import field, sharing
from sottovoce.secure_sum.field import PRIME, Residues
from sottovoce.secure_sum.grid import Grid, grid_for, plausible, released, rounded, spoken
from sottovoce.secure_sum.keys import Identity, PublicKeys
from sottovoce.secure_sum.protocol import (
    Answer,
    Terms,
    answered,
    check_set,
    check_speech,
    opened,
    speech,
)
from sottovoce.secure_sum.terms import committee_of, default_unreliable

residues = st.one_of(st.integers(0, PRIME - 1), st.sampled_from([0, 1, PRIME - 1, PRIME // 2]))
seeds = st.integers(0, 2**32 - 1)
STUDY = "ab" * 32


def array(*values: int) -> Residues:
    return np.array(values, dtype=np.uint64)


@given(residues, residues)
def test_the_field_adds_and_multiplies_as_whole_numbers_do(a: int, b: int) -> None:
    assert int(field.add(array(a), array(b))[0]) == (a + b) % PRIME
    assert int(field.multiply(array(a), array(b))[0]) == a * b % PRIME


@given(st.integers(-(2**60) + 1, 2**60 - 1))
def test_whole_numbers_come_back_from_their_residues(whole: int) -> None:
    coded = field.encode(np.array([whole]))
    assert 0 <= int(coded[0]) < PRIME
    assert int(field.decode(coded)[0]) == whole
    back = field.from_bytes(field.to_bytes(coded), 1)
    assert back is not None
    assert np.array_equal(back, coded)


def test_bytes_that_are_no_residues_are_told_from_those_that_are() -> None:
    assert field.from_bytes(PRIME.to_bytes(8, "little"), 1) is None
    assert field.from_bytes(b"\0" * 7, 1) is None
    assert field.from_bytes(b"\0" * 16, 1) is None


@given(st.integers(2, 9), st.data())
@settings(max_examples=40, deadline=None)
def test_any_t_shares_give_the_sum_exactly(members: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(2, members))
    speakers = data.draw(st.integers(1, 4))
    random = np.random.default_rng(data.draw(seeds))
    secrets = random.integers(-(2**55), 2**55, (speakers, 3))
    shares = [
        sharing.split(field.encode(secret), field.uniform((threshold - 1, 3)), members)
        for secret in secrets
    ]
    summed = {j: field.total([rows[j] for rows in shares], 3) for j in range(members)}
    chosen = data.draw(st.permutations(range(members)))[:threshold]
    found = field.decode(sharing.joined({j: summed[j] for j in chosen}, threshold))
    assert np.array_equal(found, secrets.sum(axis=0))
    assert np.array_equal(field.decode(sharing.joined(summed, threshold)), found)
    with pytest.raises(SumRefused, match="are needed"):
        sharing.joined({j: summed[j] for j in chosen[1:]}, threshold)


@given(residues, residues, st.integers(0, 2), st.integers(1, PRIME - 1))
def test_t_minus_one_shares_are_one_to_one_with_the_randomness_whatever_the_secret(
    secret: int, other: int, left_out: int, bump: int
) -> None:
    # For each secret, f is fixed by the t − 1 shares: to any shares seen there is exactly one
    # choice of coefficients for every secret. Hence they are uniform, and tell nothing.
    seen = [j for j in range(3) if j != left_out]
    coefficients = field.uniform((2, 1))
    shares = sharing.split(array(secret), coefficients, 3)
    points, values = [0, *(j + 1 for j in seen)], [array(other), *(shares[j] for j in seen)]
    alike = [int(sharing.at(x, points, np.stack(values))[0]) for x in (1, 2, 3)]
    assert [alike[j] for j in seen] == [int(shares[j, 0]) for j in seen]
    assert int(sharing.at(0, [1, 2, 3], np.array(alike, dtype=np.uint64)[:, None])[0]) == other
    moved = sharing.split(array(secret), field.add(coefficients, array(bump)), 3)
    assert not all(np.array_equal(moved[j], shares[j]) for j in seen)


def test_the_shares_of_t_minus_one_members_look_the_same_for_any_secret() -> None:
    for secret in (0, PRIME - 1):
        many = np.full(20_000, secret, dtype=np.uint64)
        shares = sharing.split(many, field.uniform((2, 20_000)), 5)
        for a, b in combinations(range(5), 2):
            cells = (shares[a] >> np.uint64(58)) * np.uint64(8) + (shares[b] >> np.uint64(58))
            counts = np.bincount(cells.astype(np.int64), minlength=64)
            assert chisquare(counts).pvalue > 1e-6


@given(st.integers(3, 7), st.data())
@settings(max_examples=30, deadline=None)
def test_a_surplus_share_that_was_changed_is_noticed_and_named_where_it_can_be(
    members: int, data: st.DataObject
) -> None:
    threshold = data.draw(st.integers(2, members - 1))
    shares = sharing.split(array(7), field.uniform((threshold - 1, 1)), members)
    liar = data.draw(st.integers(0, members - 1))
    told = {j: shares[j] for j in range(members)}
    told[liar] = field.add(told[liar], array(data.draw(st.integers(1, PRIME - 1))))
    wanted = f"without member {liar} the others do" if members - 1 > threshold else "cannot be told"
    with pytest.raises(SumRefused, match=wanted):
        sharing.joined(told, threshold)


def made_up_vectors(agents: int, features: int, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    sizes = 10.0 ** random.uniform(-8, 8, (agents, 1))
    vectors: NDArray[np.float64] = random.standard_normal((agents, features)) * sizes
    return vectors


@given(seeds, st.integers(3, 40), st.integers(1, 4), st.sampled_from(["paper", "tight"]))
@settings(max_examples=60, deadline=None)
def test_the_same_draws_give_a_trusted_servers_sum_to_the_grid(
    seed: int, agents: int, regions: int, how: str
) -> None:
    features, random = 6, np.random.default_rng(seed)
    mechanism = replace(Mechanism(5.0, 1.0, 3.0), sensitivity=how)  # type: ignore[arg-type]
    weights = random.random((regions, agents))
    weights /= weights.sum(axis=1, keepdims=True)
    grid = grid_for(agents, default_unreliable(agents) - 1, 3.0, regions * features)
    vectors, normals = (
        made_up_vectors(agents, features, seed),
        random.standard_normal((agents, regions * features)),
    )
    total = np.zeros(regions * features, dtype=np.int64)
    for n in range(agents):
        total += spoken(rounded(vectors[n], n, weights, mechanism, grid), grid, Drawn(normals[n]))
    summed = released(total, weights, mechanism, grid)
    everyone = np.ones(agents, dtype=np.bool_)
    step = float(released(np.array([1] + [0] * (grid.numbers - 1)), weights, mechanism, grid).max())
    plain = limited_sum(vectors, weights, everyone, mechanism)
    plain += (grid.share * step * normals.sum(axis=0)).reshape(plain.shape)
    np.testing.assert_allclose(summed, plain, rtol=0, atol=2.1 * agents * step)


@given(seeds, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_no_vector_is_longer_than_the_clip_in_whole_steps(seed: int, regions: int) -> None:
    mechanism = Mechanism(5.0, 1.0, 3.0, sensitivity="tight")
    weights = np.full((regions, 8), 1 / 8)
    grid = grid_for(8, 2, 3.0, regions * 5)
    for vector in made_up_vectors(20, 5, seed):
        steps = rounded(vector, 3, weights, mechanism, grid)
        assert sum(int(s) ** 2 for s in steps) <= grid.limit**2
    odd = np.array([np.nan, 1.0, 1.0, 1.0, 1.0])
    assert not rounded(odd, 3, weights, mechanism, grid).any()


@lru_cache(maxsize=4)
def parties(count: int) -> tuple[Identity, ...]:
    return tuple(Identity.generate() for _ in range(count))


def small_terms(agents: int = 5, numbers: int = 3) -> Terms:
    grid = grid_for(agents, 2, 4.0, numbers)
    keys = tuple(party.public for party in parties(agents))
    return Terms(STUDY, grid, committee_of(agents, STUDY), keys)


@lru_cache(maxsize=1)
def one_round() -> tuple[tuple[tuple[bytes, ...], ...], tuple[Answer, ...], NDArray[np.int64]]:
    """What five speakers said in round 2, what the members answered, and the sum."""
    terms, who = small_terms(), parties(5)
    said = np.random.default_rng(1).integers(-(2**41), 2**41, (5, 3))
    packets = tuple(speech(terms, 2, n, said[n], who[n]) for n in range(5))
    answers = tuple(
        answered(terms, 2, m, {n: packets[n][m] for n in range(5)}, who[m]) for m in range(5)
    )
    return packets, answers, said.sum(axis=0)


def test_the_whole_protocol_gives_the_sum_of_what_was_said() -> None:
    _, answers, total = one_round()
    for count in (4, 5):
        for some in combinations(answers, count):
            assert np.array_equal(opened(small_terms(), 2, range(5), some), total)


@pytest.mark.slow
def test_a_committee_of_a_hundred_sums_for_more_sites_and_two_thirds_of_it_are_enough() -> None:
    grid = grid_for(110, 20, 4.0, 2)
    who = tuple(Identity.generate() for _ in range(110))
    terms = Terms(STUDY, grid, committee_of(110, STUDY), tuple(each.public for each in who))
    said = np.random.default_rng(2).integers(-(2**41), 2**41, (110, 2))
    packets = [speech(terms, 0, n, said[n], who[n]) for n in range(110)]
    answers = [
        answered(terms, 0, m, {n: packets[n][place] for n in range(110)}, who[m])
        for place, m in enumerate(terms.committee.members)
        if place < 70
    ]
    assert np.array_equal(opened(terms, 0, range(110), answers), said.sum(axis=0))
    with pytest.raises(SumRefused, match="67 members are needed, got 66"):
        opened(terms, 0, range(110), answers[:66])


@given(st.integers(0, 4), st.data())
@settings(max_examples=60, deadline=None)
def test_a_bit_that_is_changed_in_a_packet_is_noticed_by_its_member(
    speaker: int, data: st.DataObject
) -> None:
    packets, _, _ = one_round()
    mine = {n: packets[n][0] for n in range(5)}
    bit = data.draw(st.integers(0, 8 * len(mine[speaker]) - 1))
    mine[speaker] = flipped(mine[speaker], bit)
    with pytest.raises(ProtocolError, match=f"agent {speaker} did not sign"):
        answered(small_terms(), 2, 0, mine, parties(5)[0])


@given(st.integers(0, 4), st.booleans(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_bit_that_is_changed_in_an_answer_is_noticed_and_nothing_is_opened(
    member: int, in_share: bool, data: st.DataObject
) -> None:
    _, answers, _ = one_round()
    told, old = list(answers), answers[member]
    part = old.share if in_share else old.signature
    changed = flipped(part, data.draw(st.integers(0, 8 * len(part) - 1)))
    share, signature = (changed, old.signature) if in_share else (old.share, changed)
    told[member] = Answer(member, share, signature)
    with pytest.raises(ProtocolError, match=f"member {member} did not sign"):
        opened(small_terms(), 2, range(5), told)


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(st.integers(0, 4), st.binary(max_size=2000))
@settings(max_examples=30, deadline=None)
def test_a_well_signed_packet_of_another_size_is_not_taken(place: int, sealed: bytes) -> None:
    terms, packets = small_terms(), list(one_round()[0][1])
    check_speech(terms, 2, 1, packets)
    context = f"sottovoce/packet/v1/{STUDY}/2/1/{place}/".encode()
    signature = parties(5)[1].sign(context + hashlib.sha256(sealed).digest())
    packets[place] = signature + sealed
    if len(packets[place]) == len(packets[place - 1]):
        check_speech(terms, 2, 1, packets)  # only its member can tell
    else:
        with pytest.raises(ProtocolError, match=r"packets must be of \d+ bytes each"):
            check_speech(terms, 2, 1, packets)


@pytest.mark.parametrize("what", ["study", "round", "sender", "receiver"])
def test_a_packet_opens_only_for_what_it_was_sealed_for(what: str) -> None:
    packets, _, _ = one_round()
    terms, mine = small_terms(), {n: packets[n][0] for n in range(5)}
    number, member = 2, 0
    if what == "study":
        terms = replace(terms, study="cd" * 32)
    elif what == "round":
        number = 3
    elif what == "sender":
        mine[0], mine[1] = mine[1], mine[0]
    else:
        mine = {n: packets[n][1] for n in range(5)}
    with pytest.raises(ProtocolError, match="did not sign"):
        answered(terms, number, member, mine, parties(5)[0])


def test_sealing_is_bound_by_itself_not_only_through_the_signature() -> None:
    who = parties(5)[0]
    sealed = who.public.seal(b"a share", b"context")
    assert who.open(sealed, b"context") == b"a share"
    assert who.open(sealed, b"contexs") is None
    assert parties(5)[1].open(sealed, b"context") is None
    assert who.open(b"short", b"context") is None


def test_an_answer_for_another_set_or_round_or_by_a_stranger_is_not_taken() -> None:
    _, answers, _ = one_round()
    terms = small_terms()
    with pytest.raises(ProtocolError, match="did not sign this answer for this set"):
        opened(terms, 2, range(4), answers)
    with pytest.raises(ProtocolError, match="did not sign"):
        opened(terms, 3, range(5), answers)
    with pytest.raises(ProtocolError, match="not of the committee"):
        opened(terms, 2, range(5), [replace(answers[0], member=9)])
    with pytest.raises(ProtocolError, match="answered twice"):
        opened(terms, 2, range(5), [*answers[:4], answers[0]])
    with pytest.raises(SumRefused, match="4 members are needed, got 3"):
        opened(terms, 2, range(5), answers[:3])


def test_a_member_answers_for_no_set_that_is_too_small_or_none_at_all() -> None:
    packets, _, _ = one_round()
    terms, who = small_terms(), parties(5)[0]
    assert terms.fewest == 4
    with pytest.raises(SumRefused, match="at least 4 of 5 sites must have spoken, got 3"):
        answered(terms, 2, 0, {n: packets[n][0] for n in range(3)}, who)
    with pytest.raises(ProtocolError, match="different agents"):
        answered(terms, 2, 0, {n: packets[n % 5][0] for n in range(6)}, who)
    with pytest.raises(ProtocolError, match="does not open"):
        answered(terms, 2, 0, {n: packets[n][0] for n in range(5)}, parties(5)[1])


def test_a_member_that_signs_a_wrong_share_is_found_out_by_the_others() -> None:
    packets, answers, _ = one_round()
    terms, liar = small_terms(), parties(5)[2]
    others = speech(terms, 2, 0, np.array([1, 2, 3]), parties(5)[0])
    mine = {n: (packets[n] if n else others)[2] for n in range(5)}
    lie = answered(terms, 2, 2, mine, liar)
    with pytest.raises(SumRefused, match="do not fit each other"):
        opened(terms, 2, range(5), [lie if a.member == 2 else a for a in answers])


def test_a_sum_that_cannot_be_is_refused() -> None:
    terms, who = small_terms(), parties(5)
    said = [np.array([1, 2, 3])] * 4 + [np.array([2**46, 0, 0])]
    packets = [speech(terms, 0, n, said[n], who[n]) for n in range(5)]
    answers = [
        answered(terms, 0, m, {n: packets[n][m] for n in range(5)}, who[m]) for m in range(5)
    ]
    with pytest.raises(SumRefused, match="cannot add up to this"):
        opened(terms, 0, range(5), answers)


@given(st.integers(3, 300), st.floats(0.3, 50.0), st.integers(1, 64))
@settings(max_examples=40, deadline=None)
def test_what_honest_sites_say_is_always_plausible(agents: int, noise: float, numbers: int) -> None:
    grid = grid_for(agents, default_unreliable(agents), noise, numbers)
    corner = np.full(numbers, math.floor(grid.limit / math.sqrt(numbers)), dtype=np.int64)
    extreme = agents * corner
    normals = np.random.default_rng(agents).standard_normal(numbers)
    spread = grid.share * math.sqrt(agents) * normals
    assert plausible(extreme + spread.astype(np.int64), grid, agents)


def test_noise_from_the_system_has_the_scale_of_the_grid_and_never_repeats() -> None:
    grid = grid_for(100, 20, 2.0, 4000)
    zeros = np.zeros(4000, dtype=np.int64)
    first, second = (spoken(zeros, grid, SystemEntropy()) for _ in range(2))
    for drawn in (first, second):
        assert abs(float(drawn.std()) / grid.share - 1) < 0.06
    assert not np.array_equal(first, second)
    assert grid.share > 2**31  # where 32 bits would have saturated


def test_a_share_covers_the_clip_as_one_of_n_minus_k_and_never_less() -> None:
    grid = grid_for(10, 4, 3.0, 8)
    wanted = 3.0 * 2**40 / math.sqrt(6)
    assert wanted <= grid.share <= wanted * (1 + 1e-14)
    assert grid.event("x").share == pytest.approx(wanted)


def test_rounding_is_towards_zero_and_a_long_contribution_is_never_noised() -> None:
    mechanism, grid = Mechanism(5.0, 1.0, 3.0), grid_for(8, 2, 3.0, 2)
    weights = np.full((1, 8), 1 / 8)
    steps = rounded(np.array([5 * 0.75 / 2**40, -5 * 2.75 / 2**40]), 0, weights, mechanism, grid)
    assert steps.tolist() == [0, -2]
    with pytest.raises(SottovoceError, match="must keep to the clip"):
        spoken(np.array([2**40, 1]), grid, SystemEntropy())


def test_grids_shrink_where_the_sum_would_not_fit() -> None:
    fine = grid_for(10, 2, 4.0, 256)
    coarse = grid_for(100_000, 20_000, 1e5, 256)
    assert fine.bits == 40
    assert 16 < coarse.bits < 40
    assert isinstance(coarse, Grid)
    with pytest.raises(SottovoceError, match="bits must leave room"):
        replace(coarse, bits=40)
    with pytest.raises(SottovoceError, match="no grid"):
        grid_for(100, 2, 1e99, 256)


@given(st.lists(st.integers(-2, 6), min_size=4, max_size=7))
def test_speakers_are_different_agents_of_the_study_and_enough_of_them(speakers: list[int]) -> None:
    who = _five()
    terms = Terms(STUDY, grid_for(5, 2, 4.0, 3), committee_of(5, STUDY), who)
    if len(set(speakers)) == len(speakers) and set(speakers) <= set(range(5)):
        check_set(terms, speakers)
    else:
        with pytest.raises(ProtocolError, match="speakers must be different agents, from 0 to 4"):
            check_set(terms, speakers)


@lru_cache(maxsize=1)
def _five() -> tuple[PublicKeys, ...]:
    return tuple(Identity.generate().public for _ in range(5))
