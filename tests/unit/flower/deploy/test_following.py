"""What a site's operator is shown while it takes part, beside real sites that write its memory."""

from __future__ import annotations

import time
from pathlib import Path

import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import Trial, create_trial
from tests.endtoend.parties import FILES, Objective, Parties, bowl

from sottovoce.errors import ProtocolError
from sottovoce.flower.deploy.following import Following, in_words
from sottovoce.flower.site import leaving
from sottovoce.flower.site.importing import import_trials

FILE = FILES["sottovoce"]
PLANNED = FILE.study.method.initial + FILE.study.rounds


class Watched(Parties):
    """A study of three sites, the first of which is followed."""

    def __init__(self, folder: Path, objective: Objective = bowl) -> None:
        super().__init__(folder, FILE, objective)
        self.home, self.log = folder / "site-0", folder / "join.log"
        self.lines: list[str] = []

    def follow(self, *, stay: bool = False) -> Following:
        return Following(FILE, self.home, self.log, self.lines.append, stay=stay)

    def told(self, following: Following) -> list[str]:
        """What is told now."""
        self.lines.clear()
        following.over()
        return list(self.lines)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_every_trial_is_told_once_with_the_best_so_far_and_every_release_that_was_heard(
    watched: Watched,
) -> None:
    following = watched.follow()
    assert watched.told(following) == []  # nobody has called it yet
    coordinator = watched.coordinator()
    watched.step(coordinator)
    first = watched.told(following)
    assert [line.split(":")[0] for line in first] == [f"trial {k} of {PLANNED}" for k in (1, 2)]
    assert "the best so far, at x 0." in first[0]
    assert "best " in first[1]
    watched.step(coordinator)
    second = watched.told(following)
    assert second[0].startswith(f"trial 3 of {PLANNED}: ")
    assert second[-1] == f"heard release 1 of {len(FILE.study.release_rounds)}"
    assert watched.told(following) == []
    coordinator.stop()


def test_what_was_there_before_is_not_told_again(watched: Watched) -> None:
    watched.run(1)
    following = watched.follow()
    assert watched.told(following) == []
    watched.run(1)
    assert watched.told(following)[0].startswith(f"trial 3 of {PLANNED}: ")


def test_it_is_over_when_all_trials_are_run_and_the_last_word_has_travelled(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "FAREWELL", 0.2)
    following, staying = watched.follow(), watched.follow(stay=True)
    watched.run()
    assert not following.over()
    assert following.through
    assert watched.lines[-2:][0].startswith(f"trial {PLANNED} of {PLANNED}: ")
    time.sleep(0.3)
    assert following.over()
    staying.over()
    time.sleep(0.3)
    assert not staying.over()
    assert watched.follow().through  # and whoever joins again is told at once


def test_a_failed_trial_is_told_with_its_error_on_one_line(tmp_path: Path) -> None:
    def moody(trial: Trial) -> float:
        if trial.number == 0:
            raise RuntimeError("no\ndata")
        return bowl(trial)

    watched = Watched(tmp_path, moody)
    following = watched.follow()
    watched.run(1)
    first, second = watched.told(following)
    assert first == f"trial 1 of {PLANNED} failed: RuntimeError: no data"
    assert "the best so far, at x" in second


def test_a_site_that_left_is_over_and_one_that_begins_anew_is_told_from_its_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "FAREWELL", 0.2)
    broken = [True]

    def mended(trial: Trial) -> float:
        return bowl(trial) / (0 if broken[0] else 1)

    watched = Watched(tmp_path, mended)
    following = watched.follow()
    with pytest.raises(ProtocolError, match="it left the study"):
        watched.run(1)
    time.sleep(0.3)
    assert following.over()
    broken.clear()
    broken.append(False)
    leaving.forget(watched.home)
    watched.run(1)
    lines = watched.told(following)
    assert [line.split(":")[0] for line in lines] == [f"trial {k} of {PLANNED}" for k in (1, 2)]
    assert not following.over()


def test_of_the_log_only_new_whole_lines_of_a_refused_app_are_told(watched: Watched) -> None:
    watched.log.write_text("run 1 is refused: an old one\n")
    following = watched.follow()
    assert watched.told(following) == []
    with watched.log.open("a") as log:
        log.write(
            "run 2 is refused: another app\nINFO: all is well\nsomebody is refused: no\nrun 3"
        )
    assert watched.told(following) == ["run 2 is refused: another app"]
    with watched.log.open("a") as log:
        log.write(" is refused: a third\n")
    assert watched.told(following) == ["run 3 is refused: a third"]
    watched.log.unlink()
    assert watched.told(following) == []


def test_a_memory_that_cannot_be_read_is_passed_over_until_it_can(watched: Watched) -> None:
    watched.run(1)
    memory = watched.home / "study.db"
    whole = memory.read_bytes()
    memory.write_bytes(b"half a file")
    following = watched.follow()
    assert watched.told(following) == []
    assert not following.through
    memory.write_bytes(whole)
    assert len(watched.told(following)) == 2


def test_a_best_from_before_the_study_is_told_to_be_that(tmp_path: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{tmp_path / 'old.db'}"
    where: dict[str, BaseDistribution] = {"x": FloatDistribution(0.0, 1.0)}
    old = optuna.create_study(storage=storage)
    old.add_trial(create_trial(params={"x": 0.3}, distributions=where, value=-1.0))
    watched = Watched(tmp_path)
    import_trials(FILE, watched.home, storage)
    following = watched.follow()
    assert watched.told(following) == []  # they are none of the study's
    watched.run(1)
    assert all(
        line.endswith(", best -1 from before the study, at x 0.3")
        for line in watched.told(following)
    )


def test_parameters_stand_on_one_line() -> None:
    assert in_words({"rate": 0.123456, "depth": 7, "kind": "a b"}) == (
        "rate 0.1235, depth 7, kind a b"
    )
