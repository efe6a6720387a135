"""Pieces of a sequence side by side: the states of the whole, or step by step."""

import numpy as np
import pytest
import torch

from castalia.models.sequence import random_reservoir
from castalia.models.sequence import reservoir_pieces as pieces


def waves(rows=1, steps=2000, seed=0):
    x = np.random.default_rng(seed).uniform(-1, 1, (rows, steps, 2))
    return torch.from_numpy(x)


@pytest.fixture
def calls(monkeypatch):
    """Rows and steps of every run of a reservoir."""
    found, run = [], pieces.Reservoir.run

    def noted(self, x, **others):
        found.append(tuple(x.shape[:2]))
        return run(self, x, **others)

    monkeypatch.setattr(pieces.Reservoir, "run", noted)
    return found


@pytest.mark.parametrize("settings", [{}, {"leak": 0.5}, {"feedback": 0.5, "outputs": 1}])
@pytest.mark.parametrize("rows", [1, 3])
def test_pieces_have_the_states_of_the_whole(settings, rows, calls):
    reservoir = random_reservoir(30, 2, radius=0.6, bias=0.2, seed=0, **settings)
    x = waves(rows)
    more = {"noise": 0.01 * torch.randn(rows, 2000, 30, dtype=torch.float64)}
    if reservoir.feedback.shape[1]:
        more["fed"] = waves(rows, seed=1)[..., :1]
    found = pieces.run_in_pieces(reservoir, x, **more)
    assert max(steps for _, steps in calls) < 600  # never the whole
    torch.testing.assert_close(found, reservoir.run(x, **more), rtol=0, atol=1e-10)


@pytest.mark.parametrize("radius", [1.5, 0.999])
def test_what_is_not_forgotten_is_run_step_by_step(radius, calls):
    reservoir = random_reservoir(30, 2, radius=radius, scale=0.1, seed=0)
    found = pieces.run_in_pieces(reservoir, waves())
    assert calls[-1] == (1, 2000)
    assert torch.equal(found, reservoir.run(waves()))


def test_pieces_whose_ends_do_not_meet_are_not_used(calls, monkeypatch):
    monkeypatch.setattr(pieces, "_lead", lambda reservoir, given: 5)  # too short
    reservoir = random_reservoir(30, 2, radius=0.9, scale=0.1, seed=0)
    found = pieces.run_in_pieces(reservoir, waves())
    assert calls[-1] == (1, 2000)
    assert torch.equal(found, reservoir.run(waves()))
