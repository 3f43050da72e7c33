"""How an agent models its own objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.errors import check
from sottovoce.gp.kernel import Kernel


@dataclass(frozen=True)
class Surrogate:
    """How an agent models its own objective: by a Gaussian process.

    Args:
        kernel: fixed, or None: fitted by marginal likelihood.
        refit: after how many trials it is fitted anew.
        standardise: whether values are modelled with mean 0 and variance 1, or as they come (the
            paper's way).

    Example:
        >>> study = FederatedStudy(Space([Float("x", 0.0, 1.0)]), TS, agents=1, rounds=5)
        >>> agent = Agent(study, 0, surrogate=Surrogate(Kernel(0.3, noise=1e-4)))
        >>> agent.surrogate.kernel.lengthscale
        0.3
    """

    kernel: Kernel | None = None
    refit: int = 5
    standardise: bool = True

    def __post_init__(self) -> None:
        check(self.refit >= 1, "refit must be at least 1", refit=self.refit)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for comparing a saved surrogate with another."""
        kernel = None if self.kernel is None else kernel_to_list(self.kernel)
        return {"kernel": kernel, "refit": self.refit, "standardise": self.standardise}


def kernel_to_list(kernel: Kernel) -> list[Any]:
    """A kernel, or a batch of them, as plain data."""
    return [np.asarray(part).tolist() for part in kernel.parts]


def kernel_from_list(parts: list[Any]) -> Kernel:
    """The kernel that `kernel_to_list` wrote."""
    arrays = [np.asarray(part, dtype=float) for part in parts]
    right = len(arrays) == 4 and all(np.all(a > 0) for a in arrays[:3]) and np.all(arrays[3] >= 0)
    check(bool(right), "a kernel has 3 sizes above 0, and a trust", parts=parts)
    return Kernel(*(float(part) if part.ndim == 0 else part for part in arrays))
