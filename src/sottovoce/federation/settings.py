"""The settings of a method that a person may change, flat, each by one name.

A setting is a field of `Method` or of one of its parts, with its doc in the field's metadata and
its bounds where the dataclass checks them. The command line, figures' TOML files and study files
read them from here: a new field is known everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sottovoce.errors import InvalidInput, check, suggestion
from sottovoce.federation.methods import Method
from sottovoce.federation.schedule import ReleaseSchedule, SoloProbability
from sottovoce.federation.weights import NAMED_WEIGHTS
from sottovoce.privacy.release import Mechanism

_WORDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a word",
    bool: "true or false",
}


@dataclass(frozen=True)
class MethodSetting:
    """One setting: its type, what it is, and the part of the method that has it as a field."""

    name: str
    kind: type
    doc: str
    part: str = ""  # the method's field that holds it; empty: the method itself
    field: str = ""


def _documented(owner: type, part: str = "") -> list[MethodSetting]:
    """The fields of a dataclass that have a doc, as settings of the same name."""
    kinds = get_type_hints(owner)
    return [
        MethodSetting(f.name, plain_type(kinds[f.name]), f.metadata["doc"], part, f.name)
        for f in fields(owner)
        if "doc" in f.metadata
    ]


def plain_type(hint: Any) -> type:
    """The plain type behind an annotation such as `int | None` or a Literal of words."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is Literal:
        return str
    return hint  # type: ignore[no-any-return]


SETTINGS: dict[str, MethodSetting] = {
    setting.name: setting
    for setting in (
        *_documented(Method),
        *_documented(Mechanism, "mechanism"),
        *_documented(ReleaseSchedule, "releases"),
        MethodSetting("solo", str, SoloProbability.DOC, "solo", "kind"),
        MethodSetting("weights", str, f"weights of regions: {', '.join(NAMED_WEIGHTS)}", "weights"),
    )
}


def check_settings(changes: Mapping[str, Any]) -> None:
    """Refuse an unknown setting, or one of the wrong type."""
    for name, value in changes.items():
        if name not in SETTINGS:
            raise InvalidInput(f"unknown setting {name!r}; {suggestion(name, SETTINGS)}")
        check_type(name, SETTINGS[name].kind, value)


def check_type(name: str, kind: type, value: object) -> None:
    """Refuse a value of another type; its bounds are the dataclass's affair."""
    wanted = (int, float) if kind is float else kind
    right = isinstance(value, wanted) and (kind is bool or not isinstance(value, bool))
    check(right, f"{name} must be {_WORDS[kind]}", **{name: value})


def setting_of(method: Method, name: str) -> Any:
    """What the setting of that name is in a method; None where the method lacks its part."""
    setting = SETTINGS[name]
    owner = getattr(method, setting.part) if setting.part else method
    if setting.part == "weights":
        return next((word for word, known in NAMED_WEIGHTS.items() if known == owner), None)
    return getattr(owner, setting.field, None)


def with_settings(method: Method, changes: Mapping[str, Any]) -> Method:
    """The method with these settings changed; what does not fit it is refused."""
    check_settings(changes)
    parts: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        setting = SETTINGS[name]
        parts.setdefault(setting.part, {})[setting.field] = value
    changed = parts.pop("", {})
    if "weights" in parts:
        name = parts.pop("weights")[""]
        rule = f"weights must be one of {', '.join(NAMED_WEIGHTS)}"
        check(name in NAMED_WEIGHTS, rule, weights=name)
        changed["weights"] = NAMED_WEIGHTS[name]
    for part, values in parts.items():
        before = getattr(method, part)
        if before is None:
            names = ", ".join(values)
            raise InvalidInput(f"method {method.name!r} protects nothing, so it takes no {names}")
        changed[part] = replace(before, **values)
    return replace(method, **changed)
