"""What agents learn against what is known: Bellman's equation, analytic values, minimax."""

import numpy as np
import pytest
from sklearn.base import clone

from castalia.errors import InvalidParameter
from castalia.models.control import (
    GridWorld,
    QLearning,
    RandomWalk,
    TDLearning,
    TicTacToe,
    best_value,
    value_iteration,
)
from castalia.models.control.environments import Count

MAP = ["S..#", ".H..", "...G"]


def test_value_iteration_solves_bellman_s_equation():
    world = GridWorld(MAP, slip=0.2)
    q = value_iteration(world, 0.9)
    ahead = np.where(world.final, 0, q.max(axis=1))
    expected = np.einsum("san,san->sa", world.chances, world.rewards + 0.9 * ahead)
    np.testing.assert_allclose(q[~world.final], expected[~world.final], atol=1e-9)
    np.testing.assert_allclose(world.chances.sum(axis=2), 1)


@pytest.mark.parametrize("slip, episodes", [(0.0, 500), (0.1, 1000)])
def test_q_learning_finds_the_optimal_policy(slip, episodes):
    world = GridWorld(MAP, slip=slip)
    agent = QLearning(episodes=episodes, discount=0.95, explore=0.3, random_state=0).fit(world)
    best = value_iteration(world, 0.95)
    path, state = [], world.start
    while not world.final[state]:  # along the likeliest way to the goal
        action = agent.predict(state)
        assert best[state, action] == pytest.approx(best[state].max(), abs=1e-9 + 0.02 * (slip > 0))
        path.append(state)
        state = int(world.chances[state, action].argmax())
        assert len(path) < 12
    assert world.rows[state // 4][state % 4] == "G"
    if not slip:  # chance decides half of the first returns otherwise
        assert agent.returns_[-50:].mean() > agent.returns_[:50].mean()


@pytest.mark.parametrize("trace", [0.0, 0.8])
def test_temporal_differences_find_the_values_of_the_random_walk(trace):
    truth = np.arange(1, 6) / 6

    def error(episodes):
        agent = TDLearning(episodes=episodes, lr=0.02, trace=trace, random_state=0)
        return np.sqrt(np.mean((agent.fit(RandomWalk(5)).values_[1:6] - truth) ** 2))

    assert error(10) > error(400)
    assert error(400) < 0.08


def test_a_reward_at_the_end_reaches_back_by_discount_and_trace():
    chain = GridWorld(["S...G"], cost=0.0)
    chain.action_space = Count(1)
    chain.step = lambda action, step=chain.step: step(1)  # always to the right
    agent = TDLearning(episodes=1, lr=0.2, discount=0.9, trace=0.5, random_state=0).fit(chain)
    np.testing.assert_allclose(agent.values_[:4], 0.2 * 0.45 ** np.arange(3, -1, -1))


def test_the_same_seed_learns_the_same_and_a_clone_too():
    agent = QLearning(episodes=20, random_state=3)
    first = agent.fit(GridWorld(MAP, slip=0.3)).values_
    np.testing.assert_array_equal(first, clone(agent).fit(GridWorld(MAP, slip=0.3)).values_)


@pytest.fixture(scope="module")
def player():
    return TDLearning(episodes=7000, lr=1.0, explore=0.8, random_state=0).fit(TicTacToe())


@pytest.mark.parametrize("mine", [True, False], ids=["first", "second"])
def test_self_play_never_loses_whatever_the_other_does(player, mine):
    game, seen, ends = TicTacToe(), set(), []
    left = [(game.start, mine)]
    while left:  # every move of the other, one answer of the player
        position, turn = left.pop()
        end = game.result(position)
        if end is not None:
            ends.append(-end if turn else end)
        elif (position, turn) not in seen:
            seen.add((position, turn))
            replies = [player.move(position)] if turn else game.moves(position)
            left += [(reply, not turn) for reply in replies]
    assert min(ends) == 0
    assert max(ends) == 1


def test_self_play_finds_the_values_of_minimax(player):
    wrong = [p for p, v in player.values_.items() if v != best_value(p)]
    assert len(wrong) < 0.01 * len(player.values_)
    assert best_value(TicTacToe.start) == 0 == player.values_[TicTacToe.start]


def test_a_world_without_counted_states_and_a_map_without_a_goal_are_refused():
    with pytest.raises(InvalidParameter, match="the world must have `reset`, `step` and a counted"):
        QLearning().fit(object())
    with pytest.raises(InvalidParameter, match="with one S and a G; got"):
        GridWorld(["S.", ".."])
