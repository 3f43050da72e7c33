"""Shamir's sharing, t of h: a secret is f(0) of a polynomial of degree t − 1, a share is f(x).

Any t shares give f back; t − 1 of them are uniform, whatever the secret is. Shares of several
secrets add up to a share of their sum. A vector is shared number by number.

Symbols: d numbers of a vector, h members, t threshold; member j has x = j + 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sottovoce.errors import SumRefused, check
from sottovoce.secure_sum.field import PRIME, Residues, add, multiply


def split(secret: Residues, coefficients: Residues, members: int) -> Residues:
    """The shares (h, d) of a secret (d,).

    coefficients (t − 1, d): of x, x², …; uniform, and never used twice.
    """
    check(len(coefficients) < members, "there must be at least t members", members=members)
    points = np.arange(1, members + 1, dtype=np.uint64)[:, None]
    shares = np.zeros((members, len(secret)), dtype=np.uint64)
    for coefficient in coefficients[::-1]:  # Horner's rule
        shares = multiply(add(shares, coefficient), points)
    return add(shares, secret)


def at(point: int, points: Sequence[int], values: Residues) -> Residues:
    """f(point) of the polynomial of least degree through the values (t, d) at the points."""
    result = np.zeros(values.shape[1], dtype=np.uint64)
    for j, x in enumerate(points):
        above, below = 1, 1
        for other in (*points[:j], *points[j + 1 :]):
            above, below = above * (point - other) % PRIME, below * (x - other) % PRIME
        weight = np.asarray(above * pow(below, -1, PRIME) % PRIME, dtype=np.uint64)
        result = add(result, multiply(values[j], weight))
    return result


def joined(shares: Mapping[int, Residues], threshold: int) -> Residues:
    """The secret, from the shares of t members or more, by their number.

    Shares beyond t must lie on the same polynomial: one that does not means that somebody lied, or
    that something was changed on its way, and then nothing may be made of any of them.
    """
    members = sorted(shares)
    if len(members) < threshold:
        raise SumRefused(f"shares of {threshold} members are needed, got {len(members)}")
    if not _agree(shares, threshold):
        raise SumRefused(f"the shares do not fit each other: {_suspected(shares, threshold)}")
    values = np.stack([shares[j] for j in members[:threshold]])
    return at(0, [j + 1 for j in members[:threshold]], values)


def _suspected(shares: Mapping[int, Residues], threshold: int) -> str:
    """Who it was, if without one member all others agree, and more than t are left to say so."""
    for j in sorted(shares):
        rest = {member: share for member, share in shares.items() if member != j}
        if len(rest) > threshold and _agree(rest, threshold):
            return f"without member {j} the others do"
    return "which of them is wrong cannot be told"


def _agree(shares: Mapping[int, Residues], threshold: int) -> bool:
    members = sorted(shares)
    points = [j + 1 for j in members[:threshold]]
    values = np.stack([shares[j] for j in members[:threshold]])
    return all(np.array_equal(at(j + 1, points, values), shares[j]) for j in members[threshold:])
