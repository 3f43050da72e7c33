"""sites.toml: which Flower node is which site, and with which keys it seals and signs.

The node ids are the coordinator's own affair. The keys are everybody's, where nobody is to be
trusted with vectors: every party holds the same file, and its digest is one of the study's
constants.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import InvalidInput, StorageError, StudyMismatch, check
from sottovoce.files import read_toml, write_text

if TYPE_CHECKING:  # sealing is an extra, which a study with a trusted coordinator does without
    from sottovoce.secure_sum.keys import Identity, PublicKeys

NAME = "sites.toml"
NODE_LIMIT = 1 << 64  # Flower numbers its nodes in 64 bits
EMPTY: Mapping[str, str] = {}
TABLES = (["sites"], ["sites", "keys"], ["sites", "aggregators", "keys"])
_HEADER = """\
# Which Flower node is which site, by the key that the coordinator registered. The order gives
# the agents' numbers: add at the end, never sort.
"""
_SUMMING = """
# Those who do nothing but sum; all of them are needed for every release.
[aggregators]"""
_KEYS = """
# What sites seal and sign with. Every site needs this file beside its study.toml, on a way that it
# trusts: `sottovoce join` prints the digest of these keys, which must be the same for all.
[keys]
"""


@dataclass(frozen=True)
class Roster:
    """The parties of a study and their public keys, in the order of their numbers."""

    names: tuple[str, ...]
    keys: tuple[PublicKeys, ...]

    @property
    def digest(self) -> str:
        """What names all of it: the same exactly when names, order and keys are."""
        pairs = [[name, key.text] for name, key in zip(self.names, self.keys, strict=True)]
        return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()

    def check_mine(self, number: int, identity: Identity) -> None:
        """Refuse to be a party whose keys are another's."""
        if identity.public != self.keys[number]:
            raise StudyMismatch(
                f"the keys of agent {number} ({self.names[number]}) in {NAME} are not this site's"
            )


def read_identity(path: Path) -> Identity:
    """A party's secret keys, from its own file."""
    from sottovoce.secure_sum.keys import Identity

    try:
        text = path.read_text(encoding="ascii")
        secret = base64.b64decode(text.strip(), validate=True)
    except (OSError, ValueError) as error:  # whose words may hold what was read
        raise StorageError(f"{path} cannot be read as a sealing key") from error
    return Identity(secret)


def simulated_identity(agent: int) -> Identity:
    """A simulated site's keys, which anybody can work out: they protect nobody."""
    from sottovoce.secure_sum.keys import SECRET, Identity

    return Identity(hashlib.shake_256(f"sottovoce/simulation/{agent}".encode()).digest(SECRET))


@lru_cache(maxsize=1)
def simulated_roster(agents: int) -> Roster:
    """The keys of all sites of a simulation."""
    keys = tuple(simulated_identity(agent).public for agent in range(agents))
    return Roster(tuple(f"site-{agent}" for agent in range(agents)), keys)


def read_sites(path: str | Path) -> dict[str, str]:
    """Site -> node id, from a file with one line a site, in its order."""
    return read_parties(path)[0]


def read_parties(path: str | Path) -> tuple[dict[str, str], dict[str, str]]:
    """The sites, and the aggregators if there are any: name -> node id, in their order."""
    data = read_toml(path)
    nodes: dict[str, str] = {}
    try:
        _check_tables(data)
        tables = [data["sites"], data.get("aggregators", {})]
        for name, value in (pair for table in tables for pair in table.items()):
            node = int(value) if isinstance(value, str) and value.isdecimal() else value
            whole = isinstance(node, int) and not isinstance(node, bool) and 0 < node < NODE_LIMIT
            check(whole, "a site must be a Flower node id, a whole number", **{name: value})
            rule = "no two sites may be the same node"
            check(str(node) not in nodes.values() and name not in nodes, rule, **{name: value})
            nodes[name] = str(node)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    sites, aggregators = ({name: nodes[name] for name in table} for table in tables)
    return sites, aggregators


def _check_tables(data: Mapping[str, Any]) -> None:
    right = list(data) in TABLES and all(isinstance(table, dict) for table in data.values())
    rule = "it must have a table [sites], then [aggregators] if there are any, then [keys] if any"
    check(right, rule, tables=list(data))


def read_roster(path: str | Path) -> Roster:
    """The sites' public keys, from a file that has them all."""
    from sottovoce.secure_sum.keys import PublicKeys

    data = read_toml(path)
    try:
        _check_tables(data)
        keys = data.get("keys", {})
        rule = "every site must have its line in [keys], in the order of [sites]"
        wanted = [*data["sites"], *data.get("aggregators", {})]
        missing = [name for name in wanted if name not in keys]
        check(list(keys) == wanted, rule, missing=missing)
        parsed = []
        for name, text in keys.items():
            check(isinstance(text, str), "keys must be a line of base64", site=name)
            parsed.append(PublicKeys.parse(text))
        rule = "no two sites may have the same keys"
        check(len({key.data for key in parsed}) == len(parsed), rule)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    return Roster(tuple(keys), tuple(parsed))


def read_keys(path: str | Path) -> dict[str, str]:
    """The lines of [keys], as far as there are any."""
    table = read_toml(path).get("keys", {})
    return {str(name): str(text) for name, text in table.items()} if table else {}


def numbered_sites(path: str | Path, agents: int) -> dict[int, int]:
    """Node id -> agent number, which the order gives; one for each agent of the study."""
    nodes = [int(node) for node in read_sites(path).values()]
    rule = f"{path}: the study has {agents} agents, so {agents} sites must be listed"
    check(len(nodes) == agents, rule, sites=len(nodes))
    return {node: number for number, node in enumerate(nodes)}


def numbered_aggregators(path: str | Path, agents: int) -> dict[int, int]:
    """Node id -> number among the parties, of those that do nothing but sum: after all sites."""
    nodes = [int(node) for node in read_parties(path)[1].values()]
    return {node: number for number, node in enumerate(nodes, agents)}


def write_sites(
    path: Path,
    sites: Mapping[str, str],
    keys: Mapping[str, str] = EMPTY,
    aggregators: Mapping[str, str] = EMPTY,
) -> None:
    """Write sites.toml, with the keys of parties that have sent any."""
    lines = [f"{_HEADER}[sites]", *(f'{name} = "{node}"' for name, node in sites.items())]
    if aggregators:
        lines += [_SUMMING, *(f'{name} = "{node}"' for name, node in aggregators.items())]
    known = {name: keys.get(name) for name in (*sites, *aggregators)}
    if any(known.values()):
        lines += [_KEYS.rstrip(), *(f'{name} = "{text}"' for name, text in known.items() if text)]
    write_text(path, "\n".join(lines) + "\n")
