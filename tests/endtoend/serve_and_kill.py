"""Serves a study in a child process, kills it at random moments, and checks the ledger.

    python serve_and_kill.py FOLDER KILLS SEED

What the child would send over a network it writes to FOLDER/outbox, one file a sending. After
every kill the ledger must verify, hold every round that left the process, byte for byte, and
account for at least what was sent. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from sottovoce import (
    DP_FTS_DE,
    Budget,
    FederatedStudy,
    Float,
    Mechanism,
    Message,
    Server,
    Space,
    epsilon,
)

METHOD = replace(DP_FTS_DE, features=20, mechanism=Mechanism(clip=5.0, participation=0.5))
STUDY = FederatedStudy(Space([Float("x", 0, 1)]), METHOD, agents=6, rounds=100_000)
BUDGET = Budget(1e6, 1e-5, "moments")


def serve(folder: Path) -> None:
    """Run rounds for ever, as a restarted server would: first send the last round again."""
    server = Server(STUDY, folder / "study.ledger", BUDGET)
    following = server.next_round()
    if following:
        send(folder, server, following - 1)
    generator = np.random.default_rng()
    while True:
        number = server.open_round()
        for agent in range(STUDY.agents):
            vector = generator.standard_normal(METHOD.features)
            server.submit(Message(STUDY.fingerprint, number, agent, vector))
        server.close_round()
        send(folder, server, number)


def send(folder: Path, server: Server, number: int) -> None:
    name = f"{number:06d}-{time.monotonic_ns()}"
    (folder / "outbox" / name).write_bytes(server.broadcast(number).to_bytes())


def kill_at(folder: Path, delay: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            serve(folder)
        finally:
            os._exit(1)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit("the server died by itself")


def check(folder: Path) -> tuple[int, int, int]:
    """(rounds in the ledger, sendings, rounds sent); exits if anything is amiss."""
    server = Server(STUDY, folder / "study.ledger", BUDGET)
    sent: dict[int, list[bytes]] = {}
    for file in (folder / "outbox").iterdir():
        # a file cut by the kill is a message cut by the kill: what there is of it must fit
        sent.setdefault(int(file.name[:6]), []).append(file.read_bytes())
    for number, copies in sent.items():
        committed = server.broadcast(number).to_bytes()
        if not all(committed.startswith(copy) for copy in copies):
            raise SystemExit(f"round {number} was sent with other bytes than it was committed with")
    spent = server.spent(1e-5, "moments")
    left = METHOD.mechanism.event(STUDY.agents, "sent") if METHOD.mechanism else None
    if left is not None and spent < epsilon([left] * len(sent), 1e-5, "moments"):
        raise SystemExit(f"the ledger says ε = {spent}, more than that was sent")
    rounds = len(server.events)
    server.close()
    return rounds, sum(map(len, sent.values())), len(sent)


def main() -> None:
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    (folder / "outbox").mkdir(parents=True)
    moments = random.Random(seed)
    counts = (0, 0, 0)
    for _ in range(kills):
        kill_at(folder, moments.uniform(0.0, 0.12))
        before, counts = counts, check(folder)
        if counts[0] < before[0]:
            raise SystemExit("the ledger lost rounds")
    print(
        json.dumps({"kills": kills, "rounds": counts[0], "sendings": counts[1], "sent": counts[2]})
    )


if __name__ == "__main__":
    main()
