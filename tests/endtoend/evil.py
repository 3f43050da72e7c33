"""What an evil site can do: its objective.py changes its own process as it likes.

One trick a round; `EXPECTED` says what the coordinator's journal has to hold of each.
"""

from __future__ import annotations

from typing import NamedTuple


class Trick(NamedTuple):
    """What an evil site sends in one round, and what the journal must say of it."""

    name: str
    code: str  # of the function that makes its records from a reply
    event: str
    reason: str
    there: bool = False  # the vector alone is unfit: the site took part, as one that says zeros


TRICKS = [
    Trick(
        "NaN in its vector",
        "return true(with_vector(v * np.nan))",
        "rejected",
        "must be finite",
        there=True,
    ),
    Trick(
        "entries of 1e200",
        "return true(with_vector(v * 0 + 1e200))",
        "rejected",
        "exceed",
        there=True,
    ),
    Trick(
        "a vector of nine million numbers",
        "return true(with_vector(np.ones(9_000_000)))",
        "rejected",
        "must hold at most",
    ),
    Trick(
        "a vector of a hundred thousand numbers",
        "return true(with_vector(np.ones(100_000)))",
        "rejected",
        "must have shape",
        there=True,
    ),
    Trick(
        "a matrix for a vector",
        "return true(with_vector(np.ones((2, v.size))))",
        "rejected",
        "axes of 'vector' must be 1",
    ),
    Trick(
        "a vector that is too short",
        "return true(with_vector(v[:-1]))",
        "rejected",
        "must have shape",
        there=True,
    ),
    Trick(
        "a reply for the next round",
        "return true(replace(reply, round=reply.round + 1))",
        "rejected",
        "got a message for round",
    ),
    Trick(
        "a reply for an earlier round",
        "return true(replace(reply, round=reply.round - 1))",
        "late",
        "its reply is for round",
    ),
    Trick(
        "another site's agent number",
        "return true(replace(reply, agent=(reply.agent + 1) % 3))",
        "rejected",
        "its reply is of agent",
    ),
    Trick(
        "a reply of another study",
        'return true(replace(reply, study="f" * 64))',
        "rejected",
        "its study is",
    ),
    Trick("an empty reply", "return RecordDict({})", "rejected", "must hold a record"),
    Trick(
        "a pickled array",
        "return pickled(reply)",
        "rejected",
        "must hold raw",
    ),
    Trick(
        "terminal codes in its words",
        'return true(replace(reply, answer="refused", vector=None, reason="\\x1b[2Jfree\\n{}"))',
        "refused",
        "?[2Jfree?{}",
    ),
    Trick(
        "nothing, as its process crashes",
        'raise RuntimeError("secret data")',
        "failed",
        "Flower's error",
    ),
]

OBJECTIVE = """

# -- from here on evil --
from dataclasses import replace

import numpy as np
from flwr.app import Array, ArrayRecord, RecordDict

from sottovoce.flower import wire

true = getattr(wire.Reply.to_records, "true", wire.Reply.to_records)


def pickled(reply):
    records = true(reply)
    array = Array(dtype="<f8", shape=(2,), stype="numpy.ndarray", data=b"cos\\nsystem\\n")
    records["vector"] = ArrayRecord({"vector": array})
    return records


def evil(reply):
    note(event="evil", round=reply.round)
    v = reply.vector
    if v is None:
        return true(reply)

    def with_vector(other):
        return replace(reply, vector=other)

%s
    return true(reply)


evil.true = true
wire.Reply.to_records = evil
"""

UNFINISHED = 3  # the round of which the other evil site announces a reply, and never uploads it

NODE = '''\
"""Imported by every process of an evil site at its start: its SuperNode sends replies twice, and
the REPLY-th it announces, but never uploads."""

import sys

if any("flower-supernode" in word for word in sys.orig_argv):
    from flwr.supernode.fleet_http_client import FleetHttpClient

    announce, upload, look = (
        getattr(FleetHttpClient, name) for name in ("PushMessages", "PushObject", "PullMessages")
    )
    announced = []
    again = []

    def evil_announce(self, request):
        announced.append(request)
        again.append(request)
        return announce(self, request)

    def evil_upload(self, request):
        if len(announced) == REPLY:
            again.clear()
            raise RuntimeError("EVIL: not uploaded")
        return upload(self, request)

    def evil_look(self, request):
        while again:
            try:
                announce(self, again.pop())
                print("EVIL: sent again, and taken", flush=True)
            except Exception as error:
                print(f"EVIL: sent again, and refused: {error!r}", flush=True)
        return look(self, request)

    FleetHttpClient.PushMessages = evil_announce
    FleetHttpClient.PushObject = evil_upload
    FleetHttpClient.PullMessages = evil_look
'''.replace("REPLY", str(UNFINISHED + 1))


def objective(honest: str) -> str:
    """The objective.py of a site that plays one trick a round."""
    tricks = "\n".join(
        f"    if reply.round == {k}:\n        {trick.code}" for k, trick in enumerate(TRICKS)
    )
    return honest + OBJECTIVE % tricks
