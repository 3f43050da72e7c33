"""A curve: means over x, with their standard errors if they have any."""

from __future__ import annotations

from dataclasses import dataclass

from sottovoce.errors import check


@dataclass(frozen=True)
class Trace:
    """A mean over runs at each x, and the standard error of that mean, if it has one."""

    t: tuple[float, ...]
    mean: tuple[float, ...]
    stderr: tuple[float, ...] | None

    def __post_init__(self) -> None:
        lengths = [len(v) for v in (self.t, self.mean, self.stderr) if v is not None]
        alike = lengths[0] > 0 and len(set(lengths)) == 1
        check(alike, "t, mean and stderr must have one length above 0", lengths=lengths)

    @property
    def last(self) -> tuple[float, float | None]:
        """Where it ends: the mean and its standard error."""
        return self.mean[-1], self.stderr[-1] if self.stderr else None

    @property
    def errors(self) -> tuple[float, ...]:
        """The standard errors, or zeros where there are none to show."""
        return self.stderr or (0.0,) * len(self.mean)

    @property
    def band(self) -> tuple[list[float], list[float]]:
        """The mean less and plus one standard error."""
        pairs = list(zip(self.mean, self.errors, strict=True))
        return [m - e for m, e in pairs], [m + e for m, e in pairs]
