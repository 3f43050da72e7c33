from __future__ import annotations

import copy
import math
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import optuna
import pytest
from optuna import Trial
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState, create_trial

from sottovoce.errors import InvalidInput, SpaceError
from sottovoce.federation import batch
from sottovoce.federation.agent import Agent
from sottovoce.federation.methods import TS
from sottovoce.federation.searcher import Direction, Searcher
from sottovoce.federation.study import FederatedStudy
from sottovoce.federation.surrogate import Surrogate
from sottovoce.gp import fit as kernelfit
from sottovoce.gp import matern
from sottovoce.optuna import (
    AgentSampler,
    Sampler,
    check_asked,
    distributions_of,
    space_of,
    space_toml,
    traced_space,
)
from sottovoce.space import Category, Float, Integer, Space

EVERY_KIND = Space(
    [
        Float("rate", 1e-4, 1.0, log=True),
        Float("share", 0.1, 0.7, steps=4),
        Float("weight", -1.0, 1.0),
        Integer("depth", 1, 8),
        Integer("units", 32, 256, step=32),
        Integer("width", 1, 1000, log=True),
        Category("kind", ("a", "b", 3, True)),
    ]
)
PAIRS = [
    (FloatDistribution(-1, 2), Float("p", -1.0, 2.0)),
    (FloatDistribution(1e-5, 1, log=True), Float("p", 1e-5, 1.0, log=True)),
    (FloatDistribution(-10.2, 10.2, step=0.1), Float("p", -10.2, 10.2, steps=205)),
    (FloatDistribution(0.1, 0.7, step=0.2), Float("p", 0.1, 0.7, steps=4)),
    (IntDistribution(-3, 9), Integer("p", -3, 9)),
    (IntDistribution(1, 100, log=True), Integer("p", 1, 100, log=True)),
    (IntDistribution(16, 64, step=16), Integer("p", 16, 64, step=16)),
    (CategoricalDistribution(["a", 1, 2.5, True]), Category("p", ("a", 1, 2.5, True))),
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    yield
    optuna.logging.set_verbosity(before)


def every_kind(trial: Trial) -> float:
    number = 1.0 if trial.suggest_categorical("kind", ["a", "b", 3, True]) == "a" else 0.0
    number += trial.suggest_int("units", 32, 256, step=32) / 256
    number += trial.suggest_int("width", 1, 1000, log=True) / 1000
    number += trial.suggest_int("depth", 1, 8) + trial.suggest_float("weight", -1, 1)
    number += trial.suggest_float("share", 0.1, 0.7, step=0.2)
    return number + trial.suggest_float("rate", 1e-4, 1, log=True)


def bowl(trial: Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return (x - 0.3) ** 2 + (y - 0.8) ** 2


def searched(
    sampler: Sampler,
    objective: Callable[[Trial], float] = bowl,
    trials: int = 16,
    direction: Literal["minimize", "maximize"] = "minimize",
) -> optuna.Study:
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(objective, n_trials=trials)
    return study


def asked(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def bowl_at(params: dict[str, float]) -> float:
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.8) ** 2


def given_trial(number: int) -> FrozenTrial:
    """A finished trial of the bowl, at a point that only its number tells."""
    at = np.random.default_rng(number).random(2)
    params = {"x": float(at[0]), "y": float(at[1])}
    range_: dict[str, BaseDistribution] = {name: FloatDistribution(0, 1) for name in params}
    return create_trial(params=params, distributions=range_, value=bowl_at(params))


def search_of(sampler: Sampler) -> Searcher:
    search = sampler._search
    assert search is not None
    return search.searcher


# --- spaces


@pytest.mark.parametrize(("distribution", "parameter"), PAIRS, ids=lambda p: str(p))
def test_a_distribution_becomes_a_parameter_and_comes_back(
    distribution: BaseDistribution, parameter: Float | Integer | Category
) -> None:
    space = Space([parameter])
    assert space_of({"p": distribution}) == space
    assert distributions_of(space) == {"p": distribution}


def test_the_order_an_objective_asks_in_does_not_change_the_space() -> None:
    one, two = FloatDistribution(0, 1), IntDistribution(0, 5)
    space = space_of({"b": one, "a": two})
    assert space == space_of({"a": two, "b": one})
    assert space.names == ("a", "b")


def test_a_parameter_with_a_single_value_is_left_out() -> None:
    single = {"s": FloatDistribution(1, 1), "c": CategoricalDistribution([None])}
    assert space_of({**single, "x": IntDistribution(0, 5)}).names == ("x",)
    with pytest.raises(SpaceError, match=r"more than one value is needed, got \['c', 's'\]"):
        space_of(single)
    with pytest.raises(SpaceError, match="more than one value"):
        space_of({})


def test_a_choice_that_no_file_can_hold_is_refused_by_name() -> None:
    with pytest.raises(SpaceError, match="'c': a study's file has no word for None"):
        space_of({"c": CategoricalDistribution([None, "a"])})
    with pytest.warns(UserWarning, match="Choices for a categorical"):
        pair = CategoricalDistribution([(1, 2), (3, 4)])  # type: ignore[list-item]
    with pytest.raises(SpaceError, match="'c': a choice must be a str"):
        space_of({"c": pair})


def test_a_kind_of_distribution_nobody_knows_is_refused_by_name() -> None:
    class Odd(BaseDistribution):
        def to_internal_repr(self, param_value_in_external_repr: Any) -> float:
            return 0.0

        def single(self) -> bool:
            return False

        def _contains(self, param_value_in_internal_repr: float) -> bool:
            return True

    with pytest.raises(SpaceError, match="'odd': no such kind"):
        space_of({"odd": Odd()})


def test_steps_that_optuna_cannot_write_become_a_plain_range() -> None:
    space = Space([Float("thirds", 0.0, 1.0, steps=4), Float("log", 1e-3, 1.0, True, steps=4)])
    wanted = {
        "thirds": FloatDistribution(0, 1),
        "log": FloatDistribution(1e-3, 1, log=True),
    }
    assert distributions_of(space) == wanted


def test_a_trial_that_asks_for_what_is_declared_passes() -> None:
    once = FloatDistribution(1, 1)
    check_asked({**distributions_of(EVERY_KIND), "single": once}, EVERY_KIND)
    check_asked({"depth": IntDistribution(1, 8)}, EVERY_KIND)  # one branch of its objective


def test_a_declared_parameter_may_not_be_fixed_to_one_value() -> None:
    with pytest.raises(SpaceError, match="'x': the study's space must declare it exactly"):
        check_asked({"x": FloatDistribution(0.5, 0.5)}, Space([Float("x", 0.0, 1.0)]))


@pytest.mark.parametrize(
    ("asks", "message"),
    [
        ({"x": FloatDistribution(0, 2)}, "'x': .* asks for it, Float.*high=2.* declares Float"),
        ({"z": IntDistribution(0, 1)}, "'z': .* it does not have it"),
        ({"x": IntDistribution(0, 1)}, "'x': .* asks for it, Int.* declares Float"),
    ],
)
def test_a_trial_that_asks_for_anything_else_is_refused(
    asks: dict[str, BaseDistribution], message: str
) -> None:
    with pytest.raises(SpaceError, match=message):
        check_asked(asks, Space([Float("x", 0.0, 1.0)]))


def test_one_trial_of_an_objective_shows_its_space() -> None:
    space = traced_space(every_kind)
    assert space.names == tuple(sorted(EVERY_KIND.names))
    assert set(space.parameters) == set(EVERY_KIND.parameters)


def test_an_objective_that_prunes_or_asks_which_site_it_is_can_be_traced() -> None:
    def pruning(trial: Trial) -> float:
        trial.suggest_float("x", 0, 1 + trial.study.user_attrs["site"])
        raise optuna.TrialPruned

    assert traced_space(pruning, site=3) == Space([Float("x", 0.0, 4.0)])
    with pytest.raises(KeyError):  # an objective's own errors are its own
        traced_space(pruning)


def test_a_space_is_written_as_toml_and_read_back() -> None:
    awkward = ('say "no"\\', "tab\tline\n\x00\x1f\x7f\x85", "é 🎲", "", 1e-05, 1e300, -7, False)
    space = Space([*EVERY_KIND.parameters, Category('a "name"\n', awkward), Float("f", -0.5, 1e16)])
    text = space_toml(space)
    assert text.startswith('[[space.parameters]]\ntype = "float"\nname = "rate"\nlow = 0.0001\n')
    assert Space.from_dict(tomllib.loads(text)["space"]) == space


# --- the sampler on its own


def test_a_seeded_study_repeats_itself() -> None:
    first = asked(searched(Sampler(seed=3), every_kind))
    assert first == asked(searched(Sampler(seed=3), every_kind))
    assert first != asked(searched(Sampler(seed=4), every_kind))
    assert first != asked(searched(Sampler(), every_kind))


def test_it_finds_the_bottom_of_a_bowl_that_chance_misses() -> None:
    best = [searched(Sampler(seed=seed), trials=25).best_value for seed in range(3)]
    assert max(best) < 1e-3


def test_a_maximised_objective_is_searched_like_its_negative_minimised() -> None:
    down = searched(Sampler(seed=1), bowl)
    up = searched(Sampler(seed=1), lambda trial: -bowl(trial), direction="maximize")
    assert asked(up) == asked(down)


def test_a_kernel_is_fitted_once_in_five_trials_and_once_for_a_resumed_study(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted: list[int] = []

    def counted(points: Any, *rest: Any) -> Any:
        fitted.append(points.shape[1])
        return kernelfit.fit(points, *rest)

    monkeypatch.setattr(batch, "fit", counted)
    study = searched(Sampler(seed=0, method="ts"), trials=31)
    assert fitted == [10, 15, 20, 25, 30]
    study.sampler = Sampler(seed=0, method="ts")
    study.optimize(bowl, n_trials=7)
    assert fitted[5:] == [31, 36]


def test_a_search_by_expected_improvement_is_fitted_after_each_trial_and_later_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted: list[int] = []

    def counted(coordinates: Any, points: Any, *rest: Any) -> Any:
        fitted.append(points.shape[1])
        return matern.fit_map(coordinates, points, *rest)

    monkeypatch.setattr(batch, "fit_map", counted)
    searched(Sampler(seed=0), trials=12)
    assert fitted == list(range(6, 12))
    later = optuna.create_study(sampler=Sampler(seed=0))
    later.add_trials([given_trial(number) for number in range(80)])
    later.optimize(bowl, n_trials=5)
    assert fitted[6:] == [78, 81, 84]  # of 80, 81, 82, 83, 84 trials


def test_a_trial_that_finishes_late_is_told_and_nothing_begins_anew() -> None:
    sampler = Sampler(seed=0, initial=3)
    study = searched(sampler, trials=5)
    late = study.ask()
    value = bowl(late)
    study.optimize(bowl, n_trials=2)
    before = search_of(sampler)
    study.tell(late, value)
    study.optimize(bowl, n_trials=1)
    assert search_of(sampler) is before
    assert before.observations == 8  # all but the one just run


def test_a_sampler_taken_to_another_study_forgets_the_first() -> None:
    sampler = Sampler(seed=0, initial=3)
    searched(sampler, trials=9)
    searched(sampler, trials=6)
    assert search_of(sampler).trials == 5


def test_the_same_trials_in_a_study_the_other_way_round_are_another_search() -> None:
    sampler = Sampler(seed=0, initial=3)
    down = searched(sampler, trials=5)
    up = optuna.create_study(sampler=sampler, direction="maximize")
    up.add_trials(down.trials)
    up.optimize(bowl, n_trials=1)
    assert search_of(sampler).direction == "maximize"


def test_trials_that_came_to_nothing_teach_nothing() -> None:
    def unlucky(trial: Trial) -> float:
        value = bowl(trial)
        if trial.number == 2:
            raise optuna.TrialPruned
        if trial.number == 3:
            raise OSError("disk")
        return {4: math.nan, 5: math.inf, 6: -math.inf, 7: 1e200}.get(trial.number, value)

    sampler = Sampler(seed=0, initial=4)
    study = optuna.create_study(sampler=sampler)
    study.optimize(unlucky, n_trials=14, catch=(OSError,))
    told = search_of(sampler)
    assert (told.trials, told.observations) == (13, 7)
    states = [trial.state for trial in study.trials]
    assert states[2:5] == [TrialState.PRUNED, TrialState.FAIL, TrialState.FAIL]


def test_a_queued_trial_outside_of_the_space_is_not_told() -> None:
    sampler = Sampler(seed=0, initial=2)
    study = searched(sampler, trials=4)
    for _ in range(2):
        study.enqueue_trial({"x": 3.0, "y": 0.5})
        with pytest.warns(UserWarning, match="out of range"):
            study.optimize(bowl, n_trials=1)
        study.optimize(bowl, n_trials=1)
        study.sampler = sampler = Sampler(seed=0, initial=2)  # the same from the start
    study.optimize(bowl, n_trials=1)
    assert search_of(sampler).trials == 6
    assert not search_of(sampler).starting  # the last trial was drawn, not one more at random


def test_choices_may_be_anything() -> None:
    choices: list[Any] = [None, "a", 1, 1.5, (1, 2)]

    def objective(trial: Trial) -> float:
        choice = trial.suggest_categorical("c", choices)
        return choices.index(choice) + trial.suggest_float("x", 0, 1)

    with pytest.warns(UserWarning, match="Choices for a categorical"):
        study = searched(Sampler(seed=0), objective, trials=30)
    assert study.best_params["c"] is None
    assert study.best_value < 0.05


def test_what_only_some_trials_ask_for_is_uniform_and_the_rest_is_drawn() -> None:
    def branching(trial: Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        deep = trial.suggest_categorical("deep", [False, True])
        return (x - 0.3) ** 2 + (trial.suggest_float("y", 0, 1) if deep else 0.5)

    sampler = Sampler(seed=0)
    study = searched(sampler, branching, trials=20)
    assert search_of(sampler).study.space.names == ("deep", "x")
    assert {"y" in trial.params for trial in study.trials} == {True, False}
    ys = [trial.params["y"] for trial in study.trials if "y" in trial.params]
    assert len(set(ys)) == len(ys)


def test_a_repeat_gives_way_to_an_untried_point_if_asked_to() -> None:
    sampler = Sampler(seed=0, method="ts", initial=1, repeats="replace")
    study = searched(sampler, lambda trial: trial.suggest_int("n", 1, 8), trials=8)
    assert sorted(trial.params["n"] for trial in study.trials) == list(range(1, 9))


def test_expected_improvement_tries_all_of_a_small_space_before_it_repeats_a_point() -> None:
    study = searched(Sampler(seed=0, initial=1), lambda trial: trial.suggest_int("n", 1, 8), 8)
    assert sorted(trial.params["n"] for trial in study.trials) == list(range(1, 9))
    study.optimize(lambda trial: trial.suggest_int("n", 1, 8), n_trials=2)
    assert len(study.trials) == 10


@pytest.mark.parametrize(("method", "listed"), [("ts", False), ("gp", True)])
def test_a_long_range_of_integers_is_not_listed_for_draws(
    method: Literal["gp", "ts"], listed: bool
) -> None:
    sampler = Sampler(seed=0, method=method)
    study = searched(sampler, lambda trial: abs(trial.suggest_int("n", 0, 2000) - 600), trials=20)
    assert search_of(sampler).study.space.finite == listed
    assert study.best_value < 20


def test_a_copied_or_pickled_sampler_goes_on_as_the_first_would() -> None:
    study = searched(Sampler(seed=0))
    copies = copy.deepcopy(study.sampler), pickle.loads(pickle.dumps(study.sampler))  # noqa: S301
    done = study.trials
    ours = study.ask()
    bowl(ours)
    for sampler in copies:  # each in a study of its own: a trial that runs is to be kept away from
        again = optuna.create_study(sampler=sampler)
        again.add_trials(done)
        trial = again.ask()
        bowl(trial)
        assert trial.params == ours.params


def test_a_trial_keeps_away_from_one_that_runs_even_before_it_asks_for_its_parameters() -> None:
    study = searched(Sampler(seed=0))
    one, two = study.ask(), study.ask()  # both suggested, and neither has asked
    values = {tuple(trial.suggest_float(name, 0, 1) for name in "xy") for trial in (one, two)}
    assert len(values) == 2
    running = search_of(study.sampler)._batch.pending  # type: ignore[arg-type]
    assert running is not None
    assert running.shape == (1, 1, 2)


def test_workers_share_a_sampler_and_go_different_ways() -> None:
    study = optuna.create_study(sampler=Sampler(seed=0, initial=4))
    study.optimize(bowl, n_trials=24, n_jobs=4)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 24
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


def test_a_study_kept_in_a_file_goes_on_with_a_new_sampler(tmp_path: Path) -> None:
    for expected in (4, 8):
        storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
        sampler = Sampler(seed=expected, initial=2)
        study = optuna.create_study(
            storage=storage, study_name="s", load_if_exists=True, sampler=sampler
        )
        study.optimize(bowl, n_trials=4)
        assert search_of(sampler).trials == expected - 1
        storage.engine.dispose()


def test_a_study_with_two_objectives_is_refused() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=Sampler())
    with pytest.raises(InvalidInput, match="studies with one objective, got objectives=2"):
        study.ask().suggest_float("x", 0, 1)


def unlike(trial: Trial) -> float:
    values = [trial.suggest_float(f"x{k}", 0, 1) for k in range(60)]
    return sum(values[:3])


ODD: dict[str, tuple[Callable[[Trial], float], int]] = {
    "a constant objective": (lambda trial: 0.0 * bowl(trial) + 7.0, 8),
    "a choice with one value": (
        lambda trial: bowl(trial) + len(trial.suggest_categorical("c", ["only"])),
        7,
    ),
    "sixty parameters": (unlike, 12),
    "two integers": (lambda trial: float(trial.suggest_int("n", 0, 1)), 8),
    "two integers and a number": (
        lambda trial: trial.suggest_int("n", 0, 1) + trial.suggest_float("x", 0, 1),
        8,
    ),
    "huge and tiny values": (lambda trial: 10.0 ** (90 - 170 * bowl(trial)), 10),
}


@pytest.mark.parametrize("kind", ODD)
def test_there_is_a_suggestion_for_every_odd_objective(kind: str) -> None:
    objective, trials = ODD[kind]
    study = searched(Sampler(seed=0), objective, trials)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * trials
    search_of(study.sampler)  # type: ignore[arg-type]  # some were suggested, not all uniform


def test_there_is_a_suggestion_after_one_value_and_where_all_other_trials_failed() -> None:
    study = searched(Sampler(seed=0, initial=1), trials=2)
    assert search_of(study.sampler).observations == 1  # type: ignore[arg-type]

    def failing(trial: Trial) -> float:
        bowl(trial)
        raise OSError("disk")

    study.optimize(failing, n_trials=8, catch=(OSError,))
    points = {tuple(trial.params.values()) for trial in study.trials}
    assert len(points) == 10
    nothing = optuna.create_study(sampler=Sampler(seed=0))
    nothing.optimize(failing, n_trials=8, catch=(OSError,))
    assert len(nothing.trials) == 8


def test_there_is_a_suggestion_after_five_hundred_trials_and_after_duplicates() -> None:
    study = optuna.create_study(sampler=Sampler(seed=0))
    study.add_trials([given_trial(number) for number in range(500)])
    study.optimize(bowl, n_trials=1)
    assert (study.trials[-1].value or 1.0) < 0.01
    twins = optuna.create_study(sampler=Sampler(seed=0))
    twins.add_trials([given_trial(1)] * 10)
    twins.optimize(bowl, n_trials=2)
    assert twins.trials[-1].params not in [trial.params for trial in twins.trials[:-1]]


@pytest.mark.parametrize(
    "bad",
    [
        {"method": "tpe"},
        {"surrogate": Surrogate()},
        {"repeats": "replace"},
        {"method": "ts", "repeats": "never"},
    ],
)
def test_a_setting_that_does_not_go_with_the_method_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=list(bad)[-1]):
        Sampler(**bad)


@pytest.mark.parametrize(
    "bad", [{"initial": 0}, {"initial": 2.5}, {"initial": True}, {"seed": -1}, {"repeats": "never"}]
)
def test_a_bad_setting_is_refused_by_name(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        Sampler(**bad)


# --- an agent as the sampler


def agent_of(space: Space = EVERY_KIND, direction: Direction = "minimize") -> Agent:
    return Agent(FederatedStudy(space, TS, 1, 20), 0, direction=direction, seed=5)


def test_every_trial_is_what_the_agent_asks_for() -> None:
    agent, twin = agent_of(), agent_of()
    study = optuna.create_study(sampler=AgentSampler(agent))
    for _ in range(13):
        trial = study.ask()
        value = every_kind(trial)
        study.tell(trial, value)
        agent.tell(trial.params, value)
        check_asked(trial.distributions, EVERY_KIND)
        wanted = twin.ask()
        twin.tell(wanted, value)
        assert trial.params == wanted
    assert agent.best[1] == study.best_value


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda trial: trial.suggest_float("z", 0, 1), "'z': .* must declare it exactly"),
        (lambda trial: trial.suggest_int("n", 10, 20), "'n': .* it declares Int"),
    ],
)
def test_an_objective_that_asks_for_something_else_is_refused(
    ask: Callable[[Trial], float], message: str
) -> None:
    agent = agent_of(Space([Integer("n", 1, 8)]))
    study = optuna.create_study(sampler=AgentSampler(agent))
    with pytest.raises(SpaceError, match=message):
        ask(study.ask())


def test_a_study_that_goes_the_other_way_than_its_agent_is_refused() -> None:
    study = optuna.create_study(sampler=AgentSampler(agent_of(direction="maximize")))
    with pytest.raises(InvalidInput, match="must maximize, as the agent does"):
        every_kind(study.ask())


def test_steps_that_optuna_cannot_write_still_come_out_on_the_steps() -> None:
    agent = agent_of(Space([Float("x", 0.0, 1.0, steps=4)]))
    study = optuna.create_study(sampler=AgentSampler(agent))
    values = set()
    for _ in range(10):
        values.add(study.ask().suggest_float("x", 0, 1))
        agent.tell(agent.ask(), 1.0)  # an initial point stays the same until it is told
    np.testing.assert_allclose(sorted(values), [0, 1 / 3, 2 / 3, 1])


def test_without_optuna_the_import_says_what_to_install() -> None:
    script = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "optuna":
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import sottovoce.optuna
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'sottovoce[optuna]'" in result.stderr


def test_the_example_in_the_docs_runs_and_finds_the_depth() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "optuna.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "'depth': 7" in result.stdout
