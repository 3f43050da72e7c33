"""Where names may stand in a picture so that none covers another, nor a mark.

Lengths are those of the picture, y downwards. A box is (left, top, right, bottom).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Spot = tuple[float, float]
Box = tuple[float, float, float, float]

# Width of a letter and height of a line, in font sizes; generous, as fonts differ
_LETTER, _LINE = 0.58, 1.15
# Where a name is tried, the best first: across and down, in halves of its own size
_SIDES = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1))


def box_around(spot: Spot, half_width: float, half_height: float) -> Box:
    """The box with `spot` in its middle."""
    x, y = spot
    return x - half_width, y - half_height, x + half_width, y + half_height


def along(line: Sequence[Spot], step: float) -> list[Spot]:
    """Spots on a line, about `step` from each other."""
    spots = list(line[:1])
    for (x, y), (to_x, to_y) in pairwise(line):
        parts = max(1, round(max(abs(to_x - x), abs(to_y - y)) / step))
        shares = (k / parts for k in range(1, parts + 1))
        spots += [(x + s * (to_x - x), y + s * (to_y - y)) for s in shares]
    return spots


def place_labels(
    names: Sequence[tuple[str, Spot]], size: float, gap: float, field: Box, marks: Sequence[Box],
    inked: Sequence[Spot],
) -> list[Spot | None]:  # fmt: skip
    """The middle of each name, beside the spot it belongs to; None where there is no room.

    size: of the font. gap: from the spot to the name. field: what a name must stay within.
    marks: what no name may touch. inked: spots on lines, which names avoid as far as they can.
    """
    taken = list(marks)
    places: list[Spot | None] = []
    for name, (x, y) in names:
        half_width, half_height = _LETTER * size * len(name) / 2, _LINE * size / 2
        found = []
        for rank, (across, down) in enumerate(_SIDES):
            spot = (x + across * (gap + half_width), y + down * (gap + half_height))
            box = box_around(spot, half_width, half_height)
            if _within(box, field) and not any(_touch(box, other) for other in taken):
                found.append((sum(_holds(box, ink) for ink in inked), rank, spot, box))
        place = min(found, default=None)
        places.append(place[2] if place else None)
        taken += [place[3]] if place else []
    return places


def _within(box: Box, field: Box) -> bool:
    return box[0] >= field[0] and box[1] >= field[1] and box[2] <= field[2] and box[3] <= field[3]


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _holds(box: Box, spot: Spot) -> bool:
    return box[0] <= spot[0] <= box[2] and box[1] <= spot[1] <= box[3]
