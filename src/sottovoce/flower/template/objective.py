"""What a site tunes: a plain Optuna objective. A site changes this file and nothing else.

Every site must ask for the same parameters with the same ranges: those in study.toml.
"""

from __future__ import annotations

import numpy as np
import optuna


def load_data(site: int) -> tuple[np.ndarray, np.ndarray]:
    """Made-up data of one site: a site reads its own here; nothing of it is ever sent."""
    rng = np.random.default_rng(site)
    x = rng.uniform(-1, 1, (120, 2))
    slope = 3 + 0.3 * rng.standard_normal()  # sites are alike, not the same
    y = np.sin(slope * x[:, 0]) * np.cos(2 * x[:, 1]) + 0.3 * rng.standard_normal(len(x))
    return x, y


def objective(trial: optuna.Trial) -> float:
    """Validation error of a ridge regression on random features; to be minimised."""
    penalty = trial.suggest_float("penalty", 1e-4, 100.0, log=True)
    width = trial.suggest_float("width", 0.2, 5.0)

    # a rehearsal on one machine numbers its sites; a real site has only its own data
    x, y = load_data(trial.study.user_attrs.get("site", 0))
    rng = np.random.default_rng(0)
    weights, shift = rng.standard_normal((2, 60)), rng.uniform(0, 2 * np.pi, 60)
    features = np.cos(x @ weights / width + shift)

    train, held_out = features[:80], features[80:]
    gram = train.T @ train + penalty * np.eye(train.shape[1])
    coefficients = np.linalg.solve(gram, train.T @ y[:80])
    return float(np.mean((held_out @ coefficients - y[80:]) ** 2))
