"""The digests that chain a ledger's entries; who has a release can work its digest out again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.privacy.events import to_dict
from sottovoce.privacy.release import Release

GENESIS = b"\0" * 32
SHOWN = 3  # constants that are named when a ledger is of another study


def entry_digest(
    previous: bytes, seq: int, round_number: int | None, header: str, payload: bytes
) -> bytes:
    """SHA-256 over the chain so far and this entry, each part with its length."""
    digest = hashlib.sha256(previous)
    for part in (str(seq).encode(), str(round_number).encode(), header.encode(), payload):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def next_digest(previous: str, seq: int, round_number: int, release: Release) -> str:
    """The digest of a release in a ledger, for whoever has it and the digest before it."""
    vectors, header = written(release)
    before = bytes.fromhex(previous)
    return entry_digest(before, seq, round_number, header, vectors.tobytes()).hex()


def written(release: Release) -> tuple[NDArray[np.float64], str]:
    """A release as an entry holds it: its vectors, and the header that says the rest."""
    vectors = np.ascontiguousarray(release.vectors, dtype="<f8")
    return vectors, canonical({"event": to_dict(release.event), "shape": list(vectors.shape)})


def canonical(content: Mapping[str, Any]) -> str:
    """Plain data as one text, always the same."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def constants_in(header: str) -> dict[str, Any]:
    """The study in the first entry's header; nothing if there is none."""
    try:
        study = json.loads(header)["study"]
    except (ValueError, KeyError, TypeError):
        return {}
    return study if isinstance(study, dict) else {}


def difference(found: str, wanted: str) -> str:
    """The first public constants in which two studies differ, and what to do about it."""
    ours, theirs = constants_in(wanted), constants_in(found)
    if not theirs or ours == theirs:
        return "its first entry is not a study"
    mine, other = dict(_leaves(ours)), dict(_leaves(theirs))
    names = sorted({*mine, *other}, key=lambda name: (name.count("."), name))
    names = [name for name in names if mine.get(name) != other.get(name)]
    said = [f"{n} is {other.get(n)!r} there and {mine.get(n)!r} here" for n in names[:SHOWN]]
    more = [f"{len(names) - SHOWN} more differ"] if len(names) > SHOWN else []
    advice = "go on with the settings, and the version of Sottovoce, that it was begun with"
    return f"{'; '.join([*said, *more])}. To finish it, {advice}"


def _leaves(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, data
