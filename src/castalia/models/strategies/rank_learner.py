"""Learning to rank: scores whose order within each query is that of the relevances.

RankNet: J = mean over pairs with y_i > y_j of log(1 + exp(-(s_i - s_j))).  LambdaRank weighs each
pair by how much swapping it would change the NDCG of its query,
|2^y_i - 2^y_j| |1/log2(1 + r_i) - 1/log2(1 + r_j)| / best DCG.  Shapes: B batch.
References: 2005, Burges et al., Learning to rank using gradient descent, ICML. 2010, Burges, From
RankNet to LambdaRank to LambdaMART, MSR-TR-2010-82.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.base import OneOf, Target, TargetCodec
from castalia.base.input_checks import take_rows
from castalia.base.targets import numeric_target
from castalia.errors import InvalidData
from castalia.models.ensemble.averaged import default_member
from castalia.models.ensemble.ensemble import Ensemble
from castalia.models.strategies.strategy_base import Grouped, Neural
from castalia.models.strategies.training_changes import Beside, changed
from castalia.objectives import Objective
from castalia.protocols import Batch
from castalia.utils.seeds import seed_from

__all__ = ["PairwiseRank", "Ranking", "ndcg", "pair_accuracy"]


class PairwiseRank(Objective):
    """Logistic loss of score differences, over the pairs of a batch that belong to one query.

    Batches have targets (relevance (B, 1), query (B,)). Each row's loss is the mean over its
    pairs with rows of less relevance.

    Parameters
    ----------
    gain
        Whether pairs are weighed by the change of NDCG that swapping them makes (LambdaRank).
    """

    def __init__(self, *, gain: bool = False) -> None:
        self.gain = gain

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over pairs, each counting as the weights of its two rows do."""
        y, query = batch.y[0][:, 0], batch.y[1]
        s = net(batch.x)[:, 0]
        above = ((y[:, None] > y[None]) & (query[:, None] == query[None])).to(s.dtype)  # (B, B)
        if batch.weight is not None:
            above = above * batch.weight[:, None] * batch.weight[None]
        if self.gain:
            above = above * swap_gains(s.detach(), y, query)
        losses = F.softplus(s[None] - s[:, None])  # of i above j
        return {"loss": (above * losses).sum() / above.sum().clamp_min(1e-12)}


def swap_gains(s: Tensor, y: Tensor, query: Tensor) -> Tensor:
    """Return how much the NDCG of a query changes when two of its rows are swapped, (B, B)."""
    same = query[:, None] == query[None]
    rank = 1 + ((s[None] > s[:, None]) & same).sum(dim=1)
    best = 1 + ((y[None] > y[:, None]) & same).sum(dim=1)
    worth, discount = torch.exp2(y) - 1, 1 / torch.log2(1 + rank.to(s.dtype))
    ideal = (same * (worth / torch.log2(1 + best.to(s.dtype)))).sum(dim=1).clamp_min(1e-12)
    gaps = (worth[:, None] - worth[None]) * (discount[:, None] - discount[None])
    return gaps.abs() / ideal[:, None] * same


def pair_accuracy(y: np.ndarray, scores: np.ndarray, groups: np.ndarray | None = None) -> float:
    """Return the share of unequal pairs of each query that scores put in order; ties are half.

    >>> pair_accuracy(np.array([2, 1, 0]), np.array([0.9, 0.1, 0.5]))
    0.6666666666666666
    """
    groups = np.zeros(len(y)) if groups is None else np.asarray(groups)
    above = (y[:, None] > y[None]) & (groups[:, None] == groups[None])
    if not above.any():
        raise InvalidData("pair_accuracy: `y` must differ within a query; all pairs are equal.")
    ahead = np.sign(scores[:, None] - scores[None])[above]
    return float((1 + ahead).mean() / 2)


def ndcg(y: np.ndarray, scores: np.ndarray, groups: np.ndarray | None = None) -> float:
    """Return the mean over queries of DCG / best DCG, gains 2^y - 1.

    >>> round(ndcg(np.array([1, 0]), np.array([0.1, 0.9])), 4)  # 1 / log2(3)
    0.6309
    """
    groups = np.zeros(len(y)) if groups is None else np.asarray(groups)
    found = []
    for name in np.unique(groups):
        rows = groups == name
        worth, order = 2.0 ** y[rows] - 1, np.argsort(-scores[rows], kind="stable")
        discount = 1 / np.log2(2 + np.arange(len(worth)))
        best = (np.sort(worth)[::-1] * discount).sum()
        if best > 0:
            found.append((worth[order] * discount).sum() / best)
    return float(np.mean(found)) if found else 1.0


class Relevance(TargetCodec):
    """Relevances as they are, in one column."""

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Return a column of numbers."""
        return Target(torch.from_numpy(numeric_target(est, y).reshape(-1, 1)), 1)


@dataclass(kw_only=True, eq=False, repr=False)
class Ranking(Grouped, Neural, Ensemble):
    """Scores by which rows of a query are put in order.

    ``groups`` says which query each row belongs to; only rows of one query are compared. Without
    groups all rows are one query. ``predict`` gives scores: larger is better, and nothing else is
    meant by them.

    Parameters
    ----------
    estimator
        Whose network gives the score, an estimator of ours; None takes a small perceptron.
    task
        Left None: what is learnt is an order.
    loss
        ``"ranknet"``: all pairs count; ``"lambdarank"``: those that change the NDCG most.

    Attributes
    ----------
    estimator_ : object
        The trained estimator; its network has one output.

    Shapes
    ------
    X: as the wrapped estimator takes it.  y: (n,) relevances, numbers.  ``groups``: (n,).

    Notes
    -----
    Pairs are formed within a batch: let ``batch_size`` be several queries. ``score`` is the share
    of pairs in the right order.

    References
    ----------
    2005, Burges et al., Learning to rank using gradient descent, ICML. 2010, Burges, From RankNet
    to LambdaRank to LambdaMART, MSR-TR-2010-82.

    See Also
    --------
    MLPRegressor : where the relevances themselves are wanted.

    Examples
    --------
    >>> from castalia.testing.toys import plane
    >>> X, y = plane(120)
    >>> Ranking(random_state=0).fit(X, y, groups=np.arange(120) // 10).score(X, y) > 0.9
    True
    """

    task: Annotated[str | None, OneOf(None)] = None
    loss: Annotated[str, OneOf("ranknet", "lambdarank")] = "ranknet"

    def _default(self) -> Any:
        return default_member("regression", epochs=25, lr=3e-2)

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        member = self._neural(seed_from(self.random_state))
        if sample_weight is not None and not sample_weight.all():
            kept = np.flatnonzero(sample_weight)
            X, y, sample_weight = take_rows(X, kept), y[kept], sample_weight[kept]
        groups = np.zeros(len(y)) if self._groups is None else self._groups
        _, query = np.unique(groups, return_inverse=True)
        n, pairs = len(np.unique(query)), np.stack([query, numeric_target(self, y)])
        if len(y) > 1 and np.unique(pairs, axis=1).shape[1] == n:
            raise InvalidData(
                f"Ranking: `y` must differ within a query; got one relevance in each of {n}. Are "
                "`groups` the queries?"
            )
        loss = PairwiseRank(gain=self.loss == "lambdarank")
        if isinstance(getattr(member.training, "validation", 0), tuple):
            raise InvalidData("Ranking: `validation` of the training must be a share of the rows.")
        with changed(member, objective=loss, codec=Beside(Relevance(), lambda rows: query)):
            self.estimator_ = self._fit_member(member, X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """Return the score of each row, (n,)."""
        X = self._checked(X)
        return self.estimator_._outputs(X)[:, 0].double().numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """Return the share of pairs, of one query each, that are in the right order."""
        return pair_accuracy(np.asarray(y), self.predict(X), groups)

    def ndcg(self, X: Any, y: Any, groups: Any = None) -> float:
        """Return the mean normalised discounted gain over queries."""
        return ndcg(np.asarray(y), self.predict(X), groups)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = tags.classifier_tags = tags.regressor_tags = None
        tags.target_tags.multi_output = False
        return tags
