"""Arithmetic modulo the prime p = 2⁶¹ − 1, on arrays of uint64.

Every array holds residues in [0, p). 2⁶¹ ≡ 1, so a product is folded back by shifts alone: no
number here reaches 2⁶⁴.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Residues = NDArray[np.uint64]

PRIME = (1 << 61) - 1
_P, _BITS = np.uint64(PRIME), np.uint64(61)
_HALF, _LOW = np.uint64(31), np.uint64((1 << 31) - 1)
_THIRTY, _LOW_THIRTY = np.uint64(30), np.uint64((1 << 30) - 1)


def encode(whole: NDArray[np.int64]) -> Residues:
    """Whole numbers of less than 2⁶⁰ in size, as residues; −1 is p − 1."""
    return np.where(whole < 0, whole + PRIME, whole).astype(np.uint64)


def decode(residues: Residues) -> NDArray[np.int64]:
    """The whole numbers from −2⁶⁰ + 1 to 2⁶⁰ − 1 that have these residues."""
    whole = residues.astype(np.int64)
    return np.where(residues > _P >> np.uint64(1), whole - PRIME, whole)


def add(a: Residues, b: Residues) -> Residues:
    """a + b."""
    return _folded(a + b)


def total(rows: Iterable[Residues], size: int) -> Residues:
    """The sum of rows of this size."""
    result = np.zeros(size, dtype=np.uint64)
    for row in rows:
        result = add(result, row)
    return result


def multiply(a: Residues, b: Residues) -> Residues:
    """a · b, by halves of 31 and 30 bits: 2⁶² ≡ 2, and 2³¹·m ≡ (m >> 30) + 2³¹·(m mod 2³⁰)."""
    a1, a0, b1, b0 = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    middle = a1 * b0 + a0 * b1  # below 2⁶²
    high = (a1 * b1) << np.uint64(1)  # below 2⁶¹
    return _folded(high + (middle >> _THIRTY) + ((middle & _LOW_THIRTY) << _HALF) + a0 * b0)


def _folded(x: Residues) -> Residues:
    """x mod p, for any x below 2⁶⁴."""
    x = (x & _P) + (x >> _BITS)
    return np.where(x >= _P, x - _P, x)


def uniform(shape: tuple[int, ...]) -> Residues:
    """Independent uniform residues from the operating system: 61 bits, and again if they are p."""
    drawn = np.frombuffer(os.urandom(8 * int(np.prod(shape))), dtype="<u8") >> np.uint64(3)
    drawn = drawn.reshape(shape).astype(np.uint64)
    while np.any(again := drawn == _P):
        drawn[again] = uniform((int(again.sum()),))
    return drawn


def to_bytes(residues: Residues) -> bytes:
    """Eight bytes each, little-endian."""
    return residues.astype("<u8").tobytes()


def from_bytes(data: bytes, size: int) -> Residues | None:
    """What `to_bytes` wrote, of this size; None if it is anything else."""
    if len(data) != 8 * size:
        return None
    residues = np.frombuffer(data, dtype="<u8").astype(np.uint64)
    return residues if bool(np.all(residues < _P)) else None
