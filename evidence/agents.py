"""Agents: a pole on a cart, and tic-tac-toe.

CartPole has the equations and the limits of Gymnasium's CartPole-v1 (500 steps); the return is the
mean of 100 episodes after the training, greedily. Five seeds, each on one core: set CASTALIA_JOBS.
AGENTS names one of the agents, or all are fitted.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

from castalia.models.control import DQN, CartPole, PolicyGradient, TDLearning, TicTacToe, best_value
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.rows import print_table, spread

SEEDS, GAMES = range(10, 15), 10_000  # settings were chosen on others


def agents(seed: int, quick: bool) -> dict[str, Any]:
    """Return both, with settings fixed beforehand."""
    training = Training(schedule="linear_decay", device="cpu")
    return {
        "DQN": DQN(
            epochs=3 if quick else 300, copies=4, steps=64, renew=128, hidden=(128, 128), lr=1e-3,
            memory=100_000, ahead=20, discount=0.995, trials=20, training=training,
            random_state=seed,
        ),
        "PolicyGradient, PPO": PolicyGradient(
            epochs=3 if quick else 400, steps=32, repeat=20, trace=0.8, discount=0.98, lr=1e-3,
            training=training, random_state=seed,
        ),
    }  # fmt: skip


def balanced(name: str, seed: int, quick: bool) -> dict[str, Any]:
    """Train one agent on one core, and let it hold the pole."""
    torch.set_num_threads(1)
    agent, start = agents(seed, quick)[name], time.process_time()
    agent.fit(CartPole())
    seconds = time.process_time() - start  # of its core, however busy the others are
    score = agent.score(CartPole(), episodes=5 if quick else 100)
    return {"return": score, "seconds": seconds, "steps": int(agent.steps_[-1])}


def played(quick: bool) -> dict[str, Any]:
    """Learn tic-tac-toe from self-play; count what is lost to chance, and meet minimax."""
    games = 200 if quick else GAMES
    player = TDLearning(episodes=500 if quick else 10_000, lr=1.0, explore=0.8, random_state=0)
    player.fit(TicTacToe())
    random = np.random.default_rng(1)
    found = match(player, lambda moves: moves[random.integers(len(moves))], games)
    perfect = match(player, lambda moves: max(moves, key=best_value), 2)
    return {"won": found.count(1.0), "lost": found.count(-1.0), "games": games, "minimax": perfect}


def match(player: TDLearning, other: Any, games: int) -> list[float]:
    """Return the results of games, each side beginning in turn: 1 won, -1 lost."""
    game, found = TicTacToe(), []
    for number in range(games):
        position, mine = game.start, number % 2 == 0
        while (end := game.result(position)) is None:
            position = player.move(position) if mine else other(game.moves(position))
            mine = not mine
        found.append(end if not mine else -end)
    return found


def run(quick: bool = False) -> None:
    """Hold the pole with five seeds each, and play."""
    kept, seeds = Kept("agents"), range(1) if quick else SEEDS
    jobs, rows = int(os.environ.get("CASTALIA_JOBS", 1)), []
    for name in agents(0, quick):
        if not name.startswith(os.environ.get("AGENTS", "")):
            continue
        found = kept.find(
            name,
            lambda name=name: {
                "fits": Parallel(n_jobs=jobs)(delayed(balanced)(name, s, quick) for s in seeds)
            },
        )["fits"]
        columns = {key: [fit[key] for fit in found] for key in found[0]}
        lowest = f"{min(columns['return']):.0f}"
        rows.append([name, spread(columns["return"], 1), lowest, spread(columns["seconds"], 0),
                     spread(columns["steps"], 0)])  # fmt: skip
    columns = [
        "CartPole",
        "mean return of 100 episodes",
        "worst seed",
        "s of a core",
        "steps of the world",
    ]
    print_table("Agents", columns, rows)
    if "AGENTS" in os.environ:
        return
    games = kept.find("tic-tac-toe", lambda: played(quick))
    print(
        f"\nTic-tac-toe by self-play: of {games['games']:,} games against random moves "
        f"{games['won']:,} won, {games['lost']} lost; against minimax {games['minimax']}."
    )
