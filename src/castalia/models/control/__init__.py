"""Learning to act: agents, and small worlds to learn in."""

from castalia.models.control.environments import GridWorld, RandomWalk, World, value_iteration
from castalia.models.control.tabular_agents import QLearning, TDLearning
from castalia.models.control.tic_tac_toe import TicTacToe, best_value

__all__ = [
    "GridWorld",
    "QLearning",
    "RandomWalk",
    "TDLearning",
    "TicTacToe",
    "World",
    "best_value",
    "value_iteration",
]
