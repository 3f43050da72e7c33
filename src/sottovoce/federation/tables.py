"""What all agents of a study share about the points of its finite space, worked out once.

Symbols: D dimensions, K points, M features, r rank of the exact features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sottovoce.acquisition.thompson import exact_table
from sottovoce.arrays import Array
from sottovoce.device import Device
from sottovoce.federation.study import FederatedStudy
from sottovoce.gp.kernel import Kernel


@dataclass(frozen=True, eq=False)
class PointTables:
    """Arrays over all points, where a batch's arrays live."""

    study: FederatedStudy
    kernel: Kernel | None
    device: Device

    @cached_property
    def points(self) -> Array:
        """All points, (K, D)."""
        return self.device.array(self.study.space.points())

    @cached_property
    def boxes(self) -> Array:
        """The region that each lies in, (K,)."""
        return self.device.array(self.study.regions.index(self.study.space.points()))

    @cached_property
    def shared(self) -> Array:
        """φ at all points, (K, M)."""
        return self.device.array(np.asarray(self.study.features(self.study.space.points())))

    @cached_property
    def exact(self) -> Array | None:
        """Exact features of the kernel, (K, r), if all agents have the same."""
        if self.kernel is None:
            return None
        # rows are what is taken, so they should lie together
        table = np.ascontiguousarray(exact_table(self.kernel, self.study.space))
        return self.device.array(table)


@lru_cache(maxsize=1)
def point_tables(study: FederatedStudy, kernel: Kernel | None, device: Device) -> PointTables:
    """The tables of a study, the same for all its batches."""
    return PointTables(study, kernel, device)
