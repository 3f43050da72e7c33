"""What a site's operator is shown while it takes part: its trials, and when it is through.

It looks at the site's memory from outside, which the site's own processes write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sottovoce.errors import StorageError
from sottovoce.flower.result.recorded import Recorded, memory_in, recorded
from sottovoce.flower.result.site import best_of
from sottovoce.flower.site import leaving
from sottovoce.flower.studyfile import StudyFile

Tell = Callable[[str], None]
REFUSED = "is refused:"  # in a line of a site's process: an app that is not ours


class Following:
    """Tells of each trial that ends; `over` is looked at now and then.

    stay: whether it goes on when all trials are run.
    """

    def __init__(
        self, file: StudyFile, home: Path, log: Path, tell: Tell, *, stay: bool = False
    ) -> None:
        self._study, self._home, self._log, self._tell = file.study, home, log, tell
        self._stay = stay
        self._sign = 1.0 if file.direction == "maximize" else -1.0
        self._planned = file.study.method.initial + file.study.rounds
        self._stamp: tuple[float, ...] = ()
        self._read = log.stat().st_size if log.exists() else 0
        self._through: float | None = None  # when the last trial was seen to have ended
        try:
            before = recorded(home)
        except StorageError:
            before = recorded(home / "nowhere")
        self._told, self._heard = len(before.trials), before.heard
        self.through = self._told >= self._planned  # it has run all its trials

    def over(self) -> bool:
        """Whether the site has left, or is through, and its last word has had time to travel."""
        self._look_at_log()
        self._look()
        if self.through and self._through is None:
            self._through = time.monotonic()
        if self._through is not None and not self._stay:
            return time.monotonic() - self._through > leaving.FAREWELL
        return leaving.settled(self._home)

    def _look(self) -> None:
        stamp = self._changed()
        if stamp == self._stamp:
            return
        try:
            found = recorded(self._home)
        except StorageError:  # it is being written: the next look will do
            return
        self._stamp = stamp
        if len(found.trials) < self._told:
            self._told = 0  # it left, and began anew
        for k in range(self._told, len(found.trials)):
            shown = found._replace(trials=found.trials[: k + 1])
            self._tell(trial_line(shown, self._planned, self._sign))
        if found.heard > self._heard:
            made = sum(number <= found.heard for number in self._study.release_rounds)
            self._tell(f"heard release {made} of {len(self._study.release_rounds)}")
        self._told, self._heard = len(found.trials), found.heard
        self.through = self._told >= self._planned

    def _changed(self) -> tuple[float, ...]:
        path = memory_in(self._home)
        if path is None:
            return ()
        files = [path, *(path.with_name(path.name + tail) for tail in ("-wal", "-journal"))]
        return tuple(each.stat().st_mtime_ns for each in files if each.exists())

    def _look_at_log(self) -> None:
        """Runs that brought an app of somebody else's are for the operator's eyes."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._read)
                new = file.read(1 << 20)
        except OSError:
            return
        whole = new.rfind(b"\n") + 1
        self._read += whole
        for line in new[:whole].decode(errors="replace").splitlines():
            if REFUSED in line and line.startswith("run "):
                self._tell(line)


def trial_line(found: Recorded, planned: int, sign: float) -> str:
    """The last trial in words: trial 7 of 14: 0.121, best 0.107 at x 0.3."""
    last, best = found.trials[-1], best_of(found.trials, sign, found.earlier)
    begin = f"trial {last.number} of {planned}"
    words = f"{begin} failed: {last.error}" if last.value is None else f"{begin}: {last.value:.4g}"
    if best is None:
        return words
    if best.earlier:
        where = in_words(best.params)
        return f"{words}, best {best.value:.4g} from before the study, at {where}"
    if best.number == last.number:
        return f"{words}, the best so far, at {in_words(best.params)}"
    return f"{words}, best {best.value:.4g} at {in_words(best.params)}"


def in_words(params: Mapping[str, Any]) -> str:
    """Parameters on one line."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in params.items()
    )
