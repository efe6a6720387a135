"""Random numbers stay inside their scope."""

import random

import numpy as np
import pytest
import torch

from castalia.utils.seeds import derive, generator, seed_from, seed_scope


def test_an_integer_is_its_own_seed():
    assert seed_from(7) == 7
    assert seed_from(np.int64(7)) == 7


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_numpy_generator_gives_a_seed_and_moves_on(make):
    state = make(0)
    first, second = seed_from(state), seed_from(state)
    assert first != second
    assert first == seed_from(make(0))
    assert 0 <= first < 2**31


def test_no_random_state_gives_another_seed_each_time():
    assert len({seed_from(None) for _ in range(8)}) == 8


def test_derived_seeds_depend_on_every_number_of_the_path():
    seeds = {derive(*path) for path in [(0, 1), (1, 0), (0, 2), (1, 1), (0, 1, 2), (0, 2, 1)]}
    assert len(seeds) == 6
    assert derive(3, 1, 4) == derive(3, 1, 4)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_generators_of_the_same_part_agree():
    a, b, c = generator(0, 1), generator(0, 1), generator(0, 2)
    draws = [torch.rand(3, generator=g) for g in (a, b, c)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_the_scope_decides_what_torch_draws():
    with seed_scope(5):
        first = torch.rand(3)
    with seed_scope(5):
        again = torch.rand(3)
    with seed_scope(6):
        other = torch.rand(3)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("fails", [False, True])
def test_the_callers_generators_are_as_they_were(fails):
    def states():
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()

    before = states()
    try:
        with seed_scope(5):
            torch.rand(3)
            if fails:
                raise ValueError
    except ValueError:
        pass
    assert states() == before


def test_scopes_nest():
    with seed_scope(1):
        torch.rand(1)
        with seed_scope(2):
            torch.rand(7)
        inner = torch.rand(1)
    with seed_scope(1):
        torch.rand(1)
        assert torch.equal(torch.rand(1), inner)
