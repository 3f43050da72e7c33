"""A method's settings as options of a command, one for each there is, and help that says them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

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


class TellsDefaults(TyperCommand):
    """A command whose help says what options are if not given, and which names there are.

    Looked up only when help is asked for: that loads the lab.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, with what is known by then."""
        from sottovoce.federation.methods import METHODS, method_named
        from sottovoce.federation.methods import PLUGINS as OTHER_METHODS
        from sottovoce.federation.settings import setting_of
        from sottovoce.lab.experiments.config import RunConfig
        from sottovoce.lab.problems import PLUGINS as OTHER_PROBLEMS
        from sottovoce.lab.problems import PROBLEMS
        from sottovoce.plugins import installed

        usual = RunConfig()
        method = method_named(usual.method)
        for option in self.params:
            name = option.name or ""
            if name in SETTINGS:
                value = setting_of(method, name)
                option.help = f"{option.help} ({usual.method}: {_written(value)})"
            elif getattr(usual, name, None) is not None:
                option.help = f"{option.help} (default: {getattr(usual, name)})"
        methods = ", ".join([*METHODS, *installed(OTHER_METHODS)])
        problems = ", ".join([*PROBLEMS, *installed(OTHER_PROBLEMS)])
        self.epilog = (
            f"Methods: {methods}; or FILE.py:NAME.\n\nProblems: {problems}; or FILE.py:NAME; with "
            "options as in heterogeneous:alpha=0.7.\n\nAgents and rounds are the problem's own if "
            f"not given, settings the method's: in brackets those of {usual.method}."
        )
        super().format_help(ctx, formatter)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _sentence(doc: str) -> str:
    return f"{doc[:1].upper()}{doc[1:]}." if doc[1:2].isalpha() else f"{doc}."
