"""Landmine detection: support vector machines that tell mines from clutter, 29 fields.

Each field is an agent. Half of its rows train an SVM with a radial kernel, the others validate
it; the score is the area under the ROC curve of the decision function, as mines are rare.
Cite Xue, Liao, Carin, Krishnapuram, "Multi-task learning for classification with Dirichlet
process priors", 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

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


@dataclass(frozen=True)
class LandmineTrainer:
    """Trains an SVM for each trial."""

    fields: tuple[Halves, ...]
    fingerprint: str
    batch: int = BATCH

    @property
    def agents(self) -> int:
        """The number of fields."""
        return len(self.fields)

    def scores(self, agents: NDArray[np.int64], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The area under the ROC curve on the validation half."""
        check_trials(agents, points, self.agents, SPACE.dims)
        settings = settings_at(SPACE, points)
        areas = [
            _area(self.fields[agent], c, gamma)
            for agent, (c, gamma) in zip(agents, settings, strict=True)
        ]
        return np.asarray(areas, dtype=np.float64)


@dataclass(frozen=True)
class Landmine(RealProblem):
    """An SVM's penalty and kernel parameter, for each of 29 landmine fields."""

    kind: ClassVar[str] = "landmine"
    space: ClassVar[Space] = SPACE
    agents: ClassVar[int] = FIELDS
    measure: ClassVar[str] = "1 − AUC"

    def trainer(self, device: Device) -> LandmineTrainer:
        """SVMs are trained on the processor, wherever else arrays live."""
        found = find(LANDMINE)
        halves = tuple(stratified_halves(x, y) for x, y in read_fields(found))
        return LandmineTrainer(halves, fingerprint(self.kind, PROCEDURE, found))


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
    try:
        from sklearn.metrics import roc_auc_score
        from sklearn.svm import SVC
    except ImportError as error:
        raise MissingExtra("training SVMs", "experiments") from error
    machine = SVC(C=float(c), kernel="rbf", gamma=float(gamma))
    machine.fit(field.train_x, field.train_y)
    return float(roc_auc_score(field.valid_y, machine.decision_function(field.valid_x)))
