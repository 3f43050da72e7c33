"""The array type of the maths modules.

They are written to the array API standard, so NumPy arrays go in and out on a CPU and another
library's arrays (PyTorch on a GPU, say) work the same. No static type covers the standard yet,
hence `Any`; shapes stand in the docstrings. What is always NumPy's is `FloatArray` or `IntArray`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import array_api_compat
import numpy as np
from array_api_compat import numpy as numpy_namespace
from numpy.typing import NDArray

Array: TypeAlias = Any
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


def array_namespace(*arrays: Array) -> Any:
    """The library that arrays are of. NumPy's at once: every small step asks for it."""
    for each in arrays:
        if type(each) is not np.ndarray:
            return array_api_compat.array_namespace(*arrays)
    return numpy_namespace
