"""`sottovoce check`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from sottovoce.cli.show import OUT, Json, print_json


def check(
    name: Annotated[
        str, typer.Argument(help="A method or a problem: FILE.py:NAME, or one that is known.")
    ],
    as_json: Json = False,
) -> None:
    """Try what a problem or a method of one's own must keep to, promise by promise."""
    from sottovoce.federation.methods import Method
    from sottovoce.lab.contracts import promises_of, subject_named

    subject = subject_named(name)
    kind, kept = "method" if isinstance(subject, Method) else "problem", []
    for sentence in promises_of(subject):
        kept.append(sentence)
        if not as_json:
            OUT.print(Text.assemble(("holds", "green"), f"  {sentence}."), soft_wrap=True)
    if as_json:
        print_json({"name": name, "kind": kind, "holds": kept})
    else:
        OUT.print(Text(f"The {kind} {name} keeps all {len(kept)} promises."), soft_wrap=True)
