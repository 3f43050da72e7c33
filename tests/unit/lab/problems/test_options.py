from __future__ import annotations

from typing import Any

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.lab.experiments.config import RunConfig
from sottovoce.lab.problems import PROBLEMS, problem_named
from sottovoce.lab.problems.continuous import GaussianProcess
from sottovoce.lab.problems.functions import Ackley, Branin
from sottovoce.lab.problems.heterogeneous import Heterogeneous


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("heterogeneous:alpha=0.7", Heterogeneous(0.7)),
        ("gp:dims=3,lengthscale=0.3", GaussianProcess(dims=3, lengthscale=0.3)),
        ("gp:lengthscale=0.3,dims=3", GaussianProcess(dims=3, lengthscale=0.3)),
        ("gp:alpha=none", GaussianProcess(alpha=None)),
        (" gp : dims = 3 , alpha = 1 ", GaussianProcess(3, alpha=1.0)),
        ("gp:lengthscale=5e-1", GaussianProcess(lengthscale=0.5)),
        ("ackley:dims=4", Ackley(dims=4)),
    ],
)
def test_a_string_makes_the_problem_it_describes(text: str, problem: object) -> None:
    assert problem_named(text) == problem


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_kind_alone_means_its_defaults(kind: str) -> None:
    assert problem_named(kind) == PROBLEMS[kind]()
    assert problem_named(kind).name == kind


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gp:lengthscale=0.3,alpha=1.0,dims=3", "gp:alpha=1,dims=3,lengthscale=0.3"),
        ("gp:dims=2,lengthscale=0.20", "gp"),
        ("gp:lengthscale=0.30000000000000004", "gp:lengthscale=0.30000000000000004"),
        ("heterogeneous:alpha=-0.0", "heterogeneous:alpha=0"),
        ("branin:noise=1e-7", "branin:noise=1e-07"),
        ("ackley:shift=0.05,dims=2,noise=0.1", "ackley"),
    ],
)
def test_equal_problems_have_one_name_that_leaves_defaults_out(text: str, name: str) -> None:
    assert problem_named(text).name == name
    assert problem_named(name) == problem_named(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sinthetic",
            r"unknown problem 'sinthetic'; did you mean 'synthetic'\? known are .*digits$",
        ),
        ("zzz", r"unknown problem 'zzz'; known are synthetic, .*digits$"),
        ("", "unknown problem ''"),
        ("hartman6:shift=0", r"unknown problem 'hartman6'; did you mean 'hartmann6'\?"),
        (
            "gp:dim=3",
            r"gp: unknown option 'dim'; did you mean 'dims'\? known are alpha, dims, lengthscale",
        ),
        ("gp:zzz=3", "gp: unknown option 'zzz'; known are alpha, dims, lengthscale$"),
        ("branin:dims=2", "unknown option 'dims'; known are noise, shift"),
        ("gp:", "gp: options must be written option=value with commas between, got options=''"),
        ("gp:dims", "must be written option=value"),
        ("gp:dims=", "must be written option=value"),
        ("gp:=3", "must be written option=value"),
        ("gp:dims=3,", "must be written option=value"),
        ("gp:dims=3;alpha=1", "gp: dims must be a whole number, got dims='3;alpha=1'"),
        ("gp:dims=3,dims=3", "gp: dims must be given once"),
        ("gp:dims=3.0", "gp: dims must be a whole number, got dims=3.0"),
        ("gp:dims=none", "gp: dims must be a whole number, got dims=None"),
        ("gp:alpha=lots", "gp: alpha must be a finite number or none, got alpha='lots'"),
        ("gp:alpha=nan", "gp: alpha must be a finite number or none, got alpha=nan"),
        ("gp:alpha=inf", "gp: alpha must be a finite number or none"),
        ("gp:alpha=1" + "0" * 400, "gp: alpha must be a finite number or none"),
        ("gp:dims=0", "gp: dims must be from 1 to 6, got dims=0"),
        ("gp:dims=7", "gp: dims must be from 1 to 6, got dims=7"),
        ("gp:alpha=1.5", r"gp: alpha must be none or in \[0, 1\], got alpha=1.5"),
        ("gp:dims=6,lengthscale=0.1", r"lengthscale must be in \[0.198, 10\] for dims=6"),
        ("gp:lengthscale=11", r"lengthscale must be in \[0.00781, 10\] for dims=2"),
        ("gp:lengthscale=-1", "lengthscale must be in"),
        ("heterogeneous:alpha=-0.1", r"heterogeneous: alpha must be in \[0, 1\], got alpha=-0.1"),
        ("heterogeneous:alpha=1.1", r"alpha must be in \[0, 1\]"),
        (
            "heterogeneous:alpha=none",
            "heterogeneous: alpha must be a finite number, got alpha=None",
        ),
        ("branin:shift=0.16", r"branin: shift must be in \[0, 0.1517\], to keep a maximiser in"),
        ("hartmann3:shift=0.12", r"hartmann3: shift must be in \[0, 0.1146\]"),
        ("hartmann6:shift=0.16", r"hartmann6: shift must be in \[0, 0.1500\]"),
        ("ackley:shift=0.6", r"ackley: shift must be in \[0, 0.5000\]"),
        ("ackley:shift=-0.1", r"ackley: shift must be in"),
        ("ackley:noise=-0.1", "ackley: noise must be at least 0, got noise=-0.1"),
        ("ackley:dims=7", "ackley: dims must be from 1 to 6, got dims=7"),
        ("ackley:dims=two", "ackley: dims must be a whole number, got dims='two'"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        problem_named(text)


@pytest.mark.parametrize("wrong", [None, 3, Branin()])
def test_a_name_that_is_no_string_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="problem must be a word"):
        problem_named(wrong)


def test_values_given_in_python_are_held_to_the_same_rules() -> None:
    assert Heterogeneous(1) == Heterogeneous(1.0)
    wrong: Any = True
    with pytest.raises(InvalidInput, match="dims must be a whole number, got dims=True"):
        GaussianProcess(dims=wrong)
    with pytest.raises(InvalidInput, match="dims must be a whole number, got dims=True"):
        Ackley(dims=wrong)


def test_a_configs_problem_may_have_options() -> None:
    assert RunConfig(problem="gp:dims=3", agents=10).study().space.dims == 3
    with pytest.raises(InvalidInput, match="did you mean 'dims'"):
        RunConfig(problem="gp:dim=3")
