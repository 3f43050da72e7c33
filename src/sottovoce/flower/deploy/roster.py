"""A site's own look, before it joins, at the list of keys that it is to trust."""

from __future__ import annotations

from pathlib import Path

from sottovoce.errors import InvalidInput
from sottovoce.flower.deploy.keys import SEAL
from sottovoce.flower.sites import NAME, read_identity
from sottovoce.flower.studyfile import StudyFile


def enrolled(file: StudyFile, key: Path | None) -> tuple[int, str]:
    """Its number; and in words who it is among all, and the digest to compare with the others'.

    key: its private key; what it seals with lies beside that.
    """
    _ = file.terms  # that all keys are there
    if key is None or file.roster is None:
        raise InvalidInput(f"where nobody is trusted a site needs its keys: --key, and {SEAL}")
    mine = read_identity(key.with_suffix(SEAL)).public
    if mine not in file.roster.keys:
        raise InvalidInput(f"{NAME} must have this site's own keys, those of {key.stem}")
    number = file.roster.keys.index(mine)
    return number, (
        f"This site is {file.roster.names[number]}, agent {number} of {len(file.roster.names)}. "
        f"The keys of all in {NAME}: {file.roster.digest}. Compare that with the others: whoever "
        f"could make up their keys could read this site's vectors."
    )
