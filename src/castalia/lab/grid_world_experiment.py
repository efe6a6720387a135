"""A grid world: Q-learning comes near the optimal values that Bellman's equation gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.control import GridWorld, QLearning, value_iteration
from castalia.utils.figure_style import COLOURS, INK, caption, heat

__all__ = ["run"]

MAP, DISCOUNT = ["S..#...", "..H#.H.", "...#...", ".#....G"], 0.95
ARROWS = ((0, -0.3), (0.3, 0), (0, 0.3), (-0.3, 0))  # up, right, down, left


def run(*, quick: bool = False) -> Outcome:
    """Learn with more and more episodes, and compare with value iteration."""
    world = GridWorld(MAP, slip=0.1)
    best, seeds = value_iteration(world, DISCOUNT), range(2 if quick else 3)
    counts = (50, 400) if quick else (30, 100, 300, 1000)
    errors, agents = [], []
    for episodes in counts:
        agents = [
            QLearning(episodes=episodes, discount=DISCOUNT, explore=0.3, random_state=s).fit(world)
            for s in seeds
        ]
        at = world.start
        errors.append([abs(agent.values_[at].max() - best[at].max()) for agent in agents])
    error, agent = np.mean(errors, axis=1), agents[0]
    figure, (left, right) = panels(2, (9, 3.6))
    _draw(left, world, agent.values_)
    right.loglog(counts, error, "o-", color=COLOURS[0], ms=4, label="value of the start")
    right.set(xlabel="episodes", ylabel="distance from the optimal value")
    caption(right)
    gained, ideal = agent.score(world, episodes=100), _ideal(world, best)
    numbers = {
        "error first": float(error[0]), "error last": float(error[-1]),
        "return": gained, "return of the optimal policy": ideal,
    }  # fmt: skip
    said = (
        f"After {counts[-1]:,} episodes the value of the start is {error[-1]:.3f} from the optimal "
        f"one; the policy earns {gained:.2f} an episode, the optimal one {ideal:.2f}."
    )
    return Outcome(figure, numbers, said)


def _ideal(world: GridWorld, best: np.ndarray) -> float:
    optimal = QLearning()
    optimal.values_ = best
    return optimal.score(world, episodes=100)


def _draw(ax: Any, world: GridWorld, values: np.ndarray) -> None:
    """Colour every cell by its value, and draw the best known action."""
    cells = "".join(world.rows)
    shown = np.where([c in "GH#" for c in cells], np.nan, values.max(axis=1))
    ax.imshow(shown.reshape(len(world.rows), -1), cmap=heat())
    for s, cell in enumerate(cells):
        column, row = s % len(world.rows[0]), s // len(world.rows[0])
        if cell in "GH#":
            ax.text(column, row, {"G": "goal", "H": "hole", "#": "wall"}[cell], ha="center",
                    va="center", fontsize=7, color=INK)  # fmt: skip
        else:
            across, down = ARROWS[int(values[s].argmax())]
            ax.annotate("", (column + across, row + down), (column - across, row - down),
                        arrowprops={"arrowstyle": "->", "color": INK, "lw": 0.9})  # fmt: skip
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)
