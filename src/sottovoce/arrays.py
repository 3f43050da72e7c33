"""The array type of the maths modules.

They are written to the array API standard, so NumPy arrays go in and out on a CPU and another
library's arrays (PyTorch on a GPU, say) work the same. No static type covers the standard yet,
hence `Any`; shapes stand in the docstrings.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from array_api_compat import array_namespace

Array: TypeAlias = Any

__all__ = ["Array", "array_namespace"]
