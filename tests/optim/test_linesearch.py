"""Line searches on functions of one variable."""

import math

import pytest
import torch

from castalia.optim import Point, exact_line_search, strong_wolfe

FUNCTIONS = {
    "quadratic": lambda t: (t - 3) ** 2,
    "quartic": lambda t: (t - 2) ** 4 - t,
    "wavy": lambda t: 0.1 * (t - 5) ** 2 + torch.sin(t + 1),
    "long": lambda t: -t / (t * t + 2),  # N&W's first test of Moré and Thuente
    "wall": lambda t: torch.where(t < 1, (t - 0.8) ** 2, t + math.inf),  # not a number beyond 1
}


def ray_of(function):
    calls = []

    def ray(t):
        calls.append(t)
        x = torch.tensor(t, dtype=torch.float64, requires_grad=True)
        value = function(x)
        (slope,) = torch.autograd.grad(value, x)
        return Point(t, value.item(), slope.item(), slope.reshape(1))

    return ray, calls


@pytest.mark.parametrize("trial", [1e-3, 0.5, 1.0, 40.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_found_meets_the_strong_wolfe_conditions(name, trial):
    ray, calls = ray_of(FUNCTIONS[name])
    start = ray(0.0)
    found = strong_wolfe(ray, start, trial, decrease=1e-4, curvature=0.1)
    assert found.value <= start.value + 1e-4 * found.length * start.slope
    assert abs(found.slope) <= 0.1 * abs(start.slope)
    assert len(calls) <= 20


def test_without_a_lower_point_the_start_is_returned():
    def liar(t):  # claims to fall, but rises
        return Point(t, t, -1.0 if t == 0 else 1.0, torch.ones(1))

    assert strong_wolfe(liar, liar(0.0)).length == 0.0


@pytest.mark.parametrize("trial", [1e-3, 1.0, 100.0])
def test_the_exact_search_needs_one_trial_on_a_quadratic(trial):
    ray, calls = ray_of(FUNCTIONS["quadratic"])
    found = exact_line_search(ray, ray(0.0), trial)
    assert found.length == pytest.approx(3.0, rel=1e-9)
    assert len(calls) == 3  # the start, the trial, the minimum


@pytest.mark.parametrize("name", ["quartic", "wavy", "wall"])
def test_the_exact_search_ends_where_the_slope_vanishes(name):
    ray, _ = ray_of(FUNCTIONS[name])
    start = ray(0.0)
    found = exact_line_search(ray, start, 0.5, evaluations=60)
    assert abs(found.slope) <= 1e-8 * abs(start.slope)
    assert found.value < start.value
