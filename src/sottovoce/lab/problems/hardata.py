"""Human activity recognition: reading the windows of 30 subjects, and halving each one's.

A window is 2.56 s of a phone's signals, described by 561 features. Two kinds of files hold the
same 10,299 windows: the official ones, and one with features re-derived from the official raw
signals, which are not the official features.
Cite Anguita et al., "A public domain dataset for human activity recognition using smartphones",
2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import FloatArray, IntArray
from sottovoce.errors import InvalidInput
from sottovoce.lab.problems.datasets import Found
from sottovoce.lab.problems.training import Halves, read_arrays, require, stratified_halves

SUBJECTS = 30
FEATURES = 561
ACTIVITIES = 6

Split = Literal["random", "run"]


@dataclass(frozen=True)
class Windows:
    """All windows; run tells which recording each is cut from, where that is known."""

    x: FloatArray
    y: IntArray
    subject: IntArray
    run: IntArray | None


def read_windows(found: Found) -> Windows:
    """The windows of all subjects, checked."""
    windows = _read_npz(found) if found.layout.kind == "npz" else _read_official(found)
    finite = np.all(np.isfinite(windows.x), axis=1)
    known = (windows.y >= 0) & (windows.y < ACTIVITIES)
    for row in np.flatnonzero(~finite | ~known)[:1]:  # the first will do
        who = f"subject {windows.subject[row]}"
        require(bool(finite[row]), found, f"features of {who} must be finite")
        require(False, found, f"an unknown activity of {who}, number {windows.y[row]} from 0")
    subjects = np.unique(windows.subject)
    problem = f"subjects must be 1 to {SUBJECTS}, got {subjects.tolist()}"
    require(np.array_equal(subjects, np.arange(1, SUBJECTS + 1)), found, problem)
    for subject in subjects:
        counts = np.bincount(windows.y[windows.subject == subject], minlength=ACTIVITIES)
        few = counts[counts > 0]
        problem = f"subject {subject} must have 2 or more activities, each with 2 or more windows"
        fits = len(few) >= 2 and few.min() >= 2
        require(fits, found, f"{problem}, got windows {counts.tolist()}")
    return windows


def halves_of(windows: Windows, subject: int, split: Split) -> Halves:
    """One subject's halves, standardised by the mean and deviation of the first.

    "random" shares each activity evenly. As windows overlap by half, nearly every window to
    validate on then has a neighbour that was trained on; "run" keeps whole recordings together.
    """
    mine = np.flatnonzero(windows.subject == subject)
    x, y = windows.x[mine], windows.y[mine]
    if split == "random":
        halves = stratified_halves(x, y)
    else:
        if windows.run is None:
            raise InvalidInput(
                "har: split=run needs the recordings' runs, which come from the files of the "
                "folder 'Inertial Signals' beside the official features"
            )
        train = run_halves(y, windows.run[mine], subject)
        halves = Halves(x[train], y[train], x[~train], y[~train])
    centre = halves.train_x.mean(axis=0)
    # of equal values the deviation may be rounding error, so their range is asked
    varies = np.ptp(halves.train_x, axis=0) > 0
    scale = np.where(varies, halves.train_x.std(axis=0), 1.0)
    scaled = [(part - centre) / scale for part in (halves.train_x, halves.valid_x)]
    return Halves(scaled[0], halves.train_y, scaled[1], halves.valid_y)


def run_halves(y: IntArray, run: IntArray, subject: int) -> NDArray[np.bool_]:
    """Which windows to train on: whole runs, each activity as nearly halved as runs allow."""
    pairs = []
    for activity in np.unique(y):
        runs, sizes = np.unique(run[y == activity], return_counts=True)
        if len(runs) < 2:
            raise InvalidInput(
                f"har: split=run needs 2 runs or more of each activity, got {len(runs)} "
                f"of activity {activity} for subject {subject}"
            )
        part = (y == activity) & np.isin(run, _nearest_to_half(runs.tolist(), sizes.tolist()))
        rest = (y == activity) & ~part
        pairs.append((part, rest) if part.sum() >= rest.sum() else (rest, part))
    train, ahead = np.zeros(len(y), dtype=bool), 0
    # the most uneven first; each time the half that is behind gets the larger part
    for larger, smaller in sorted(pairs, key=lambda pair: pair[1].sum() - pair[0].sum()):
        uneven = int(larger.sum() - smaller.sum())
        train |= larger if ahead <= 0 else smaller
        ahead += uneven if ahead <= 0 else -uneven
    return train


def _nearest_to_half(runs: list[int], sizes: list[int]) -> list[int]:
    """Some of the runs, not all, whose sizes add up to as near half the total as can be."""
    reached: dict[int, list[int]] = {0: []}
    for run, size in zip(runs, sizes, strict=True):
        more = {total + size: [*part, run] for total, part in reached.items()}
        reached = {**more, **reached}
    del reached[0], reached[sum(sizes)]
    half = sum(sizes) / 2
    return reached[min(sorted(reached), key=lambda total: abs(total - half))]


def _read_npz(found: Found) -> Windows:
    names = ("X", "y", "subject", "run")
    content = read_arrays(found, names)
    rows = len(content["y"]) if content["y"].ndim == 1 else 0
    shapes = {name: array.shape for name, array in content.items()}
    fits = shapes["X"] == (rows, FEATURES) and all(shapes[n] == (rows,) for n in names[1:])
    problem = f"X must be (n, {FEATURES}), and y, subject and run (n,) of whole numbers"
    whole = all(content[name].dtype.kind in "iu" for name in names[1:])
    fits = fits and whole and content["X"].dtype.kind == "f"
    require(fits, found, f"{problem}, got {shapes}")
    y, subject, run = (content[name].astype(np.int64) for name in names[1:])
    return Windows(content["X"].astype(np.float64), y, subject, run)


def _read_official(found: Found) -> Windows:
    """The training and the test windows, in that order; labels there are 1 to 6."""
    parts = [_read_part(found, part) for part in ("train", "test")]
    x, y, subject = (np.concatenate([part[k] for part in parts]) for k in range(3))
    signals = [_signals(found, part, len(parts[k][1])) for k, part in enumerate(("train", "test"))]
    known = [signal for signal in signals if signal is not None]
    run = _runs(np.concatenate(known), y, subject) if len(known) == 2 else None
    return Windows(x, y - 1, subject, run)


def _read_part(found: Found, part: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    x, y, subject = (
        _numbers(found, f"UCI HAR Dataset/{part}/{what}_{part}.txt")
        for what in ("X", "y", "subject")
    )
    shapes = x.shape, y.shape, subject.shape
    fits = shapes == ((len(x), FEATURES), (len(x), 1), (len(x), 1))
    problem = f"X_{part} must be (n, {FEATURES}), y_{part} and subject_{part} (n, 1), got {shapes}"
    require(fits, found, problem)
    whole = np.array_equal(y, np.floor(y)) and np.array_equal(subject, np.floor(subject))
    require(whole, found, f"y_{part} and subject_{part} must be whole numbers")
    return x, y[:, 0].astype(np.int64), subject[:, 0].astype(np.int64)


def _numbers(found: Found, file: str) -> FloatArray:
    try:
        return np.loadtxt(found.path(file), dtype=np.float64, ndmin=2)
    except (OSError, ValueError) as error:
        require(False, found, f"{file} must be a table of numbers: {error}")
        raise


def _signals(found: Found, part: str, rows: int) -> FloatArray | None:
    """The raw signal of each window, where the file is there."""
    (file,) = (name for name in found.layout.extra if f"/{part}/" in name)
    if not found.path(file).is_file():
        return None
    signals = _numbers(found, file)
    fits = len(signals) == rows and signals.shape[1] % 2 == 0
    require(fits, found, f"{file} must have {rows} rows of even length, got {signals.shape}")
    return signals


def _runs(signals: FloatArray, y: IntArray, subject: IntArray) -> IntArray:
    """Numbers the runs: a window goes on its predecessor's if it begins with its second half."""
    half = signals.shape[1] // 2
    overlaps = np.all(signals[1:, :half] == signals[:-1, half:], axis=1)
    same = overlaps & (y[1:] == y[:-1]) & (subject[1:] == subject[:-1])
    return np.concatenate([[0], np.cumsum(~same)])
