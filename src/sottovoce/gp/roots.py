"""Inverse roots of growing Gram matrices, kept so that one more observation costs O(t²), not O(t³).

Symbols: n agents, t observations; R as in `posterior.next_root_row`.
"""

from __future__ import annotations

from collections.abc import Callable

from sottovoce.arrays import Array, array_namespace
from sottovoce.device import Device
from sottovoce.gp.kernel import Kernel, covariance
from sottovoce.gp.posterior import next_root_row


class Roots:
    """R of each agent of a batch, (n, t, t), filled row by row."""

    def __init__(self, where: Device, size: int, lam: float) -> None:
        self._device, self._size, self._lam = where, size, lam
        self._rows: Array | None = None  # made when first asked for: not every method needs it
        self._known = 0

    def upto(self, count: int, room: int, similar: Callable[[int], Array]) -> Array:
        """R of the first `count` observations, (n, count, count), kept in room for so many.

        similar(k): inner products of observation k's features with those of 0, ..., k.
        """
        rows = self._with_room(max(count, room))
        for k in range(self._known, count):
            rows[:, k, : k + 1] = next_root_row(rows[:, :k, :k], similar(k), self._lam)
        self._rows, self._known = rows, count
        return rows[:, :count, :count]

    def _with_room(self, room: int) -> Array:
        old = self._rows
        if old is not None and old.shape[1] >= room:
            return old
        rows = self._device.zeros(self._size, room, room)
        if old is not None:
            rows[:, : self._known, : self._known] = old[:, : self._known, : self._known]
        return rows


def gram_row(kernel: Kernel, points: Array, mask: Array | None, k: int) -> Array:
    """k(x_k, x_i) for i = 0, ..., k, zero where either is no observation: (n, k + 1)."""
    near = covariance(kernel, points[:, k : k + 1], points[:, : k + 1])[:, 0]
    if mask is None:
        return near
    xp = array_namespace(near)
    return xp.where(mask[:, : k + 1] & mask[:, k : k + 1], near, xp.zeros_like(near))
