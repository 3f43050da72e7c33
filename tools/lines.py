"""Lines of a tree's folders, and of these code, no import, comment, docstring: lines.py [TREE]."""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from pathlib import Path

CODE = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)


def code_lines(path: Path) -> int:
    """How many lines of a file hold code."""
    left_out = set[int]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and (said or isinstance(node, ast.Import | ast.ImportFrom)):
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
    with path.open(encoding="utf-8") as file:
        tokens = [t for t in tokenize.generate_tokens(file.readline) if t.type in CODE]
    return len({k for t in tokens for k in range(t.start[0], t.end[0] + 1)} - left_out)


def main() -> None:
    """Print a line a folder, and the sum."""
    root, lines, code = Path(*sys.argv[1:]) / "src" / "sottovoce", Counter[str](), Counter[str]()
    for path in sorted(root.rglob("*.py")):
        for name in ("/".join(path.relative_to(root).parts[:-1]) or "top", "all"):
            lines[name] += len(path.read_text("utf-8").splitlines())
            code[name] += code_lines(path)
    for name in sorted(lines):
        print(f"{name:<24}{lines[name]:>8}{code[name]:>8}")


if __name__ == "__main__":
    main()
