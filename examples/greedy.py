"""A method of one's own: agents go where the mean of their own posterior is largest."""

from dataclasses import replace

from sottovoce import TS
from sottovoce.arrays import Array
from sottovoce.federation.batch import Batch
from sottovoce.federation.parts import ACQUISITIONS


@ACQUISITIONS.register("greedy")
def greedy(batch: Batch, t: int) -> Array:  # t, the number of the query
    return batch.domain.largest(t, batch.posterior_mean())


GREEDY = replace(TS, name="greedy", acquisition="greedy")
