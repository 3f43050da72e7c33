"""What trials side by side bring a site: time, and what is lost by asking before values are known.

    python benchmarks/workers.py [--only time|loss]

time: a site goes through a study of 6 initial and 20 later trials (method sottovoce, releases in
rounds 0, 2, 4 and 6) with 1, 2 and 4 workers; objectives that wait, as on a device or another
process, that train in compiled code, and that compute in Python.
loss: regret after 30 trials of a search alone (method gp, Branin and Hartmann-3), k asked for at a
time, each batch told when all of it has ended.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import Trial
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from sottovoce import Agent, Budget, FederatedStudy, Float, Mechanism, Server, Space
from sottovoce.federation.methods import GP, SOTTOVOCE
from sottovoce.flower.site.site import Site
from sottovoce.flower.studyfile import StudyFile
from sottovoce.flower.wire import Call
from sottovoce.lab.problems import problem_named

ROUNDS, INITIAL, RUNS, TRIALS = 20, 6, 20, 30
WORKERS, AT_ONCE = (1, 2, 4), (1, 2, 4, 8)
SPACE = Space([Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)])
ROWS, CLASSES = make_classification(4000, 20, random_state=0)


def waits(trial: Trial) -> float:
    time.sleep(0.5)
    return _bowl(trial)


def trains(trial: Trial) -> float:
    value = _bowl(trial)
    forest = RandomForestClassifier(20, max_features=0.3 + 0.7 * trial.params["x"], random_state=0)
    forest.fit(ROWS[:3000], CLASSES[:3000])
    return value - float(forest.score(ROWS[3000:], CLASSES[3000:]))


def computes(trial: Trial) -> float:
    value = _bowl(trial)
    for k in range(4_000_000):
        value += 1e-12 * (k % 3)
    return value


def _bowl(trial: Trial) -> float:
    x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
    return (x - 0.3) ** 2 + (y - 0.6) ** 2


def seconds(objective: Callable[[Trial], float], workers: int) -> float:
    """Of a site's own time in a whole study."""
    method = replace(SOTTOVOCE, initial=INITIAL, mechanism=Mechanism(clip=1.0, noise=5.0))
    study = FederatedStudy(SPACE, method, agents=2, rounds=ROUNDS)
    file, spent = StudyFile(study, 5.0, 1e-5, direction="minimize"), 0.0
    constants = json.loads(json.dumps(file.constants))
    with tempfile.TemporaryDirectory() as name:
        server = Server(study, Path(name) / "ledger.db", Budget(1e5, 1e-5, "moments"))
        site = Site(file, objective, Path(name) / "site", workers=workers)
        for step in file.steps:
            last = server.last_broadcast()
            chain = () if last is None else server.chain
            began = time.perf_counter()
            asked = Call(study.fingerprint, step.round, 0, constants, last, None, chain)
            reply = site.answer(asked)
            spent += time.perf_counter() - began
            if reply.answer == "vector":
                server.open_round()
                server.submit(reply.message)
                server.close_round()
        assert reply.answer == "done", reply.reason
        server.close()
    return spent


def regrets(name: str, at_once: int) -> NDArray[np.float64]:
    """After all trials, of each run."""
    problem = problem_named(name)
    setting = problem.setting
    objectives = problem.draw(RUNS, np.random.default_rng(0))
    study = FederatedStudy(
        setting.space, replace(GP, initial=INITIAL), agents=RUNS, rounds=TRIALS - INITIAL
    )
    agents = [Agent(study, n, seed=n) for n in range(RUNS)]
    best = np.full(RUNS, -np.inf)
    done = 0
    while done < TRIALS:
        batch = min(at_once, (INITIAL if done < INITIAL else TRIALS) - done)
        asked = [_asked(agent, batch) for agent in agents]
        points = [[setting.space.encode(params) for params in some] for some in asked]
        values = objectives.values(np.asarray(points))
        for agent, some, row in zip(agents, asked, values, strict=True):
            for params, value in zip(some, row, strict=True):
                agent.tell(params, float(value))
        best = np.maximum(best, values.max(axis=1))
        done += batch
    return np.asarray(objectives.optimum - best)


def _asked(agent: Agent, count: int) -> list[dict[str, Any]]:
    running: list[dict[str, Any]] = []
    for _ in range(count):
        running.append(agent.ask(running))
    return running


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["time", "loss"])
    asked = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if asked.only != "loss":
        print(f"seconds of a site in a study of {INITIAL} + {ROUNDS} trials, by workers")
        for objective in (waits, trains, computes):
            times = [seconds(objective, workers) for workers in WORKERS]
            each = "  ".join(f"{k}: {s:.1f}" for k, s in zip(WORKERS, times, strict=True))
            print(f"{objective.__name__:>10}  {each}")
    if asked.only != "time":
        print(f"regret after {TRIALS} trials, {RUNS} runs, by how many are asked for at a time")
        for name in ("branin", "hartmann3"):
            for k in AT_ONCE:
                found = regrets(name, k)
                error = found.std(ddof=1) / RUNS**0.5
                print(f"{name:>10}  {k}: mean {found.mean():.4f} ± {error:.4f}")


if __name__ == "__main__":
    main()
