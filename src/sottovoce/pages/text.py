"""Values as words. What these functions return is safe to stand in HTML, `escaped` included."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any


def escaped(value: object) -> str:
    """Any text from a file, made harmless in an element or a quoted attribute."""
    return html.escape(str(value), quote=True)


def number(value: float, digits: int = 4) -> str:
    """A number to so many significant digits, with a real minus sign."""
    shown = f"{value:.{digits}g}"
    return "−" + shown[1:] if shown.startswith("-") else shown


def numbers(values: Sequence[float]) -> list[str]:
    """Numbers of one scale, such as the ticks of an axis, all to as many decimals as one needs."""
    shown = [number(value) for value in values]
    if any("e" in text for text in shown):
        return shown
    places = max((len(text.partition(".")[2]) for text in shown), default=0)
    return [f"{value:.{places}f}".replace("-", "−") for value in values]


def with_error(mean: float, stderr: float | None) -> str:
    """A mean and its standard error, to the decimals that the error makes worth showing."""
    if stderr is None:
        return number(mean)
    if not 1e-6 < stderr < 10:
        return f"{number(mean)} ± {number(stderr, 2)}"
    places = 1 - math.floor(math.log10(stderr))
    return f"{mean:.{places}f} ± {stderr:.{places}f}".replace("-", "−")


def interval(ends: Sequence[float] | None) -> str:
    """Both ends of an interval, to the decimals that its width makes worth showing."""
    if ends is None:
        return "–"
    low, high = ends
    width = high - low
    if not 1e-6 < width < 100:
        return f"[{number(low)}, {number(high)}]"
    places = max(0, 1 - math.floor(math.log10(width)))
    return f"[{low:.{places}f}, {high:.{places}f}]".replace("-", "−")


def epsilon(value: float | None) -> str:
    """ε to two decimals; None is infinite, which is no privacy."""
    return "∞" if value is None else f"{value:.2f}"


def percent(share: float) -> str:
    """A share of one as a percentage."""
    return f"{100 * share:.3g} %"


def duration(seconds: float) -> str:
    """A time in the unit a person would use."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def counted(count: int, one: str, many: str) -> str:
    """`1 figure`, `2 figures`."""
    return f"{count} {one if count == 1 else many}"


def scalar(value: Any) -> str:
    """A setting's value, escaped: booleans and nothing as words, numbers short."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 6) if isinstance(value, float) else escaped(value)


def pairs(values: Mapping[str, Any]) -> str:
    """Parameters on one line, escaped: `regions = 2, clip = 11`."""
    return ", ".join(f"{escaped(k)}&nbsp;=&nbsp;{scalar(v)}" for k, v in values.items())
