"""What this folder holds: written by the version before a study could say whom to trust.

    git worktree add /tmp/former e46b7f4
    PYTHONPATH=/tmp/former/src python tests/former/make.py FOLDER

Two rounds of a study by each of two methods are released, with real noise; the rest is left for
whoever opens the ledger later.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sottovoce import Agent, Server
from sottovoce.flower.studyfile import read_study

STUDY = """\
[study]
agents = 3
rounds = {rounds}
epsilon = 8.0
delta = 1e-5
method = "{method}"
direction = "minimize"
feature_seed = 7
{more}
[[space.parameters]]
type = "float"
name = "x"
low = 0.0
high = 1.0
"""
STUDIES = {"dp-fts-de": (3, "features = 8\nparticipation = 1.0\n"), "sottovoce": (8, "")}


def make(folder: Path, method: str, rounds: int, more: str) -> None:
    """One study, as far as its second release."""
    folder.mkdir(parents=True)
    path = folder / "study.toml"
    path.write_text(STUDY.format(method=method, rounds=rounds, more=more))
    file = read_study(path)
    server = Server(file.study, folder / "ledger.db", file.budget)
    agents = [Agent(file.study, n, direction="minimize", seed=n) for n in range(3)]
    for agent in agents:
        while agent.starting:
            _try_next(agent)
    while len(server.events) < 2:
        number = server.next_round()
        if number is None:
            break
        server.open_round()
        for agent in agents:
            server.submit(agent.message(number))
        broadcast = server.close_round()
        (folder / f"broadcast-{number}.bin").write_bytes(broadcast.to_bytes())
        for agent in agents:
            agent.receive(broadcast)
            _try_next(agent)
    server.close()


def _try_next(agent: Agent) -> None:
    params = agent.ask()
    agent.tell(params, (params["x"] - 0.3) ** 2)


if __name__ == "__main__":
    for name, (count, settings) in STUDIES.items():
        make(Path(sys.argv[1]) / name, name, count, settings)
