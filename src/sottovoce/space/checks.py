"""What may be given for a space, for a value, for a point of the cube; all else is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from array_api_compat import is_array_api_obj, is_numpy_array

from sottovoce.arrays import Array, array_namespace
from sottovoce.errors import SpaceError, suggestion


def require(condition: bool, message: str) -> None:
    """Raise SpaceError unless the condition holds."""
    if not condition:
        raise SpaceError(message)


def check_known(what: str, got: object, known: Sequence[str]) -> None:
    """An unknown word is answered with the nearest known one."""
    if got not in known:
        raise SpaceError(f"unknown {what} {got!r}: {suggestion(str(got), known)}")


def check_keys(
    what: str, given: object, needed: Sequence[str], optional: Sequence[str] = ()
) -> None:
    """`given` must be a mapping with the needed keys and none but the optional ones besides."""
    if not isinstance(given, Mapping):
        raise SpaceError(f"{what}: a mapping is needed, got {given!r}")
    for key in given:
        check_known(what, key, [*needed, *optional])
    missing = [key for key in needed if key not in given]
    require(not missing, f"every {what} must be given, missing {missing}")


def in_cube(where: str, u: Array, width: int, single: bool = False) -> Array:
    """`u` clipped to the cube, (..., width), or exactly (width,) if `single`."""
    if is_numpy_array(u) or not is_array_api_obj(u):
        try:
            u = np.asarray(u, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise SpaceError(f"{where}: coordinates must be numbers, got {u!r}") from error
    shape, wanted = tuple(u.shape), f"({width},)" if single else f"(..., {width})"
    fits = shape == (width,) if single else shape[-1:] == (width,)
    require(fits, f"{where}: coordinates must have shape {wanted}, got {shape=}")
    xp = array_namespace(u)
    if xp.any(xp.isnan(u)):
        raise SpaceError(f"{where}: coordinates must not be NaN, got {u}")
    return xp.clip(u, 0.0, 1.0)
