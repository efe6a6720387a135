"""Schedules are pure functions of the step."""

import functools
import math
import pickle
import random

import pytest
import torch
from tests.processes import run_code
from torch.optim import lr_scheduler

from castalia import Training
from castalia.errors import InvalidParameter
from castalia.optim import (
    SCHEDULES,
    build_schedule,
    constant,
    cosine,
    cyclic,
    exponential,
    inverse_sqrt,
    inverse_time,
    linear_decay,
    one_cycle,
    plateau,
    step,
    warmup,
)


@pytest.mark.parametrize(
    "schedule, expected",
    [
        (constant(), {0: 1, 50: 1, 99: 1}),
        (linear_decay(tau=50, floor=0.1), {0: 1, 25: 0.55, 50: 0.1, 80: 0.1}),
        (linear_decay(tau=0.5, floor=0.1), {0: 1, 25: 0.55, 50: 0.1, 80: 0.1}),
        (step(every=30, factor=0.5), {29: 1, 30: 0.5, 59: 0.5, 60: 0.25}),
        (exponential(final=0.01), {0: 1, 50: 0.1, 100: 0.01}),
        (cosine(), {0: 1, 50: 0.5, 100: 0}),
        (cosine(floor=0.2), {0: 1, 50: 0.6, 100: 0.2}),
        (inverse_sqrt(tau=4), {0: 1, 4: 1, 16: 0.5, 64: 0.25}),
        (inverse_time(0.25), {0: 1, 4: 0.5, 12: 0.25, 36: 0.1}),
        (cyclic(period=20, floor=0.2), {0: 0.2, 5: 0.6, 10: 1, 15: 0.6, 20: 0.2, 30: 1}),
        (cyclic(period=0.2, floor=0.2, shrink=0.5), {10: 1, 20: 0.2, 30: 0.6, 50: 0.4}),
        (one_cycle(rise=21, start=0.1, floor=0.0), {0: 0.1, 10: 0.55, 20: 1, 99: 0, 200: 0}),
        (plateau(), {0: 1, 50: 1, 99: 1}),
        (warmup("cosine", steps=4), {0: 0.25, 50: 0.5}),
        (warmup(constant(), steps=4), {0: 0.25, 1: 0.5, 3: 1, 4: 1}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_factor_follows_the_formula(schedule, expected):
    assert {k: schedule(k, 100) for k in expected} == pytest.approx(expected)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_name_gives_a_factor_from_0_to_1_in_trainings_of_any_length(name):
    schedule = build_schedule(name)
    for total in (0, 1, 7, 1000):
        factors = [schedule(k, total) for k in range(total + 1)]
        assert all(0 <= f <= 1 and math.isfinite(f) for f in factors)


def torch_rates(build, steps, lr=1.0):
    """Return the rates of a scheduler of torch over some steps."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler, rates = build(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


TORCH = {
    "linear_decay": (
        linear_decay(tau=60, floor=0.1),
        lambda o: lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=60),
    ),
    "step": (step(every=30, factor=0.5), lambda o: lr_scheduler.StepLR(o, 30, 0.5)),
    "exponential": (
        exponential(final=0.01),
        lambda o: lr_scheduler.ExponentialLR(o, 0.01 ** (1 / 100)),
    ),
    "cosine": (cosine(floor=0.2), lambda o: lr_scheduler.CosineAnnealingLR(o, 100, 0.2)),
    "inverse_time": (
        inverse_time(0.1),
        lambda o: lr_scheduler.LambdaLR(o, lambda k: 1 / (1 + 0.1 * k)),
    ),
    "cyclic": (
        cyclic(period=20, floor=0.1),
        lambda o: lr_scheduler.CyclicLR(o, 0.1, 1.0, 10, cycle_momentum=False),
    ),
    "cyclic that shrinks": (
        cyclic(period=20, floor=0.1, shrink=0.5),
        lambda o: lr_scheduler.CyclicLR(o, 0.1, 1.0, 10, mode="triangular2", cycle_momentum=False),
    ),
    "one_cycle": (
        one_cycle(),
        lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=101, cycle_momentum=False),
    ),
    "warmup": (
        warmup(constant(), steps=10),
        lambda o: lr_scheduler.LinearLR(o, 0.1, 1.0, total_iters=9),
    ),
}


@pytest.mark.parametrize("name", TORCH)
def test_the_factor_is_that_of_torch(name):
    schedule, build = TORCH[name]
    # 101 steps for one_cycle, whose last step is the 100th from 0; torch counts it so.
    total = 101 if name == "one_cycle" else 100
    tolerance = 0.01 if name == "one_cycle" else 1e-9  # torch's peak lies between two steps
    mine = [schedule(k, total) for k in range(100)]
    assert mine == pytest.approx(torch_rates(build, 100), abs=tolerance)


@pytest.mark.parametrize("cooldown, floor", [(0, 0.0), (3, 0.0), (0, 0.2)])
def test_the_drops_of_plateau_are_those_of_torch(cooldown, floor):
    chance = random.Random(0)
    losses = [1 / (1 + 0.2 * k) + 0.3 * chance.random() for k in range(80)]
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    other = lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=2, threshold=0.01, cooldown=cooldown, min_lr=floor, eps=0
    )
    mine = plateau(factor=0.5, patience=3, threshold=0.01, cooldown=cooldown, floor=floor)
    for k, loss in enumerate(losses, 1):
        other.step(loss)
        assert mine.drop(losses[:k]) == pytest.approx(optimizer.param_groups[0]["lr"])
    assert mine.drop(losses) < 0.3


def test_plateau_knows_negative_losses_and_those_that_are_no_numbers():
    still = [-1.0] * 4  # a log-likelihood that stands still
    assert plateau(factor=0.5, patience=3).drop(still) == 0.5
    assert plateau(factor=0.5, patience=3).drop([-1.0, -2.0, -3.0, -4.0]) == 1.0
    assert plateau(factor=0.5, patience=2).drop([1.0, math.nan, math.nan]) == 0.5
    assert plateau(factor=0.5, patience=2).drop([math.nan, 1.0, 0.5, 0.2]) == 1.0


def test_only_plateau_looks_at_losses():
    standing = [1.0] * 50
    assert warmup(plateau(factor=0.5, patience=30)).drop(standing) == 0.5
    assert [build_schedule(n).drop(standing) < 1 for n in SCHEDULES] == [
        n == "plateau" for n in SCHEDULES
    ]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: plateau(factor=2), "plateau: `factor` must be at least 0 and at most 1; got 2"),
        (lambda: plateau(patience=0), "plateau: `patience` must be at least 1; got 0"),
        (lambda: cyclic(period=0), "cyclic: `period` must be above 0; got 0"),
        (lambda: one_cycle(start=-1), "one_cycle: `start` must be .*; got -1"),
        (lambda: inverse_time(-1), "inverse_time: `decay` must be at least 0; got -1"),
        (lambda: warmup("cosin"), "got 'cosin'. Did you mean `cosine`"),
    ],
    ids=["factor", "patience", "period", "start", "decay", "inner"],
)
def test_a_wrong_argument_is_named(make, message):
    with pytest.raises(InvalidParameter, match=message):
        make()


def test_a_callable_is_a_schedule():
    assert build_schedule(lambda k, total: k / total)(5, 10) == 0.5


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(InvalidParameter, match=r"got 'cosin'. Did you mean `cosine`"):
        build_schedule("cosin")


def test_its_text_is_the_same_in_every_process(zygote, tmp_path):
    code = "from castalia.optim import cosine, warmup; print(repr(warmup(cosine(floor=0.1))))"
    assert run_code(zygote, tmp_path, code).stdout.strip() == repr(warmup(cosine(floor=0.1)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: linear_decay(tau=-5),
        lambda: step(every=0),
        lambda: step(factor=-1),
        lambda: exponential(-1.0),
        lambda: cosine("low"),
        lambda: inverse_sqrt(-1),
        lambda: warmup("cosine", -3),
        lambda: build_schedule([0.1, 0.2]),
        lambda: build_schedule(torch.optim.lr_scheduler.StepLR),
    ],
    ids=["tau", "every", "factor", "final", "floor", "sqrt", "steps", "list", "class"],
)
def test_settings_that_make_no_schedule_are_refused(make):
    with pytest.raises(InvalidParameter, match="must be"):
        make()


# ---- torch's schedulers ----


@pytest.mark.parametrize(
    "given, build",
    [
        (("StepLR", {"step_size": 7}), lambda o: lr_scheduler.StepLR(o, 7)),
        (("exponentiallr", {"gamma": 0.9}), lambda o: lr_scheduler.ExponentialLR(o, 0.9)),
        (
            functools.partial(lr_scheduler.CosineAnnealingLR, T_max=20),
            lambda o: lr_scheduler.CosineAnnealingLR(o, 20),
        ),
        (lr_scheduler.LinearLR, lr_scheduler.LinearLR),
        (
            ("OneCycleLR", {"max_lr": 1.0, "total_steps": 21}),
            lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=21, cycle_momentum=False),
        ),
    ],
    ids=["pair", "any case", "partial", "class", "one that ends"],
)
def test_schedulers_of_torch_are_followed_step_by_step(given, build):
    schedule = build_schedule(given)
    expected = torch_rates(build, 20)
    assert [schedule(k, 20) for k in range(20)] == pytest.approx(expected)
    assert schedule.name == "torch"
    again = pickle.loads(pickle.dumps(schedule))
    assert again(13, 20) == schedule(13, 20)  # whatever was asked before


@pytest.mark.parametrize(
    "given, said",
    [
        (lr_scheduler.StepLR, "scheduler 'StepLR' must be .*got no 'step_size'"),
        (("StepLR", {"size": 3}), "got 'size'"),
        (lr_scheduler.ReduceLROnPlateau, "got ReduceLROnPlateau.*castalia.optim.plateau"),
        (lambda k: 1.0, "must take the step and the number of steps; got"),
        (lr_scheduler.ConstantLR(torch.optim.SGD([torch.zeros(1)])), "Write \\('ConstantLR'"),
    ],
    ids=["missing", "unknown", "plateau", "function", "instance"],
)
def test_a_schedule_that_cannot_be_followed_is_refused_at_construction(given, said):
    with pytest.raises(InvalidParameter, match=said):
        Training(schedule=given)


def test_a_schedule_of_ours_takes_arguments_in_a_pair():
    assert build_schedule(("Cosine", {"floor": 0.3})) == cosine(floor=0.3)


def test_a_schedule_is_drawn():
    ax = step(every=50, factor=0.5).plot(100, lr=0.2)
    assert ax.lines[0].get_ydata()[[0, 49, 50, 99]].tolist() == pytest.approx([0.2, 0.2, 0.1, 0.1])
    assert ax.get_ylabel() == "learning rate"
