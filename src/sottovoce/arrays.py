"""The array type of the maths modules.

They are written to the array API standard, so NumPy arrays go in and out on a CPU and another
library's arrays (PyTorch on a GPU, say) work the same. No static type covers the standard yet,
hence `Any`; shapes stand in the docstrings. What is always NumPy's is `FloatArray` or `IntArray`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

Array: TypeAlias = Any
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

__all__ = ["Array", "FloatArray", "IntArray", "array_namespace"]
