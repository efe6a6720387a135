"""Agents that learn a table of values from what happens to them.

Q-learning: Q(s, a) += a (r + g max_a' Q(s', a') - Q(s, a)).  TD(l): delta = r + g V(s') - V(s),
e <- g l e, e(s) += 1, V += a delta e.  Self-play: v(p) += a (-max_p' v(p') - v(p)) over positions
after a move, p' the replies to p.
References: 1989, Watkins, Learning from delayed rewards. 1988, Sutton, Learning to predict by the
methods of temporal differences. 1995, Tesauro, Temporal difference learning and TD-Gammon.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from castalia.base import DirectEstimator, Interval, check_parameters
from castalia.errors import InvalidParameter
from castalia.models.control.agent_base import mean_return
from castalia.models.control.experience import begun, opened, stepped
from castalia.utils.seeds import derive, seed_from

__all__ = ["QLearning", "TDLearning"]

STEPS = 10_000  # of one episode, after which a world that does not end is given up


def _size(owner: str, world: Any, space: str) -> int:
    """Return how many states or actions a world has."""
    n = getattr(getattr(world, space, None), "n", None)
    if n is None or not hasattr(world, "step") or not hasattr(world, "reset"):
        raise InvalidParameter(
            f"{owner}: the world must have `reset`, `step` and a counted `{space}` (`.n`), as "
            f"GridWorld and Gymnasium's discrete ones; got {type(world).__name__}."
        )
    return int(n)


def play(owner: str, world: Any, seed: int, choose: Any, learn: Any) -> float:
    """Play one episode, learn from every step, and return the sum of rewards."""
    state = begun(owner, world, seed)
    total = 0.0
    for _ in range(STEPS):
        action = choose(state)
        after, reward, ended, cut, _ = stepped(owner, world, action)
        learn(state, action, reward, after, ended)
        total += reward
        state = after
        if ended or cut:
            break
    return total


@dataclass(kw_only=True, eq=False, repr=False)
class QLearning(DirectEstimator):
    """A table of what each action is worth in each state, learnt by acting.

    With chance ``explore`` an action is drawn at random, else the best known one is taken. The
    table comes near the optimal one whatever is done in between, if everything is tried often and
    the rate falls; here it falls as 1 / (visits)^0.6.

    Parameters
    ----------
    episodes
        Episodes to play.
    discount
        How much the next reward counts against this one.
    explore
        Chance of a random action.

    Attributes
    ----------
    values_ : ndarray (S, A)
        Q(s, a).
    returns_ : ndarray (episodes,)
        Sum of rewards of each episode: the learning curve.

    Shapes
    ------
    ``fit`` takes a world.  ``predict``: numbers of states, (n,).

    Notes
    -----
    An episode that does not end is given up after 10,000 steps. ``device`` does not count.

    References
    ----------
    1989, Watkins, Learning from delayed rewards, Cambridge.

    See Also
    --------
    DQN : a network instead of the table, for states that cannot be counted.

    Examples
    --------
    >>> from castalia.models.control import GridWorld, QLearning
    >>> agent = QLearning(episodes=200, random_state=0).fit(GridWorld(["S.", "HG"]))
    >>> agent.predict([0, 1]).tolist()  # right, then down
    [1, 2]
    """

    episodes: Annotated[int, Interval(1, whole=True)] = 500
    discount: Annotated[float, Interval(0, 1)] = 0.99
    explore: Annotated[float, Interval(0, 1)] = 0.2

    def fit(self, X: Any, y: Any = None) -> QLearning:  # type: ignore[override]
        """Play and learn in a world, X, with numbered states and actions."""
        check_parameters(self)
        world = opened("QLearning", X) if isinstance(X, str) else X
        states, actions = (
            _size("QLearning", world, f"{kind}_space") for kind in ("observation", "action")
        )
        seed = seed_from(self.random_state)
        random = np.random.default_rng(seed)
        q, visits = np.zeros((states, actions)), np.zeros((states, actions))

        def choose(state: int) -> int:
            if random.random() < self.explore:
                return int(random.integers(actions))
            return int(random.choice(np.flatnonzero(q[state] == q[state].max())))

        def learn(state: int, action: int, reward: float, after: int, ended: bool) -> None:
            visits[state, action] += 1
            ahead = 0.0 if ended else self.discount * q[after].max()
            rate = visits[state, action] ** -0.6
            q[state, action] += rate * (reward + ahead - q[state, action])

        self.returns_ = np.array(
            [
                play("QLearning", world, derive(seed, e) % 2**31, choose, learn)
                for e in range(self.episodes)
            ]
        )
        self.values_ = q
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the best known action in each state."""
        check_is_fitted(self, "values_")
        return np.asarray(self.values_[np.asarray(X)].argmax(axis=-1))

    def score(self, X: Any, y: Any = None, episodes: int = 20) -> float:
        """Return the mean sum of rewards in a world, X, over some episodes."""
        world = opened("QLearning", X) if isinstance(X, str) else X
        return mean_return(world, lambda state: int(self.predict(state)), episodes)


@dataclass(kw_only=True, eq=False, repr=False)
class TDLearning(DirectEstimator):
    """Values of states learnt from the difference between successive guesses.

    In a world the value of a state under random actions is learnt by TD(lambda); in a game, which
    has ``moves`` and ``result``, the value of positions by playing against itself.

    Parameters
    ----------
    episodes
        Episodes, or games.
    lr
        Rate a.
    discount
        How much the next reward counts against this one; games are not discounted.
    trace
        lambda: how far back a difference is felt, 0 one step, 1 to the beginning.
    explore
        Chance that a move in a game is not the best known one but the one tried least.

    Attributes
    ----------
    values_ : ndarray (S,) or dict
        Value of each state, or of each position after a move to whoever moved.

    Shapes
    ------
    ``fit`` takes a world or a game.  ``predict``: numbers of states, (n,).

    Notes
    -----
    ``device`` does not count.

    References
    ----------
    1988, Sutton, Learning to predict by the methods of temporal differences, Machine Learning 3.
    1995, Tesauro, Temporal difference learning and TD-Gammon, CACM 38.

    See Also
    --------
    QLearning : learns what to do as well.

    Examples
    --------
    >>> from castalia.models.control import RandomWalk, TDLearning
    >>> agent = TDLearning(episodes=300, lr=0.05, random_state=0).fit(RandomWalk(3))
    >>> agent.values_[1] < agent.values_[2] < agent.values_[3]
    np.True_
    """

    episodes: Annotated[int, Interval(1, whole=True)] = 1000
    lr: Annotated[float, Interval(0, 1, closed="right")] = 0.1
    discount: Annotated[float, Interval(0, 1)] = 1.0
    trace: Annotated[float, Interval(0, 1)] = 0.5
    explore: Annotated[float, Interval(0, 1)] = 0.3

    def fit(self, X: Any, y: Any = None) -> TDLearning:  # type: ignore[override]
        """Learn the values of a world, X, under random actions, or of a game by self-play."""
        check_parameters(self)
        world, seed = X, seed_from(self.random_state)
        if hasattr(world, "moves") and hasattr(world, "result"):
            self.game_ = world
            self.values_: Any = self._self_play(world, np.random.default_rng(seed))
        else:
            self.values_ = self._walks(world, seed)
        return self

    def _walks(self, world: Any, seed: int) -> np.ndarray:
        states = _size("TDLearning", world, "observation_space")
        actions = _size("TDLearning", world, "action_space")
        random = np.random.default_rng(seed)
        v, felt = np.zeros(states), np.zeros(states)

        def learn(state: int, action: int, reward: float, after: int, ended: bool) -> None:
            ahead = 0.0 if ended else self.discount * v[after]
            felt[:] *= self.discount * self.trace
            felt[state] += 1
            v[:] += self.lr * (reward + ahead - v[state]) * felt

        for episode in range(self.episodes):
            felt[:] = 0
            start = derive(seed, episode) % 2**31
            play("TDLearning", world, start, lambda state: int(random.integers(actions)), learn)
        return v

    def _self_play(self, game: Any, random: np.random.Generator) -> dict[Any, float]:
        v: dict[Any, float] = {}
        tried: Counter[Any] = Counter()

        def value(position: Any) -> float:
            if position not in v:
                v[position] = game.result(position) or 0.0
            return v[position]

        def choose(replies: list[Any]) -> Any:
            if random.random() >= self.explore:
                return max(replies, key=value)
            order = [replies[i] for i in random.permutation(len(replies))]
            return min(order, key=lambda reply: tried[reply])

        for _ in range(self.episodes):
            position, path = game.start, []
            while game.result(position) is None:
                path.append(position)
                position = choose(game.moves(position))
                tried[position] += 1
            for position in reversed(path):  # the end of a game reaches its beginning at once
                ahead = -max(map(value, game.moves(position)))
                v[position] = value(position) + self.lr * (ahead - value(position))
        return v

    def predict(self, X: Any) -> np.ndarray:
        """Return the value of each state, or of each position."""
        check_is_fitted(self, "values_")
        if isinstance(self.values_, dict):
            return np.array([self.values_.get(tuple(position), 0.0) for position in X])
        return np.asarray(self.values_[np.asarray(X)])

    def score(self, X: Any, y: Any = None, episodes: int = 20) -> float:
        """Return minus the root of the mean squared gap between values and what followed.

        Chance makes it negative even where the values are right.
        """
        check_is_fitted(self, "values_")
        actions = _size("TDLearning", X, "action_space")
        random, gaps = np.random.default_rng(0), []
        for episode in range(episodes):
            seen: list[tuple[int, float]] = []
            play(
                "TDLearning",
                X,
                derive(0, episode) % 2**31,
                lambda state: int(random.integers(actions)),
                lambda state, action, reward, after, ended, seen=seen: seen.append((state, reward)),
            )
            total = 0.0
            for state, reward in reversed(seen):
                total = reward + self.discount * total
                gaps.append(self.values_[state] - total)
        return -float(np.sqrt(np.mean(np.square(gaps))))

    def move(self, position: Any) -> Any:
        """Return the position after the best known move of the player whose turn it is."""
        check_is_fitted(self, "game_")
        replies = self.game_.moves(position)
        return max(replies, key=lambda p: self.values_.get(p, self.game_.result(p) or 0.0))
