"""Log-potentials of given scopes, learnt from rows of states.

By pseudo-likelihood, sum_i ln P(x_i | rest), which needs no Z and is right with many rows; or by
contrastive divergence with persistent chains, which follows the likelihood itself.
References: 1975, Besag, Statistical analysis of non-lattice data; 2008, Tieleman, Training
restricted Boltzmann machines using approximations to the likelihood gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from castalia.data.batches import Samples, TensorRows
from castalia.nets.probabilistic.potential_network import PotentialNetwork
from castalia.objectives import L2
from castalia.objectives.contrastive_divergence import ContrastiveDivergence
from castalia.objectives.objective import Objective
from castalia.objectives.pseudo_likelihood import PseudoLikelihood
from castalia.protocols import Stage
from castalia.train import Precision, Training, train
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["learn", "learnt_potentials"]

CHAINS = 200  # persistent ones


def learnt_potentials(
    rows: np.ndarray,
    weight: np.ndarray | None,
    sizes: Sequence[int],
    scopes: Sequence[Sequence[int]],
    *,
    method: str,
    alpha: float,
    epochs: int,
    lr: float,
    random_state: Any,
) -> list[np.ndarray]:
    """Return the log-potentials of factors, a table each, that rows of state numbers ask for.

    Parameters
    ----------
    rows, weight
        State numbers, (N, n), and how often each row counts, or None.
    sizes, scopes
        States of every variable, and the variables of every factor.
    method
        ``"pseudo"`` or ``"contrastive"``.
    alpha
        L2 penalty, which also chooses among tables that say the same.
    epochs, lr
        Passes over the rows and learning rate of ``"contrastive"``.
    random_state
        Seed.
    """
    net = PotentialNetwork(sizes, scopes).double()
    settings = {"method": method, "alpha": alpha, "epochs": epochs, "lr": lr}
    learn(net, rows, weight, **settings, random_state=random_state)
    return [table.detach().numpy() for table in net.tables]


def learn(
    net: nn.Module,
    rows: np.ndarray,
    weight: np.ndarray | None,
    *,
    method: str,
    alpha: float,
    epochs: int,
    lr: float,
    random_state: Any,
) -> None:
    """Train a network of discrete states on rows of state numbers; settings as above."""
    pseudo, seed = method == "pseudo", seed_from(random_state)
    objective: Objective = (
        PseudoLikelihood() if pseudo else ContrastiveDivergence(persistent=CHAINS)
    )
    training = Training(
        optimizer="lbfgs" if pseudo else ("sgd", {"momentum": 0.5}),
        schedule=None if pseudo else "linear_decay",
        validation=0,
        watch=False,
        verbose=False,
        device="cpu",
    )
    samples = Samples(
        TensorRows(torch.from_numpy(rows.astype(np.float64))),
        torch.zeros(len(rows), dtype=torch.float64),
        None if weight is None else torch.from_numpy(weight),
    )
    with seed_scope(seed):
        train(
            net,
            [Stage("train", objective + L2(alpha))],
            samples,
            training,
            epochs=20 if pseudo else epochs,
            batch_size=len(rows) if pseudo else min(CHAINS, len(rows)),
            lr=1.0 if pseudo else lr,
            seed=seed,
            device=torch.device("cpu"),
            precision=Precision("float64", torch.float64),
        )
