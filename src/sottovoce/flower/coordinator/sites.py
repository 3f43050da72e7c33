"""sites.toml: which Flower node is which site. The coordinator's own; it is never sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sottovoce.errors import InvalidInput, check
from sottovoce.files import read_toml

NODE_LIMIT = 1 << 64  # Flower numbers its nodes in 64 bits


def read_sites(path: str | Path, agents: int) -> dict[int, int]:
    """Node id -> agent number, from a file with one line a site; its order gives the numbers."""
    data = read_toml(path)
    try:
        return _numbered(data, agents)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _numbered(data: dict[str, Any], agents: int) -> dict[int, int]:
    table = data.get("sites")
    check(
        list(data) == ["sites"] and isinstance(table, dict),
        "it must have one table, [sites]",
        tables=list(data),
    )
    nodes: dict[int, int] = {}
    for name, value in table.items() if isinstance(table, dict) else ():
        node = int(value) if isinstance(value, str) and value.isdecimal() else value
        whole = isinstance(node, int) and not isinstance(node, bool) and 0 < node < NODE_LIMIT
        check(whole, "a site must be a Flower node id, a whole number", **{name: value})
        check(node not in nodes, "no two sites may be the same node", **{name: value})
        nodes[node] = len(nodes)
    rule = f"the study has {agents} agents, so {agents} sites must be listed"
    check(len(nodes) == agents, rule, sites=len(nodes))
    return nodes
