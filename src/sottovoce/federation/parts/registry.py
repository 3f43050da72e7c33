"""Named parts that a method is assembled from. A part is known once its module is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from sottovoce.errors import InvalidInput, check, suggestion

T = TypeVar("T")


class Registry(Generic[T]):
    """The parts of one kind, by name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind  # the method's field that names one
        self._parts: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that makes a part known under a name, which nobody else may have."""

        def known(part: T) -> T:
            rule = f"each {self.kind} needs a name of its own: this one is taken"
            check(name not in self._parts, rule, name=name)
            self._parts[name] = part
            return part

        return known

    @property
    def names(self) -> tuple[str, ...]:
        """All that are known."""
        return tuple(self._parts)

    def __getitem__(self, name: str) -> T:
        if name not in self._parts:
            raise InvalidInput(f"unknown {self.kind} {name!r}; {suggestion(name, self._parts)}")
        return self._parts[name]
