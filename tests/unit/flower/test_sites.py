from __future__ import annotations

from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput, StorageError, StudyMismatch
from sottovoce.flower.sites import (
    numbered_aggregators,
    numbered_sites,
    read_keys,
    read_roster,
    read_sites,
    simulated_identity,
    write_sites,
)


def test_the_list_of_sites_keeps_its_order(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    sites = {"b": "12253045707705050853", "a": "7"}
    write_sites(path, sites)
    assert list(read_sites(path).items()) == list(sites.items())


def test_keys_and_aggregators_are_kept_with_the_sites_and_come_after_them(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    keys = {name: simulated_identity(n).public.text for n, name in enumerate(("b", "a", "sum"))}
    write_sites(path, {"b": "5", "a": "7"}, keys, {"sum": "9"})
    assert read_sites(path) == {"b": "5", "a": "7"}
    assert numbered_aggregators(path, 2) == {9: 2}
    roster = read_roster(path)
    assert roster.names == ("b", "a", "sum")
    assert [key.text for key in roster.keys] == list(keys.values())
    assert read_keys(path) == keys
    with pytest.raises(StudyMismatch, match=r"agent 1 \(a\) in sites.toml are not this site's"):
        roster.check_mine(1, simulated_identity(0))
    roster.check_mine(0, simulated_identity(0))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("b = 'x'\na = 'x'", "every site must have its line in .keys., in the order of .sites."),
        ("a = 'x'", r"missing=\['b'\]"),
        ("a = 1\nb = 2", "keys must be a line of base64, got site='a'"),
        ("a = 'x'\nb = 'x'", "public keys are 1248 bytes"),
        ("a = '{0}'\nb = '{0}'", "no two sites may have the same keys"),
    ],
)
def test_a_list_of_keys_that_is_not_whole_is_refused(
    lines: str, words: str, tmp_path: Path
) -> None:
    text = lines.format(simulated_identity(0).public.text)
    (tmp_path / "sites.toml").write_text(f"[sites]\na = 1\nb = 2\n[keys]\n{text}\n")
    with pytest.raises(InvalidInput, match=words):
        read_roster(tmp_path / "sites.toml")


def test_the_order_of_the_sites_gives_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    largest = 2**64 - 1
    path.write_text(f'[sites]\nnorth = {largest}\nsouth = "17"\n')
    assert numbered_sites(path, 2) == {largest: 0, 17: 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a table"),
        ("sites = 3", "a table"),
        ("[sites]\na = 1\n[more]", "a table"),
        ("[sites]\na = 1", "the study has 2 agents, so 2 sites must be listed, got sites=1"),
        ("[sites]\na = 1\nb = 1", "no two sites may be the same node, got b=1"),
        ("[sites]\na = 1\nb = '1'", "no two sites"),
        ("[sites]\na = 1\nb = true", "whole number, got b=True"),
        ("[sites]\na = 1\nb = -4", "whole number"),
        ("[sites]\na = 1\nb = 18446744073709551616", "whole number"),
        ("[sites]\na = 1\nb = 1.5", "whole number"),
        ("[sites]\na = 1\nb = 'two'", "whole number"),
        ("[sites]\na = 1\na = 2", "not valid TOML"),
    ],
)
def test_a_bad_list_of_sites_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        numbered_sites(path, 2)


def test_a_missing_list_of_sites_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        numbered_sites(tmp_path / "sites.toml", 2)
