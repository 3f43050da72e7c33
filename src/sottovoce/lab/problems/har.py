"""Human activity recognition: logistic regressions that tell six activities, 30 subjects.

Each subject is an agent. A regression is trained by stochastic gradient descent on the mean
cross-entropy plus l2/2 ‖W‖², from zero weights; the bias is not penalised. Each pass takes the
rows in an order that is fixed by pass and agent, and cuts it into batches, the last one shorter.
The score is 1 minus the validation error.

Many settings of one agent are trained at once. As weights start at 0 and every step adds rows
of X to them, W = Xᵀ A for some A: each step needs only K = X Xᵀ, which is smaller than X, and
one product K A for all settings.

Large l2 times a large learning rate makes weights grow without bound (from a product of 2 on,
for the penalty alone: nearly half of the space). They are let grow, as in any such training; a
model whose weights are no longer finite predicts the most common activity. Where weights swing
widely without that, rounding decides: there the processor and a GPU often disagree.

Symbols: n rows to train on, m to validate on, k activities, C settings.
  K (n, n), V (m, n)    inner products of standardised rows with those to train on
  Y (n, k)              1 for a row's activity, else 0
  A (n, k, C), b (k, C) the models
  rank (passes, n)      a row's place in the order of a pass
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.arrays import Array, FloatArray, IntArray
from sottovoce.device import Device
from sottovoce.lab.problems.datasets import HAR, find
from sottovoce.lab.problems.hardata import ACTIVITIES, SUBJECTS, Split, halves_of, read_windows
from sottovoce.lab.problems.real import RealProblem
from sottovoce.lab.problems.training import Halves, check_trials, fingerprint, settings_at
from sottovoce.space import Float, Integer, Space

SPACE = Space(
    [
        Integer("batch_size", 128, 512),
        Float("l2", 1e-6, 10.0),
        Float("learning_rate", 1e-6, 1.0),
    ]
)
PASSES = 100
SEED = 20210
PROCEDURE = 1
BATCH, BATCH_ON_DEVICE = 256, 8192
LANES = 8  # C is filled up to a multiple: then a model's rounding does not depend on the others'


@dataclass(frozen=True)
class Regressions:
    """One agent's data as training needs them."""

    K: Array
    V: Array
    Y: Array
    rank: Array
    train_y: IntArray
    valid_y: IntArray


@dataclass(frozen=True)
class HarTrainer:
    """Trains the regressions of each agent's trials together."""

    subjects: tuple[Regressions, ...]
    device: Device
    fingerprint: str

    @property
    def agents(self) -> int:
        """The number of subjects."""
        return len(self.subjects)

    @property
    def batch(self) -> int:
        """As many as fit a processor's cache, or keep a device busy."""
        return BATCH if self.device.torch is None else BATCH_ON_DEVICE

    def scores(self, agents: IntArray, points: FloatArray) -> FloatArray:
        """1 minus the validation error."""
        check_trials(agents, points, self.agents, SPACE.dims)
        settings, scores = settings_at(SPACE, points), np.empty(len(points))
        for agent in np.unique(agents):
            mine = np.flatnonzero(agents == agent)
            data = self.subjects[agent]
            steps = -(-len(data.train_y) // settings[mine, 0].astype(np.int64))
            for count in np.unique(steps):
                alike = mine[steps == count]
                scores[alike] = _scores(data, settings[alike], int(count), self.device)
        return scores


@dataclass(frozen=True)
class Har(RealProblem):
    """A logistic regression's batch size, penalty and learning rate, for each of 30 subjects.

    split: which windows validate, a random half or whole recording runs. Windows of a run
    overlap, so a random half flatters.
    """

    kind: ClassVar[str] = "har"
    space: ClassVar[Space] = SPACE
    agents: ClassVar[int] = SUBJECTS
    split: Split = "random"

    def trainer(self, device: Device) -> HarTrainer:
        """Trains on that device."""
        found = find(HAR)
        windows = read_windows(found)
        subjects = tuple(
            prepared(halves_of(windows, number, self.split), number, device)
            for number in range(1, SUBJECTS + 1)
        )
        return HarTrainer(subjects, device, fingerprint(self.table, PROCEDURE, found))


def prepared(halves: Halves, number: int, device: Device) -> Regressions:
    """A subject's inner products and the orders of its rows, where they are needed."""
    K, V = (part @ halves.train_x.T for part in (halves.train_x, halves.valid_x))
    random = np.random.default_rng([SEED, number])
    # the place of each row in an order is itself an order, as random as the first
    rank = np.stack([random.permutation(len(K)) for _ in range(PASSES)])
    Y = halves.train_y[:, None] == np.arange(ACTIVITIES)
    K, V, Y, rank = (device.array(part.astype(np.float32)) for part in (K, V, Y, rank))
    return Regressions(K, V, Y, rank, halves.train_y, halves.valid_y)


def _scores(data: Regressions, settings: FloatArray, steps: int, device: Device) -> FloatArray:
    """1 minus the validation errors of settings (C, 3) that take that many steps a pass."""
    lanes = -(-len(settings) // LANES) * LANES
    filled = np.zeros((lanes, 3), dtype=np.float32)
    filled[: len(settings)] = settings
    filled[len(settings) :, 0] = settings[0, 0]  # a model in a filling lane learns nothing
    with np.errstate(over="ignore", invalid="ignore"):  # some settings diverge
        A, b = _trained(data, device.array(filled), steps, device)
        xp, (n, k, _) = device.xp, A.shape
        outputs = xp.reshape(data.V @ xp.reshape(A, (n, k * lanes)), (-1, k, lanes)) + b
        finite = xp.all(xp.isfinite(A), axis=(0, 1)) & xp.all(xp.isfinite(outputs), axis=(0, 1))
    predicted = device.numpy(xp.argmax(outputs, axis=1))
    commonest = np.argmax(np.bincount(data.train_y))
    predicted = np.where(device.numpy(finite), predicted, commonest)
    right = np.mean(predicted == data.valid_y[:, None], axis=0)
    return np.asarray(right[: len(settings)], dtype=np.float64)


def _trained(data: Regressions, settings: Array, steps: int, device: Device) -> tuple[Array, Array]:
    """A and b after all passes; settings are (C, 3)."""
    xp, (n, k), lanes = device.xp, data.Y.shape, settings.shape[0]
    size, l2, rate = (settings[:, j] for j in range(3))
    shrink, target = 1 - rate * l2, data.Y[:, :, None]
    A = xp.zeros((n, k, lanes), dtype=xp.float32, device=device.device)
    b = xp.zeros((k, lanes), dtype=xp.float32, device=device.device)
    for p in range(PASSES):
        batch = xp.floor(data.rank[p, :, None] / size)  # the step in which a row is used, (n, C)
        for step in range(steps):
            P = xp.reshape(data.K @ xp.reshape(A, (n, k * lanes)), (n, k, lanes)) + b
            P = xp.exp(P - xp.max(P, axis=1, keepdims=True))
            P /= xp.sum(P, axis=1, keepdims=True)
            used = xp.astype(batch == step, xp.float32)
            P -= target
            P *= (used * (rate / xp.sum(used, axis=0)))[:, None, :]
            A = A * shrink - P
            b = b - xp.sum(P, axis=0)
    return A, b
