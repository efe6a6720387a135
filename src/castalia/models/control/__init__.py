"""Learning to act: agents, and small worlds to learn in."""

from castalia.models.control.cart_pole import CartPole
from castalia.models.control.deep_q_agent import DQN
from castalia.models.control.environments import (
    Environment,
    GridWorld,
    RandomWalk,
    World,
    value_iteration,
)
from castalia.models.control.policy_film import record
from castalia.models.control.policy_gradient import PolicyGradient
from castalia.models.control.tabular_agents import QLearning, TDLearning
from castalia.models.control.tic_tac_toe import TicTacToe, best_value

__all__ = [
    "DQN",
    "CartPole",
    "Environment",
    "GridWorld",
    "PolicyGradient",
    "QLearning",
    "RandomWalk",
    "TDLearning",
    "TicTacToe",
    "World",
    "best_value",
    "record",
    "value_iteration",
]
