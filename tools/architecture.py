"""Draws the import graph by folder into docs/architecture.md: `make architecture`.

    python tools/architecture.py [--check]

Layers are listed here once; the test of the house reads them too.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "sottovoce"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- drawn by `make architecture` -->", "<!-- end of the drawing -->"

# A folder (or a module at the top) imports only from those before it.
LAYERS = (
    "errors",
    "files",
    "arrays",
    "device",
    "plugins",
    "pages",
    "space",
    "optim",
    "gp",
    "acquisition",
    "privacy",
    "secure_sum",
    "federation",
    "simulation",
    "optuna",
    "flower",
    "lab",
    "cli",
)
FOUNDATION = ("errors", "files", "arrays", "device", "plugins")


def room_of(path: Path) -> str:
    """The layer that a file of the package is in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms_imported(path: Path) -> set[str]:
    """The layers that a file imports, wherever in the file."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sottovoce":
            parts = (node.module or "").split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            rooms |= {parts[1] for parts in names if parts[0] == "sottovoce" and len(parts) > 1}
    return rooms - {"__version__"}


def imports_by_room() -> dict[str, set[str]]:
    """What each layer imports of the others."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = room_of(path)
        if room != "__init__":
            found.setdefault(room, set()).update(rooms_imported(path) - {room})
    return found


def drawing() -> str:
    """The graph as Mermaid's text, and a table of imports.

    An arrow that others imply is left out: who imports `federation` may import what that does.
    """
    imports = imports_by_room()
    lines = ["```mermaid", "graph TD", f'  base["{" · ".join(FOUNDATION)}"]']
    drawn = [room for room in LAYERS if room not in FOUNDATION]
    reached: dict[str, set[str]] = {}
    for room in drawn:
        direct = imports.get(room, set()) - set(FOUNDATION)
        reached[room] = direct.union(*(reached[other] for other in direct))
        implied = set().union(*(reached[other] for other in direct))
        arrows = [other for other in drawn if other in direct - implied] or ["base"]
        lines += [f"  {room} --> {other}" for other in arrows]
    lines += ["```", "", "| folder | modules | imports |", "|---|--:|---|"]
    for room in drawn:
        files = [path for path in PACKAGE.rglob("*.py") if room_of(path) == room]
        others = [other for other in LAYERS if other in imports.get(room, set())]
        lines.append(f"| `{room}/` | {len(files)} | {', '.join(others)} |")
    return "\n".join(lines)


def page_with_drawing() -> str:
    """The page as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{drawing()}\n{END}{rest.split(END)[1]}"


def main() -> int:
    """Draw, or check that the drawing is true."""
    wanted = page_with_drawing()
    if PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    if "--check" in sys.argv:
        print(f"{PAGE} is not what `make architecture` draws")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
