"""A site's own look, before it joins, at the list of keys that it is to trust."""

from __future__ import annotations

from pathlib import Path

from sottovoce.errors import InvalidInput
from sottovoce.flower.deploy.keys import SEAL
from sottovoce.flower.sites import NAME, read_identity
from sottovoce.flower.studyfile import StudyFile


def enrolled(file: StudyFile, key: Path | None) -> str:
    """Who this site is among all, and the digest that it must compare with the others'.

    key: its private key; what it seals with lies beside that.
    """
    _ = file.terms  # that all keys are there
    if key is None or file.roster is None:
        raise InvalidInput(f"where nobody is trusted a site needs its keys: --key, and {SEAL}")
    mine = read_identity(key.with_suffix(SEAL)).public
    if mine not in file.roster.keys:
        raise InvalidInput(f"{NAME} must have this site's own keys, those of {key.stem}")
    number, agents = file.roster.keys.index(mine), file.study.agents
    name, total = file.roster.names[number], len(file.roster.names)
    if number < agents:
        who, harm = f"This site is {name}, agent {number} of {agents}.", "this site's vectors"
    else:
        who = f"This is {name}, aggregator {number - agents + 1} of {total - agents}: it only sums."
        harm = "the sites' vectors"
    return (
        f"{who} The keys of all in {NAME}: {file.roster.digest}. Compare that with the others: "
        f"whoever could make up their keys could read {harm}."
    )


def sums_only(file: StudyFile, key: Path | None) -> bool:
    """Whether the party with this key is an aggregator: it has no data, and says nothing of any."""
    if file.study.sums is None or file.roster is None or key is None:
        return False
    mine = read_identity(key.with_suffix(SEAL)).public
    return file.roster.keys.index(mine) >= file.study.agents
