"""Schedules are pure functions of the step."""

import math
import subprocess
import sys

import pytest

from castalia.errors import InvalidParameter
from castalia.optim import (
    SCHEDULES,
    build_schedule,
    constant,
    cosine,
    exponential,
    inverse_sqrt,
    linear_decay,
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


def test_a_callable_is_a_schedule():
    assert build_schedule(lambda k, total: k / total)(5, 10) == 0.5


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(InvalidParameter, match=r"got 'cosin'. Did you mean `cosine`"):
        build_schedule("cosin")


def test_its_text_is_the_same_in_every_process():
    code = "from castalia.optim import cosine, warmup; print(repr(warmup(cosine(floor=0.1))))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == repr(warmup(cosine(floor=0.1)))
