"""Where arrays live: in NumPy, or in PyTorch on a device (a GPU, say).

PyTorch is an extra, imported only when a device is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat.numpy
import numpy as np
from array_api_compat import to_device
from numpy.typing import NDArray

from sottovoce.arrays import Array
from sottovoce.errors import InvalidInput, MissingExtra


@dataclass(frozen=True)
class Device:
    """An array library by the array API standard, and a device of it."""

    xp: Any
    device: Any
    torch: Any = None  # the library itself, where it is PyTorch

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled by its name: a library cannot be."""
        return device_named, (None if self.torch is None else str(self.device),)

    def array(self, values: Any) -> Array:
        """The values as an array that lives here."""
        return self.xp.asarray(values, device=self.device)

    def zeros(self, *shape: int, whole: bool = False) -> Array:
        """Zeros, as doubles or as whole numbers."""
        dtype = self.xp.int64 if whole else self.xp.float64
        return self.xp.zeros(shape, dtype=dtype, device=self.device)

    def numpy(self, array: Array) -> NDArray[Any]:
        """An array that lives here as NumPy's."""
        return np.asarray(array if self.torch is None else to_device(array, "cpu"))


NUMPY = Device(array_api_compat.numpy, "cpu")


def device_named(device: str | None) -> Device:
    """NumPy, or PyTorch's device of that name ("cpu", "cuda", "cuda:1", ...)."""
    if device is None:
        return NUMPY
    try:
        import torch
        from array_api_compat import torch as xp
    except ImportError as error:
        raise MissingExtra("computing on a device", "torch") from error
    try:
        torch.zeros(1, dtype=torch.float64, device=device).cpu()
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(
            f"device must be one that PyTorch finds here, got {device!r}: {reason}"
        ) from error
    return Device(xp, torch.device(device), torch)


class DeviceStream:
    """A generator on a device, with the methods of NumPy's that the simulator needs."""

    def __init__(self, where: Device, seed: int) -> None:
        self._torch = where.torch
        generator = where.torch.Generator(device=where.device).manual_seed(seed)
        self._to = {"generator": generator, "device": where.device}

    def standard_normal(self, size: Any) -> Array:
        """Standard normals of that shape."""
        return self._torch.randn(size, dtype=self._torch.float64, **self._to)

    def random(self, size: Any) -> Array:
        """Uniforms in [0, 1) of that shape."""
        return self._torch.rand(size, dtype=self._torch.float64, **self._to)

    def integers(self, high: int, *, size: Any) -> Array:
        """Whole numbers from 0 to high − 1, of that shape."""
        shape = (size,) if isinstance(size, int) else size
        return self._torch.randint(high, shape, **self._to)
