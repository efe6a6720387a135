"""Chains of finitely many states, against eigenvectors and hand-made cases."""

import numpy as np
import pytest

from castalia.errors import InvalidData
from castalia.sampling import MarkovChain

A = np.array([[0.8, 0.2, 0.1], [0.15, 0.3, 0.5], [0.05, 0.5, 0.4]])


def test_simulated_transitions_match_the_matrix():
    walk = MarkovChain(A).simulate(2000, chains=20, random_state=0)
    counts = np.zeros((3, 3))
    np.add.at(counts, (walk[:, 1:].ravel(), walk[:, :-1].ravel()), 1)
    assert np.abs(counts / counts.sum(axis=0) - A).max() < 0.015


def test_power_iteration_ends_at_the_eigenvector_of_one():
    values, vectors = np.linalg.eig(A)
    v = np.real(vectors[:, np.argmax(values.real)])
    chain = MarkovChain(A)
    np.testing.assert_allclose(chain.stationary(), v / v.sum(), atol=1e-12)
    for start in (0, 2, [0.2, 0.3, 0.5]):
        np.testing.assert_allclose(chain.limit(start), v / v.sum(), atol=1e-11)


def test_the_chain_of_period_two_never_converges():
    swap = MarkovChain([[0, 1], [1, 0]])  # WE-86
    assert (swap.irreducible, swap.aperiodic, swap.period) == (True, False, 2)
    np.testing.assert_allclose(swap.stationary(), [0.5, 0.5])
    np.testing.assert_allclose(swap.total_variation(9), 0.5)
    for ask in (swap.limit, swap.mixing_time):
        with pytest.raises(InvalidData, match="returns every 2 steps and never converges"):
            ask()


def test_a_chain_in_two_parts_has_no_one_law():
    parts = MarkovChain([[1, 0.5, 0], [0, 0.5, 0], [0, 0, 1]])
    assert not parts.irreducible
    assert sorted(map(tuple, parts.classes)) == [(0,), (1,), (2,)]
    with pytest.raises(InvalidData, match="must be irreducible; its states fall into"):
        parts.stationary()


def test_periods_of_longer_rounds():
    ring = np.roll(np.eye(6), 1, axis=0)
    assert MarkovChain(ring).period == 6
    chord = ring.copy()
    chord[:, 2] = 0
    chord[0, 2] = chord[3, 2] = 0.5  # rounds of 3 and of 6
    assert MarkovChain(chord).period == 3
    chord[1, 2] = 0.0
    chord[0, 2], chord[1, 2] = 0.25, 0.25  # and of 2
    assert MarkovChain(chord).aperiodic


def test_total_variation_decays_as_the_second_eigenvalue():
    chain = MarkovChain(A)
    curve = chain.total_variation(30)
    assert curve[30] / curve[29] == pytest.approx(chain.second_eigenvalue, rel=1e-6)
    assert chain.mixing_time(1e-3) == int(np.argmax(curve <= 1e-3))
    sticky = MarkovChain(0.999 * np.eye(3) + 0.001 * A)
    curve = sticky.total_variation(4000)
    assert sticky.mixing_time(0.25) == int(np.argmax(curve <= 0.25)) > 1000


def test_detailed_balance_holds_for_a_metropolis_matrix_only():
    law = np.array([0.2, 0.3, 0.5])
    M = np.minimum(1, law[:, None] / law[None]) / 3
    M += np.diag(1 - M.sum(axis=0))
    assert MarkovChain(M).detailed_balance(law) < 1e-15
    np.testing.assert_allclose(MarkovChain(M).stationary(), law, atol=1e-12)
    assert MarkovChain(np.roll(np.eye(3), 1, axis=0)).detailed_balance() > 0.3


@pytest.mark.parametrize(
    "matrix, said",
    [
        ([[0.5, 0.5]], "must be a square matrix"),
        ([[0.5, 1.2], [0.5, -0.2]], "got -0.2 from state 1 to 1"),
        ([[0.5, 0.3], [0.5, 0.6]], "column 1 is off by -0.1"),
        ([[0.9, 0.1], [0.5, 0.5]], "Its rows do: transpose it"),
    ],
)
def test_what_is_no_transition_matrix_is_refused(matrix, said):
    with pytest.raises(InvalidData, match=said):
        MarkovChain(matrix)


def test_a_start_that_is_no_law_is_refused():
    with pytest.raises(InvalidData, match="3 probabilities that sum to 1"):
        MarkovChain(A).limit([0.5, 0.1, 0.1])
