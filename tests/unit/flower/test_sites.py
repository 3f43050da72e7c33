from __future__ import annotations

from pathlib import Path

import pytest

from sottovoce.errors import InvalidInput, StorageError
from sottovoce.flower.sites import numbered_sites, read_sites, write_sites


def test_the_list_of_sites_keeps_its_order(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    sites = {"b": "12253045707705050853", "a": "7"}
    write_sites(path, sites)
    assert list(read_sites(path).items()) == list(sites.items())


def test_the_order_of_the_sites_gives_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    largest = 2**64 - 1
    path.write_text(f'[sites]\nnorth = {largest}\nsouth = "17"\n')
    assert numbered_sites(path, 2) == {largest: 0, 17: 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "one table"),
        ("sites = 3", "one table"),
        ("[sites]\na = 1\n[more]", "one table"),
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
