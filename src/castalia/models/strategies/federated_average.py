"""Federated learning: rows stay with their clients, weights travel.

Each round every client c trains the shared weights w on its own n_c rows, and the server takes
w <- sum_c (n_c / n) w_c.  With one local step of gradient descent on all rows of each client this
is the step on all rows: sum_c (n_c / n)(w - a grad J_c) = w - a grad J.  FedProx adds
m/2 ||w_c - w||^2 to each client's loss.
References: 2017, McMahan et al., Communication-efficient learning of deep networks from
decentralized data, arXiv 1602.05629. 2020, Li et al., Federated optimization in heterogeneous
networks, arXiv 1812.06127.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.utils.parallel import Parallel, delayed
from torch import Tensor, nn

from castalia.base import Interval
from castalia.base.input_checks import take_rows
from castalia.models.ensemble.averaged import Jobs, default_member
from castalia.models.strategies.strategy_base import Grouped, Strategy
from castalia.models.strategies.training_changes import changed
from castalia.models.strategies.untrained import untrained
from castalia.objectives import Objective, Penalty
from castalia.utils.process_lock import lent
from castalia.utils.seeds import derive
from castalia.utils.worker_cluster import held

__all__ = ["FederatedAveraging", "NearShared", "mean_weights"]

Weights = dict[str, Tensor]


class NearShared(Penalty):
    """m/2 ||w - w_shared||^2, which keeps a client near the weights it was sent."""

    name = "near"

    def __init__(self, shared: Weights, factor: float) -> None:
        self.shared, self.factor = shared, factor

    def value(self, net: nn.Module) -> Tensor:
        """Return the penalty of a network."""
        gaps = [(w - self.shared[name].to(w)).square().sum() for name, w in net.named_parameters()]
        return self.factor / 2 * torch.stack(gaps).sum()


def mean_weights(each: list[Weights], rows: list[float]) -> Weights:
    """Return the mean of clients' weights, each counting as its rows do; counters of the first.

    >>> mean_weights([{"w": torch.zeros(1)}, {"w": torch.ones(1)}], [1, 3])
    {'w': tensor([0.7500])}
    """
    shares = torch.tensor(rows, dtype=torch.float64) / sum(rows)

    def mean(name: str) -> Tensor:
        stacked = torch.stack([one[name] for one in each])
        return torch.tensordot(shares.to(stacked), stacked, dims=1)

    return {
        name: mean(name) if value.is_floating_point() else value for name, value in each[0].items()
    }


@dataclass(kw_only=True, eq=False, repr=False)
class FederatedAveraging(Grouped, Strategy):
    """One network for many clients whose rows never leave them.

    ``groups`` says which client each row belongs to. A round sends the weights to all clients,
    trains on each one's rows and averages. The more alike the clients, the longer they can train
    alone between rounds.

    Parameters
    ----------
    rounds
        Times that weights are averaged.
    local_epochs
        Passes of a client over its rows in a round.
    proximal
        Factor m that holds clients near the shared weights (FedProx); 0 is plain averaging.
    clients
        Number of clients that rows are dealt to where ``groups`` is not given.
    n_jobs
        Processes that train clients side by side, as in scikit-learn; inside ``castalia.cluster``
        all of its workers, on other machines too.

    Attributes
    ----------
    estimator_ : object
        The network with the averaged weights.
    rounds_ : list of float
        Mean loss of the clients in each round.
    client_rows_ : ndarray (C,)
        Rows of each client.

    Shapes
    ------
    As those of the wrapped estimator; ``groups``: (n,).

    Notes
    -----
    Scales of columns and the list of classes are learnt from all rows: in a real federation they
    are sums that clients can send. The optimizer starts afresh in every round.

    References
    ----------
    2017, McMahan, Moore, Ramage, Hampson, Agüera y Arcas, Communication-efficient learning of deep
    networks from decentralized data, arXiv 1602.05629. 2020, Li et al., arXiv 1812.06127.

    See Also
    --------
    WeightAverage : averages along one training.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = FederatedAveraging(rounds=20, random_state=0).fit(X, y, groups=np.arange(200) % 4)
    >>> model.score(X, y) > 0.85, model.client_rows_.tolist()
    (True, [50, 50, 50, 50])
    """

    rounds: Annotated[int, Interval(1, whole=True)] = 20
    local_epochs: Annotated[int, Interval(1, whole=True)] = 2
    proximal: Annotated[float, Interval(0)] = 0.0
    clients: Annotated[int, Interval(1, whole=True)] = 4
    n_jobs: Annotated[int | None, Jobs()] = None

    def _default(self) -> Any:
        return default_member(self.task, lr=3e-2)

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        parts = self._client_rows(len(y))
        w = np.ones(len(y)) if weight is None else weight
        shares = [float(w[rows].sum()) for rows in parts]
        self.client_rows_ = np.array([len(rows) for rows in parts])
        self.rounds_: list[float] = []
        untrained(member, X, y, weight)
        own = [  # sent to a cluster once, not in every round
            held((take_rows(X, rows), y[rows], None if weight is None else weight[rows]))
            for rows in parts
        ]
        for number in range(self.rounds):
            with lent():  # clients may train in threads
                found = Parallel(n_jobs=self.n_jobs)(
                    delayed(self._local)(member, rows, int(part[0]), number)
                    for rows, part in zip(own, parts, strict=True)
                )
            mean = mean_weights([one for one, _ in found], shares)
            member.module_.to(next(v for v in mean.values() if v.is_floating_point()))
            member.module_.load_state_dict(mean)
            losses = [loss for _, loss in found]
            self.rounds_.append(float(np.average(losses, weights=shares)))
        return self._concluded(member)

    def _client_rows(self, n: int) -> list[np.ndarray]:
        """Return the rows of each client."""
        if self._groups is None:
            return [np.arange(n)[c :: self.clients] for c in range(min(self.clients, n))]
        return [np.flatnonzero(self._groups == name) for name in np.unique(self._groups)]

    def _local(
        self, member: Any, rows: Callable[[], Any], first: int, number: int
    ) -> tuple[Weights, float]:
        """Train the shared weights on one client's rows; return its weights and its loss."""
        X, y, weight = rows()
        client = copy.copy(member)
        client.module_ = copy.deepcopy(member.module_)
        client.random_state = derive(member.random_state, number, first) % 2**31
        shared = {name: w.detach().clone() for name, w in member.module_.named_parameters()}

        def near(objective: Objective) -> Objective:
            return objective + NearShared(shared, self.proximal) if self.proximal else objective

        with changed(client, objective=near):
            for _ in range(self.local_epochs):
                client.partial_fit(X, y, sample_weight=weight)
        state = {name: value.detach() for name, value in client.module_.state_dict().items()}
        return state, float(client.history_[-1]["loss"])

    def _concluded(self, member: Any) -> Any:
        """Give the network what a fit would have learnt after its last epoch."""
        member.codec.conclude(member, None, None)
        member.module_.eval()
        member.settings_, member.best_, member.stopped_, member.run_ = {}, None, None, None
        return member
