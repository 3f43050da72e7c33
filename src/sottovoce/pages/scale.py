"""The axes: how far they reach and where their ticks stand, on paper and on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.pages.trace import Trace


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, linear or logarithmic."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """Where a value stands, from 0 to 1; values beyond the ends stand at the ends."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, about: int) -> list[float]:
        """Round numbers within the axis."""
        return _log_ticks(self) if self.log else _linear_ticks(self.low, self.high, about)


def x_axis(traces: Sequence[Trace]) -> Axis:
    """The axis that holds every x, no wider."""
    values = [x for trace in traces for x in trace.t]
    return _not_empty(min(values), max(values))


def y_axis(traces: Sequence[Trace]) -> Axis:
    """An axis for the lines and their bands: from 0 unless all stay far away from it."""
    bands = [trace.band for trace in traces]
    low, high = min(min(lows) for lows, _ in bands), max(max(highs) for _, highs in bands)
    if 0 < low < 0.4 * high:
        low = 0.0
    room = 0.04 * (high - low)
    bottom = min(value for trace in traces for value in trace.mean)
    if bottom >= 0 and low - room <= 0:  # a band may dip below 0, what it is a band of may not
        return _not_empty(0.0, high + room)
    return _not_empty(low - room, high + room)


def log_axis(traces: Sequence[Trace]) -> Axis | None:
    """A logarithmic axis for the lines; None where it would show nothing more."""
    values = [value for trace in traces for value in trace.mean]
    low, high = min(values), max(values)
    if low <= 0 or high / low < 5:
        return None
    return Axis(low / 1.3, high * 1.1, log=True)


def _not_empty(low: float, high: float) -> Axis:
    if high > low:
        return Axis(low, high)
    room = abs(low) / 2 or 0.5
    return Axis(low - room, high + room)


def _linear_ticks(low: float, high: float, about: int) -> list[float]:
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= 0.999 * rough), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _log_ticks(axis: Axis) -> list[float]:
    first, last = math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high))
    steps = (1,) if last - first > 4 else (1, 2, 5)
    ticks = [m * 10.0**k for k in range(first, last + 1) for m in steps]
    return [tick for tick in ticks if axis.low <= tick <= axis.high]
