"""A method's settings as options of a command, one for each there is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from sottovoce.federation.settings import SETTINGS


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with `**changes` an option for every setting of a method."""
    signature = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in signature.parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[setting.kind | None, typer.Option(help=_sentence(setting.doc))],
        )
        for name, setting in SETTINGS.items()
    ]

    @wraps(command)
    def with_options(**given: Any) -> None:
        command(**given)

    known = signature.replace(parameters=[*own, *options])
    with_options.__signature__ = known  # type: ignore[attr-defined]
    with_options.__annotations__ = {}
    return with_options


def _sentence(doc: str) -> str:
    return f"{doc[:1].upper()}{doc[1:]}." if doc[1:2].isalpha() else f"{doc}."
