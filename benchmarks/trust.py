"""What trusting nobody costs a release: the same study rehearsed twice, real processes and TLS.

    python benchmarks/trust.py [--sites 5] [--rounds 3] [--aggregators 3]

For each mode the seconds from the opening of a step to its release, by the coordinator's journal,
and of the second exchange alone; the objective takes no time. Medians over the releases after the
first, whose initial trials are not the mode's.
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import datetime
from pathlib import Path
from statistics import median

from sottovoce.flower.coordinator.journal import NAME, read_journal
from sottovoce.flower.deploy.commands import STATE
from sottovoce.flower.deploy.processes import stoppable
from sottovoce.flower.deploy.project import make_project
from sottovoce.flower.deploy.rehearsal import FOLDER, HUB, rehearse

OBJECTIVE = """
def objective(trial):
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2
"""
STUDY = """[study]
agents = {sites}
rounds = {rounds}
epsilon = 20.0
method = "dp-fts-de"
participation = 1.0
features = {features}
direction = "minimize"
{trust}

[[space.parameters]]
type = "float"
name = "x"
low = 0.0
high = 1.0
"""


def releases(trust: str, options: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Seconds of each release, and of its second exchange."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "study"
        make_project(project, agents=options.sites, rounds=options.rounds, epsilon=20.0)
        text = STUDY.format(**vars(options), trust=trust)
        (project / "study.toml").write_text(text)
        (project / "objective.py").write_text(OBJECTIVE)
        rehearse(project, options.sites)
        lines = read_journal(project / FOLDER / HUB / STATE / NAME)
    at: dict[str, dict[int, float]] = {"opened": {}, "settled": {}, "closed": {}}
    for line in lines:
        if line["event"] in at:
            at[line["event"]][line["round"]] = datetime.fromisoformat(line["time"]).timestamp()
    whole = [at["closed"][r] - at["opened"][r] for r in at["closed"]]
    return whole, [at["closed"][r] - at["settled"][r] for r in at["settled"]]


def main() -> None:
    parser = argparse.ArgumentParser(description="A release with and without anybody to trust.")
    parser.add_argument("--sites", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--features", type=int, default=64, help="M, of a vector")
    parser.add_argument("--aggregators", type=int, default=0, help="also with so many of them")
    options = parser.parse_args()
    nobody = 'trust = "nobody"'
    modes = {"the coordinator is trusted": 'trust = "coordinator"', "nobody is": nobody}
    if options.aggregators:
        words = f"nobody is; {options.aggregators} aggregators"
        modes[words] = f"{nobody}\naggregators = {options.aggregators}"
    print("| mode | a release, s | of it the second exchange, s | the first release, s |")
    print("|---|--:|--:|--:|")
    with stoppable():
        for mode, trust in modes.items():
            whole, second = releases(trust, options)
            alone = f"{median(second[1:]):.0f}" if second else "-"
            print(f"| {mode} | {median(whole[1:]):.0f} | {alone} | {whole[0]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
