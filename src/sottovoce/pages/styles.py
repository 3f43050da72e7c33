"""How each curve looks, on paper and on the page: one choice for both.

Methods have colours safe for colour-blind eyes (after Okabe and Ito, darkened or lightened until
they stand out from the paper) and a dash pattern each. References and the control are greys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

# (on light paper, on dark paper)
COLOURS = {
    "c0": ("#0072b2", "#5ab4f0"),
    "c1": ("#c85000", "#ff8a4c"),
    "c2": ("#00805d", "#34c9a0"),
    "c3": ("#b54f8a", "#ee8fc3"),
    "c4": ("#6a3d9a", "#b79cff"),
    "c5": ("#a06c00", "#f2b134"),
    "c6": ("#2f8fc4", "#7fe0f0"),
    "c7": ("#7a7a00", "#d6d65a"),
    "reference": ("#2b2b2b", "#e4e4e4"),
    "control": ("#767676", "#a0a0a0"),
}
_METHODS = [name for name in COLOURS if name not in ("reference", "control")]

# In widths of the line; () is unbroken. Seven for eight colours: 56 curves before two look alike
_METHOD_DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (5, 2),
    (5, 1.5, 1, 1.5),
    (1.2, 1.2),
    (8, 2),
    (3, 1.2, 3, 1.2, 1, 1.2),
    (3, 1.5),
)
_OTHER_DASHES: tuple[tuple[float, ...], ...] = ((9, 3), (1, 2), (9, 3, 1, 3), (4, 4))
# Of lines to compare with that are straight, where the grey alone would not tell them apart
LEVEL_DASHES: tuple[tuple[float, ...], ...] = (*_OTHER_DASHES, (14, 3), (9, 3, 1, 3, 1, 3))
PLD_DASHES = (4, 2.5)


@dataclass(frozen=True)
class Style:
    """One curve's looks; `name` is a key of COLOURS and a class on the page."""

    name: str
    dashes: tuple[float, ...]
    width: float
    band: float

    @property
    def colour(self) -> str:
        """The colour on light paper."""
        return COLOURS[self.name][0]

    @property
    def in_front(self) -> bool:
        """Methods are drawn over what they are compared with."""
        return self.name in _METHODS

    @property
    def by_pld(self) -> Style:
        """The same for the line by that accountant."""
        return replace(self, dashes=PLD_DASHES, width=self.width * 0.6)


@dataclass(frozen=True)
class Key:
    """How a curve looks and what it is called: a row of the legend."""

    label: str
    style: Style
    value: str = ""  # where the curve ends, or how far its ε reaches
    shape: str | None = None  # of its marks
    hollow: bool = False


ANY = Style("control", (), 2.0, 0.0)  # for a row of a legend that speaks of every series


def styles_for(roles: Sequence[str]) -> list[Style]:
    """A style for each curve, by its role: method, reference or control."""
    styles = []
    crowd = 0.5 if len(roles) > 5 else 1.0  # many bands over each other would hide the lines
    for k, role in enumerate(roles):
        before = list(roles[:k]).count(role)
        if role == "method":
            name = _METHODS[before % len(_METHODS)]
            dashes = _METHOD_DASHES[before % len(_METHOD_DASHES)]
            styles.append(Style(name, dashes, 2.0, 0.18 * crowd))
        else:
            start = 0 if role == "reference" else 1
            dashes = _OTHER_DASHES[(start + before) % len(_OTHER_DASHES)]
            styles.append(Style(role, dashes, 1.6, 0.1 * crowd))
    return styles


def colours_as_css() -> str:
    """The colours as CSS variables, light and dark, and a class for each that uses it."""
    light, dark = (
        "".join(f"--{name}:{pair[k]};" for name, pair in COLOURS.items()) for k in (0, 1)
    )
    classes = "".join(f".{name}{{--line:var(--{name})}}\n" for name in COLOURS)
    night = f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{{light}}}\n{night}\n{classes}"
