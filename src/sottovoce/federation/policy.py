"""What agents do, for a batch of them at once: their first points, their next, and what they send.

Everything that a method leaves open is a part of its own (`parts`); this is how parts are put
together. `Agent` calls it with a batch of one, the simulator with many.
"""

from __future__ import annotations

from sottovoce.arrays import Array
from sottovoce.federation.batch import Batch
from sottovoce.federation.parts import ACQUISITIONS, INITIAL_DESIGNS, MESSAGES


def initial_queries(batch: Batch) -> Array:
    """All initial queries of each agent, in the form of its domain: (n, N_init), or with D."""
    design = INITIAL_DESIGNS[batch.study.method.initial_design]
    return batch.domain.encoded(design(batch))


def next_query(batch: Batch, t: int) -> Array:
    """Query t ≥ 1 of each agent, (n,) or (n, D); one tried before gives way if it is to."""
    method = batch.study.method
    chosen = ACQUISITIONS[method.acquisition](batch, t)
    if method.repeats == "replace":
        again = batch.domain.repeated(chosen)
        if bool(batch.xp.any(again)):
            chosen[again] = batch.domain.untried(t, again)
    return chosen


def message(batch: Batch, round_number: int) -> Array:
    """What each agent sends in a round, (n, M)."""
    return MESSAGES[batch.study.method.message](batch, round_number)
