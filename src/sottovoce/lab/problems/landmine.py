"""Landmine detection: support vector machines that tell mines from clutter, 29 fields.

Each field is an agent. Half of its rows train an SVM with a radial kernel, the others validate
it; the score is the area under the ROC curve, as mines are rare. Rows are ranked by the decision
function, or, as the paper's authors do, by the probabilities that Platt scaling makes of it.

Those are another objective. Platt's sigmoid is fitted to an inner cross-validation with random
folds: where that finds the slope of the wrong sign, the ranking is the mirror image, and the
score 1 minus the other; where probabilities saturate, rows tie. So the score has chance in it:
a training has a number, which with the field and the parameters seeds its folds.

Cite Xue, Liao, Carin, Krishnapuram, "Multi-task learning for classification with Dirichlet
process priors", 2007.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sottovoce.device import Device
from sottovoce.errors import MissingExtra
from sottovoce.lab.problems.datasets import LANDMINE, Found, find
from sottovoce.lab.problems.real import RealProblem
from sottovoce.lab.problems.training import (
    Halves,
    check_trials,
    fingerprint,
    require,
    settings_at,
    stratified_halves,
)
from sottovoce.space import Float, Space

FIELDS = 29
FEATURES = 9
SPACE = Space([Float("C", 1e-4, 10.0), Float("gamma", 0.01, 10.0)])
PROCEDURE = 1
BATCH = 16  # about 0.1 s of work
TRAININGS = 4  # at each point of the table of a score with chance in it

Score = Literal["decision", "probability"]


@dataclass(frozen=True)
class LandmineTrainer:
    """Trains an SVM for each trial; of a score with chance in it, the training of that number."""

    fields: tuple[Halves, ...]
    fingerprint: str
    batch: int = BATCH
    score: Score = "decision"
    training: int = 0

    @property
    def agents(self) -> int:
        """The number of fields."""
        return len(self.fields)

    def scores(self, agents: NDArray[np.int64], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The area under the ROC curve on the validation half."""
        check_trials(agents, points, self.agents, SPACE.dims)
        settings = settings_at(SPACE, points)
        areas = [
            self._area(int(agent), c, gamma)
            for agent, (c, gamma) in zip(agents, settings, strict=True)
        ]
        return np.asarray(areas, dtype=np.float64)

    def _area(self, agent: int, c: float, gamma: float) -> float:
        field = self.fields[agent]
        if self.score == "decision":
            return _area(field, c, gamma)
        bits = np.asarray([c, gamma]).view(np.uint32).tolist()
        seed = np.random.SeedSequence([self.training, agent, *bits]).generate_state(1)[0]
        return _area_of_probabilities(field, c, gamma, int(seed))


@dataclass(frozen=True)
class Landmine(RealProblem):
    """An SVM's penalty and kernel parameter, for each of 29 landmine fields.

    score: what ranks the rows, the decision function or, with chance in it, probabilities.
    """

    kind: ClassVar[str] = "landmine"
    space: ClassVar[Space] = SPACE
    agents: ClassVar[int] = FIELDS
    measure: ClassVar[str] = "1 − AUC"
    score: Score = "decision"

    @property
    def trainings(self) -> int:
        """Several, where a training has chance in it."""
        return 1 if self.score == "decision" else TRAININGS

    def trainer(self, device: Device) -> LandmineTrainer:
        """SVMs are trained on the processor, wherever else arrays live."""
        found = find(LANDMINE)
        halves = tuple(stratified_halves(x, y) for x, y in read_fields(found))
        name = fingerprint(self.table, PROCEDURE, found)
        return LandmineTrainer(halves, name, score=self.score, training=self.training or 0)


def read_fields(found: Found) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """The rows and labels of each field, checked."""
    from scipy.io import loadmat

    (file,) = found.layout.files
    try:
        content = loadmat(found.path(file), variable_names=["feature", "label"])
    except Exception as error:  # SciPy raises many kinds on a damaged file
        require(False, found, f"not a MATLAB file that can be read: {error}")
        raise
    for cell in ("feature", "label"):
        shape = np.shape(content.get(cell))
        problem = f"{cell!r} must be {FIELDS} cells, shape (1, {FIELDS}), got {shape}"
        require(shape == (1, FIELDS) and content[cell].dtype == object, found, problem)
    pairs = zip(content["feature"][0], content["label"][0], strict=True)
    return [_field(found, number, x, y) for number, (x, y) in enumerate(pairs, start=1)]


def _field(
    found: Found, number: int, x: Any, y: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """One field's rows and labels, checked."""
    where = f"field {number}"
    numeric = all(isinstance(part, np.ndarray) and part.dtype.kind in "fiub" for part in (x, y))
    require(numeric, found, f"{where}: features and labels must be numbers")
    fits = x.ndim == 2 and x.shape[1] == FEATURES and y.shape in ((len(x), 1), (1, len(x)))
    shapes = f"features (n, {FEATURES}) and labels (n, 1), got {x.shape} and {y.shape}"
    require(fits, found, f"{where} must have {shapes}")
    require(bool(np.all(np.isfinite(x))), found, f"{where}: features must be finite")
    labels = y.ravel()
    known = bool(np.all((labels == 0) | (labels == 1)))
    require(known, found, f"{where}: labels must be 0 or 1, got {np.unique(labels)[:5].tolist()}")
    counts = np.bincount(labels.astype(np.int64), minlength=2).tolist()
    problem = f"{where} must have 2 rows or more of either label to be halved, got {counts}"
    require(min(counts) >= 2, found, problem)
    return np.asarray(x, dtype=np.float64), labels.astype(np.int64)


def _area(field: Halves, c: float, gamma: float) -> float:
    """The area under the ROC curve of an SVM with that penalty and kernel parameter."""
    machine = _machine(C=float(c), kernel="rbf", gamma=float(gamma))
    machine.fit(field.train_x, field.train_y)
    return _auc(field, machine.decision_function(field.valid_x))


def _area_of_probabilities(field: Halves, c: float, gamma: float, seed: int) -> float:
    """The same of the probabilities of a mine, with folds from the seed."""
    with warnings.catch_warnings():
        # later versions advise another calibration, which is not the authors'
        warnings.filterwarnings("ignore", "The `probability` parameter", FutureWarning)
        machine = _machine(
            C=float(c), kernel="rbf", gamma=float(gamma), probability=True, random_state=seed
        )
        machine.fit(field.train_x, field.train_y)
        probabilities = machine.predict_proba(field.valid_x)[:, 1]
    return _auc(field, probabilities)


def _machine(**settings: Any) -> Any:
    try:
        from sklearn.svm import SVC
    except ImportError as error:
        raise MissingExtra("training SVMs", "experiments") from error
    return SVC(**settings)


def _auc(field: Halves, ranks: NDArray[np.float64]) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(field.valid_y, ranks))
