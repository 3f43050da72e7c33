"""A site that already has trials: which of them it takes, when, and that it does so once."""

from __future__ import annotations

import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial
from tests.unit.flower.site.test_site import FILE, asked_after, call, quadratic, trials

from sottovoce.errors import InvalidInput, SottovoceError, StorageError
from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import method_named
from sottovoce.federation.study import FederatedStudy
from sottovoce.flower.site import importing
from sottovoce.flower.site.importing import Imported, import_trials
from sottovoce.flower.site.memory import Memory, lock
from sottovoce.flower.site.site import Site
from sottovoce.space import Float, Space

X, N = FloatDistribution(0.0, 1.0), IntDistribution(1, 4)
KINDS = ["sqlite", "journal"]


def trial(x: Any, n: Any, value: float | None, **changes: Any) -> FrozenTrial:
    given: dict[str, Any] = {"params": {"x": x, "n": n}, "distributions": {"x": X, "n": N}}
    return create_trial(value=value, **{**given, **changes})


GOOD = [trial(0.1 * k, 1 + k % 4, 0.5 - 0.1 * k) for k in range(5)]


def earlier(path: Path, *given: FrozenTrial, kind: str = "sqlite", **study: Any) -> str:
    """A study of the site's own, and where it is."""
    if kind == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(path))
        storage: Any = optuna.storages.JournalStorage(backend)
    else:
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    study = {"study_name": "tuning", "direction": "minimize", **study}
    made = optuna.create_study(storage=storage, **study)
    made.add_trials(given)
    if kind == "sqlite":
        storage.engine.dispose()
    return str(path)


def known(folder: Path, kind: str = "sqlite") -> list[tuple[dict[str, Any], float]]:
    with Memory(folder, kind, FILE.study, FILE.direction) as memory:
        return memory.earlier


@pytest.mark.parametrize("own", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_trials_of_a_study_become_what_a_site_knows(
    tmp_path: Path, kind: str, own: str
) -> None:
    source, folder = earlier(tmp_path / "old file", *GOOD, kind=kind), tmp_path / "site"
    before = Path(source).read_bytes()
    done = import_trials(FILE, folder, source, storage=own)
    memory = folder / ("study.db" if own == "sqlite" else "study.journal")
    assert done == Imported("tuning", 5, {}, memory)
    assert known(folder, own) == [(each.params, each.value) for each in GOOD]
    assert Path(source).read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["lock", memory.name]
    site = Site(FILE, quadratic, folder, storage=own)
    assert site.answer(call(0)).answer == "vector"
    assert finished_rounds(folder, own) == [0] * 3  # the initial trials are run all the same
    assert len(known(folder, own)) == 5


def finished_rounds(folder: Path, kind: str) -> list[int]:
    with Memory(folder, kind, FILE.study, FILE.direction) as memory:
        return [told.round for told in memory.told]


def test_a_url_and_a_name_are_taken_as_well(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    earlier(path, GOOD[0], study_name="a")
    earlier(path, *GOOD[1:3], study_name="b")
    done = import_trials(FILE, tmp_path / "site", f"sqlite:///{path}", "b")
    assert (done.study, done.taken) == ("b", 2)


def test_what_cannot_be_learnt_from_is_left_out_and_counted(tmp_path: Path) -> None:
    wide, more = FloatDistribution(-1.0, 2.0), {"x": X, "n": N, "z": X}
    given = [
        *GOOD,
        GOOD[2],  # a copy
        trial(0.2, 3, 0.9),  # the same place again with another value is news
        trial(0.3, 1, None, state=TrialState.FAIL),
        trial(0.3, 1, None, state=TrialState.PRUNED),
        trial(0.3, 1, None, state=TrialState.RUNNING),
        trial(0.3, 1, math.inf),
        trial(1.5, 1, 0.1, distributions={"x": wide, "n": N}),
        trial(0.75, 1, 0.7, distributions={"x": wide, "n": N}),  # in the space all the same
        create_trial(value=0.1, params={"x": 0.5}, distributions={"x": X}),
        create_trial(value=0.1, params={"x": 0.5, "n": 1, "z": 0.5}, distributions=more),
    ]
    done = import_trials(FILE, tmp_path / "site", earlier(tmp_path / "old.db", *given))
    assert done.left_out == {
        "the same as another": 1,
        "failed": 1,
        "pruned": 1,
        "not finished": 1,
        "without a finite value": 1,
        "outside of the space": 1,
        "without all parameters of the space": 1,
        "with parameters that the space does not have": 1,
    }
    assert done.taken == 7
    assert known(tmp_path / "site")[-2:] == [({"x": 0.2, "n": 3}, 0.9), ({"x": 0.75, "n": 1}, 0.7)]


def test_a_parameter_that_never_varied_need_not_be_in_the_space(tmp_path: Path) -> None:
    more = {"x": X, "n": N, "z": CategoricalDistribution(["only"])}
    given = trial(0.3, 1, 0.1, params={"x": 0.3, "n": 1, "z": "only"}, distributions=more)
    import_trials(FILE, tmp_path / "site", earlier(tmp_path / "old.db", given))
    assert known(tmp_path / "site") == [({"x": 0.3, "n": 1}, 0.1)]


def test_of_many_trials_the_latest_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "MOST", 2)
    done = import_trials(FILE, tmp_path / "site", earlier(tmp_path / "old.db", *GOOD))
    assert (done.taken, done.left_out) == (2, {"older than the latest 2": 3})
    assert [value for _, value in known(tmp_path / "site")] == [each.value for each in GOOD[-2:]]


def wrong(tmp_path: Path) -> dict[str, tuple[str, str | None, str]]:
    """Sources that are refused: what, the study's name, and words of the error."""
    several = tmp_path / "several.db"
    for name in "ab":
        earlier(several, *GOOD, study_name=name)
    (tmp_path / "data.csv").write_text("patient,12345")
    (tmp_path / "lines.txt").write_text("patient\n12345\n")
    (tmp_path / "empty").touch()
    other = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'other.db'}").engine
    with other.begin() as connection:
        for row in connection.exec_driver_sql("SELECT name FROM sqlite_master").fetchall():
            if not row[0].startswith(("sqlite_", "ix_")):
                connection.exec_driver_sql(f"DROP TABLE {row[0]}")
    other.dispose()
    failed = trial(0.3, 1, None, state=TrialState.FAIL)
    up = earlier(tmp_path / "up.db", *GOOD, direction="maximize")
    two = earlier(tmp_path / "two.db", directions=["minimize", "minimize"], direction=None)
    fails = earlier(tmp_path / "fails.db", failed)
    choice = CategoricalDistribution(["few", "many"])
    named = trial(0.3, "many", 0.1, distributions={"x": X, "n": choice})
    words = earlier(tmp_path / "words.db", named)
    return {
        "up": (up, None, "one objective, to minimize, got directions=['maximize']"),
        "two": (two, None, "one objective, to minimize, got directions=['minimize', 'minimize']"),
        "fails": (fails, None, "must have a finished trial in the space; 'tuning' has 1 failed"),
        "nothing": (earlier(tmp_path / "no.db"), None, "'tuning' has no trial"),
        "several": (str(several), None, "name the study: --study, got studies=['a', 'b']"),
        "name": (str(several), "c", "no study 'c' is in the storage, got studies=['a', 'b']"),
        "missing": (str(tmp_path / "not-there.db"), None, "must be a file that is there, or a URL"),
        "missing-url": (f"sqlite:///{tmp_path}/nor-there.db", None, "must be a file that is there"),
        "kind": (words, None, "'tuning' has 1 outside of the space"),
        "csv": (str(tmp_path / "data.csv"), None, "a storage to import from must hold a study"),
        "text": (str(tmp_path / "lines.txt"), None, "no Optuna storage, or cannot be read"),
        "empty": (str(tmp_path / "empty"), None, "a storage to import from must hold a study"),
        "other": (str(tmp_path / "other.db"), None, "no Optuna storage, or cannot be read"),
        "url": ("no url://x", None, "a storage URL is like sqlite:///file.db"),
        "driver": ("mysql+pymysql://me:secret@nowhere/x", None, "that kind of storage needs"),
    }


def test_a_wrong_source_is_refused_and_nothing_is_imported(tmp_path: Path) -> None:
    for source, name, words in wrong(tmp_path).values():
        with pytest.raises(SottovoceError) as error:
            import_trials(FILE, tmp_path / "site", source, name)
        assert words in str(error.value)
        assert not {"secret", "12345"} & set(str(error.value).split())
        assert [path.name for path in (tmp_path / "site").iterdir()] == ["lock"]
    assert not (tmp_path / "not-there.db").exists()
    assert not (tmp_path / "nor-there.db").exists()


def test_trials_are_imported_once(tmp_path: Path) -> None:
    source, folder = earlier(tmp_path / "old.db", *GOOD), tmp_path / "site"
    import_trials(FILE, folder, source)
    for _ in range(2):
        with pytest.raises(InvalidInput, match="has imported 5 trials already"):
            import_trials(FILE, folder, source)
        assert Site(FILE, quadratic, folder).answer(call(0)).answer == "vector"
    assert len(known(folder)) == 5
    assert len(trials(folder)) == 5 + 3


def test_a_site_that_has_taken_part_imports_nothing(tmp_path: Path) -> None:
    source, folder = earlier(tmp_path / "old.db", *GOOD), tmp_path / "site"
    Site(FILE, quadratic, folder).answer(call(0))
    before = (folder / "study.db").read_bytes()
    with pytest.raises(InvalidInput, match=r"has taken part in the study already \(3 trials"):
        import_trials(FILE, folder, source)
    assert (folder / "study.db").read_bytes() == before
    with pytest.raises(StorageError, match=r"told to use study\.journal"):
        import_trials(FILE, folder, source, storage="journal")


def test_a_site_that_was_only_claimed_stays_the_same_agent(tmp_path: Path) -> None:
    source, folder = earlier(tmp_path / "old.db", *GOOD), tmp_path / "site"
    folder.mkdir()
    with Memory(folder, "sqlite", FILE.study, FILE.direction) as memory:
        memory.claim(0)
    import_trials(FILE, folder, source)
    reply = Site(FILE, quadratic, folder).answer(call(0, agent=1))
    assert reply.reason == "ProtocolError: this site has always been agent 0, it is called 1"


def test_a_running_site_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "PATIENCE", 0.0)
    source, folder = earlier(tmp_path / "old.db", *GOOD), tmp_path / "site"
    with lock(folder, 0.0), pytest.raises(InvalidInput, match="must not be running"):
        import_trials(FILE, folder, source)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 2])
def test_an_import_that_is_killed_leaves_nothing_half_imported(
    tmp_path: Path, kind: str, after: int
) -> None:
    source, folder = earlier(tmp_path / "old.db", *GOOD), tmp_path / "site"
    real, written = optuna.Study.add_trial, 0

    def dies(self: optuna.Study, each: FrozenTrial) -> None:
        nonlocal written
        if written == after:
            os.kill(os.getpid(), signal.SIGKILL)
        written += 1
        real(self, each)

    child = os.fork()
    if child == 0:
        try:
            optuna.Study.add_trial = dies  # type: ignore[method-assign,assignment]
            import_trials(FILE, folder, source, storage=kind)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert not (folder / "study.db").exists()
    assert not (folder / "study.journal").exists()
    assert import_trials(FILE, folder, source, storage=kind).taken == 5
    assert len(known(folder, kind)) == 5


def test_a_site_whose_own_trials_all_fail_leaves_whatever_it_knows(tmp_path: Path) -> None:
    import_trials(FILE, tmp_path / "site", earlier(tmp_path / "old.db", *GOOD))
    site = Site(FILE, lambda _: math.nan, tmp_path / "site")
    assert site.answer(call(0)).answer == "left"
    assert Site(FILE, quadratic, tmp_path / "site").answer(call(0)).answer == "vector"
    assert len(known(tmp_path / "site")) == 5


def test_what_is_known_is_in_the_next_rounds_too(tmp_path: Path) -> None:
    import_trials(FILE, tmp_path / "site", earlier(tmp_path / "old.db", *GOOD))
    site = Site(FILE, quadratic, tmp_path / "site")
    reply = site.answer(call(0))
    assert site.answer(asked_after(reply)).answer == "vector"
    assert finished_rounds(tmp_path / "site", "sqlite") == [0, 0, 0, 1]
    assert len([each for each in trials(tmp_path / "site") if "round" in each.user_attrs]) == 4


LINE = Space([Float("x", 0.0, 1.0)])


def agent_of(name: str, points: list[float]) -> Agent:
    method = method_named(name)
    mechanism = method.mechanism and replace(method.mechanism, noise=1.0)
    method = replace(method, initial=3, mechanism=mechanism)
    agent = Agent(FederatedStudy(LINE, method, agents=2, rounds=4), 0, seed=0)
    for x in points:
        agent.add_earlier({"x": x}, -((x - 0.3) ** 2))
    return agent


def begun(agent: Agent) -> Agent:
    while agent.starting:
        x = agent.ask()["x"]
        agent.tell({"x": x}, -((x - 0.3) ** 2))
    return agent


@pytest.mark.parametrize("name", ["sottovoce", "dp-fts-de", "gp", "ts", "pooled-ts"])
def test_earlier_values_are_knowledge_and_not_queries(name: str) -> None:
    points = [float(x) for x in np.linspace(0.0, 1.0, 40)]
    agent, fresh = agent_of(name, points), agent_of(name, [])
    assert (agent.trials, agent.starting, agent.observations) == (0, True, 40)
    assert agent.ask() == fresh.ask()
    begun(agent)
    assert (agent.trials, agent.observations) == (3, 43)
    assert abs(agent.best[0]["x"] - 0.3) < 0.02
    x = agent.ask()["x"]
    if name in ("sottovoce", "gp"):
        assert abs(x - 0.3) < 0.1
    agent.tell({"x": x}, None)
    with pytest.raises(InvalidInput, match="earlier values come before the study's own"):
        agent.add_earlier({"x": 0.5}, 1.0)


def test_a_message_is_made_from_earlier_values_too_where_the_method_allows(tmp_path: Path) -> None:
    points = [float(x) for x in np.linspace(0.0, 1.0, 20)]
    for name, same in {"sottovoce": False, "pooled-ts": True}.items():
        told, fresh = (begun(agent_of(name, some)).message(0).vector for some in (points, []))
        assert np.array_equal(told, fresh) is same
        assert np.all(np.isfinite(told))


def test_a_saved_agent_still_knows_which_values_are_earlier(tmp_path: Path) -> None:
    agent = begun(agent_of("sottovoce", [0.1, 0.2, 0.9]))
    agent.save(tmp_path / "agent.json")
    again = Agent.load(tmp_path / "agent.json", agent.study)
    assert (again.trials, again.observations) == (3, 6)
    assert np.array_equal(again.message(0).vector, agent.message(0).vector)
    assert again.ask() == agent.ask()
