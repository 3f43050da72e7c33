"""Promises, tried one by one."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sottovoce.errors import InvalidInput, MissingExtra, StorageError
from sottovoce.plugins import told

T = TypeVar("T")


def kept(promises: Iterable[Callable[[T], None]], subject: T) -> Iterator[str]:
    """Each promise that holds, in words, as it is tried; raises at the first that is broken.

    Whatever the code of others raises breaks a promise, but for what this machine lacks.
    """
    for promise in promises:
        sentence = (promise.__doc__ or promise.__name__).splitlines()[0].rstrip(".")
        try:
            promise(subject)
        except (MissingExtra, StorageError):
            raise
        except Exception as error:
            raise InvalidInput(f"broken promise: {sentence}: {told(error)}") from error
        yield sentence


def sent(value: T) -> T:
    """The same value as another process would get it."""
    there: T = pickle.loads(pickle.dumps(value))  # noqa: S301, our own bytes
    return there
