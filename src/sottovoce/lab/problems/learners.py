"""Tuning learners of scikit-learn, with the spaces that people use, by sites with data (`sites`).

A score is the share of validation rows that are classified rightly, or 1/(2 − R²) of a regression,
which is 1 for a perfect one and 1/2 for one no better than the mean. What cannot be trained has a
score of 0.

`boosting` has two floats and two integers; `mlp` and `sgd` have seven parameters.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from sottovoce.errors import MissingExtra, check
from sottovoce.federation.surrogate import Surrogate
from sottovoce.lab.problems.options import NamedProblem
from sottovoce.lab.problems.sites import CLASSES, Site
from sottovoce.lab.problems.sitetable import SiteObjectives, load_site_table
from sottovoce.simulation.problem import Setting
from sottovoce.space import Category, Float, Integer, Space

Data = Literal["digits", "wine", "cancer", "blobs", "diabetes", "lines"]
_SWITCH = (False, True)
_RANDOM = 0  # of every training: a score depends on parameters and data alone


@dataclass(frozen=True, kw_only=True)
class LearnerProblem(NamedProblem):
    """A learner's parameters, tuned by sites that each have data of their own.

    Of the class: sites, how many have been trained for its table: fewer where that takes long.
    """

    space: ClassVar[Space]
    sites: ClassVar[int] = 100
    numbers: ClassVar[bool] = False  # whether it learns numbers, not classes
    either: ClassVar[bool] = False
    data: Data = "digits"

    def __post_init__(self) -> None:
        super().__post_init__()
        classes = CLASSES[self.data] > 0
        rule = f"{self.kind}: data must have {'a number' if self.numbers else 'classes'} to learn"
        check(self.either or classes != self.numbers, rule, data=self.data)

    @property
    def setting(self) -> Setting:
        """Kernels are fitted."""
        return Setting(self.space, Surrogate(refit=5), self.sites)

    @property
    def table(self) -> str:
        """The name of its table."""
        return f"{self.kind}-{self.data}"

    def draw(self, agents: int, random: np.random.Generator) -> SiteObjectives:
        """Sites at random, in any order."""
        rule = f"{self.kind}: agents must be from 1 to {self.sites}, as many as there are sites"
        check(1 <= agents <= self.sites, rule, agents=agents)
        table = load_site_table(self.table, self.name)
        return SiteObjectives(table, random.permutation(self.sites)[:agents])

    @abstractmethod
    def model(self, params: dict[str, Any], site: Site) -> Any:
        """The learner, to be trained."""

    def trained(self, params: dict[str, Any], site: Site) -> float:
        """The score of a model trained at a site."""
        try:
            import sklearn  # noqa: F401
        except ImportError as error:
            raise MissingExtra("training models", "experiments") from error
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged is what is being tuned
            try:
                model = self.model(params, site).fit(site.train_x, site.train_y)
                score = float(model.score(site.valid_x, site.valid_y))
            except (ValueError, FloatingPointError):
                return 0.0
        if not np.isfinite(score):
            return 0.0
        return score if site.classes else 1 / (2 - score)


@dataclass(frozen=True, kw_only=True)
class Svm(LearnerProblem):
    """A support vector machine."""

    kind: ClassVar[str] = "svm"
    space: ClassVar[Space] = Space(
        [
            Float("C", 1e-2, 1e3, log=True),
            Float("gamma", 1e-5, 1e1, log=True),
            Category("kernel", ("rbf", "poly", "sigmoid")),
            Category("balanced", _SWITCH),
        ]
    )

    def model(self, params: dict[str, Any], site: Site) -> Any:
        """At most a while: a bad kernel may take for ever."""
        from sklearn.svm import SVC

        weight = "balanced" if params.pop("balanced") else None
        return SVC(**params, class_weight=weight, max_iter=2000)


@dataclass(frozen=True, kw_only=True)
class Boosting(LearnerProblem):
    """Gradient boosting, of classes or numbers."""

    kind: ClassVar[str] = "boosting"
    sites: ClassVar[int] = 40
    either: ClassVar[bool] = True
    data: Data = "diabetes"
    space: ClassVar[Space] = Space(
        [
            Float("learning_rate", 0.01, 1.0, log=True),
            Integer("n_estimators", 5, 40),
            Integer("max_depth", 1, 6),
            Float("subsample", 0.3, 1.0),
        ]
    )

    def model(self, params: dict[str, Any], site: Site) -> Any:
        """One of the two."""
        from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

        kind = GradientBoostingClassifier if site.classes else GradientBoostingRegressor
        return kind(**params, random_state=_RANDOM)


@dataclass(frozen=True, kw_only=True)
class Forest(LearnerProblem):
    """A random forest of ten trees."""

    kind: ClassVar[str] = "forest"
    sites: ClassVar[int] = 40
    space: ClassVar[Space] = Space(
        [
            Integer("max_depth", 1, 12),
            Integer("min_samples_leaf", 1, 20, log=True),
            Float("max_features", 0.05, 1.0),
            Category("criterion", ("gini", "entropy")),
            Category("bootstrap", _SWITCH),
        ]
    )

    def model(self, params: dict[str, Any], site: Site) -> Any:
        """Ten trees."""
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(10, **params, random_state=_RANDOM)


@dataclass(frozen=True, kw_only=True)
class ElasticNet(LearnerProblem):
    """Linear regression with two penalties."""

    kind: ClassVar[str] = "elasticnet"
    numbers: ClassVar[bool] = True
    data: Data = "diabetes"
    space: ClassVar[Space] = Space(
        [Float("alpha", 1e-4, 1e1, log=True), Float("l1_ratio", 0.0, 1.0)]
    )

    def model(self, params: dict[str, Any], site: Site) -> Any:
        """Its penalties."""
        from sklearn.linear_model import ElasticNet as Learner

        return Learner(**params, max_iter=300)


@dataclass(frozen=True, kw_only=True)
class Sgd(LearnerProblem):
    """A linear model by stochastic gradient descent."""

    kind: ClassVar[str] = "sgd"
    data: Data = "cancer"
    space: ClassVar[Space] = Space(
        [
            Category("loss", ("hinge", "log_loss", "modified_huber")),
            Category("penalty", ("l1", "l2", "elasticnet")),
            Category("average", _SWITCH),
            Float("alpha", 1e-6, 1e0, log=True),
            Float("eta0", 1e-4, 1e0, log=True),
            Float("power_t", 0.0, 0.8),
            Integer("max_iter", 1, 12),
        ]
    )

    def model(self, params: dict[str, Any], site: Site) -> Any:
        """A rate that falls by a power, for so many epochs."""
        from sklearn.linear_model import SGDClassifier

        fixed = {"learning_rate": "invscaling", "tol": None, "random_state": _RANDOM}
        return SGDClassifier(**params, **fixed)


@dataclass(frozen=True, kw_only=True)
class Mlp(LearnerProblem):
    """A small neural network, by Adam."""

    kind: ClassVar[str] = "mlp"
    sites: ClassVar[int] = 40
    data: Data = "blobs"
    space: ClassVar[Space] = Space(
        [
            Float("learning_rate_init", 1e-4, 1e0, log=True),
            Float("alpha", 1e-6, 1e1, log=True),
            Integer("width", 2, 32, log=True),
            Integer("layers", 1, 3),
            Integer("batch_size", 8, 32, log=True),
            Integer("max_iter", 2, 16),
            Category("activation", ("relu", "tanh", "logistic")),
        ]
    )

    def model(self, params: dict[str, Any], site: Site) -> Any:
        """Layers of one width."""
        from sklearn.neural_network import MLPClassifier

        shape = (params.pop("width"),) * params.pop("layers")
        return MLPClassifier(shape, **params, random_state=_RANDOM)
