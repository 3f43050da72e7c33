"""sites.toml: which Flower node is which site. The coordinator's own; it is never sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sottovoce.errors import InvalidInput, check
from sottovoce.files import read_toml, write_text

NAME = "sites.toml"
NODE_LIMIT = 1 << 64  # Flower numbers its nodes in 64 bits
_HEADER = """\
# Which Flower node is which site, by the key that the coordinator registered. The order gives
# the agents' numbers: add at the end, never sort.
"""


def read_sites(path: str | Path) -> dict[str, str]:
    """Site -> node id, from a file with one line a site, in its order."""
    data = read_toml(path)
    sites: dict[str, str] = {}
    try:
        table = data.get("sites")
        alone = list(data) == ["sites"] and isinstance(table, dict)
        check(alone, "it must have one table, [sites]", tables=list(data))
        for name, value in data["sites"].items():
            node = int(value) if isinstance(value, str) and value.isdecimal() else value
            whole = isinstance(node, int) and not isinstance(node, bool) and 0 < node < NODE_LIMIT
            check(whole, "a site must be a Flower node id, a whole number", **{name: value})
            rule = "no two sites may be the same node"
            check(str(node) not in sites.values(), rule, **{name: value})
            sites[name] = str(node)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    return sites


def numbered_sites(path: str | Path, agents: int) -> dict[int, int]:
    """Node id -> agent number, which the order gives; one for each agent of the study."""
    nodes = [int(node) for node in read_sites(path).values()]
    rule = f"{path}: the study has {agents} agents, so {agents} sites must be listed"
    check(len(nodes) == agents, rule, sites=len(nodes))
    return {node: number for number, node in enumerate(nodes)}


def write_sites(path: Path, sites: Mapping[str, str]) -> None:
    """Write sites.toml."""
    lines = [f'{name} = "{node}"' for name, node in sites.items()]
    write_text(path, "\n".join([f"{_HEADER}[sites]", *lines]) + "\n")
