"""Active learning: of the rows without a label, those are labelled that teach most.

uncertainty 1 - max_k p_k;  margin -(p_(1) - p_(2));  entropy -sum_k p_k log p_k;  BALD
H(mean_m p_m) - mean_m H(p_m), the information that the label has about the weights;  coreset: the
row farthest from all labelled ones, again and again.  Shapes: N rows, K classes, M members.
References: 1994, Lewis, Gale, A sequential algorithm for training text classifiers, SIGIR. 2011,
Houlsby et al., Bayesian active learning, arXiv 1112.5745. 2018, Sener, Savarese, A core-set
approach, arXiv 1708.00489.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.spatial.distance import cdist
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Interval, OneOf
from castalia.base.input_checks import n_rows
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.strategies.strategy_base import Strategy, join_rows
from castalia.nn import evaluating
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["QUERIES", "ActiveLearning", "farthest_first", "information_gain"]


def _margin(p: np.ndarray) -> np.ndarray:
    second, first = np.partition(p, -2, axis=1)[:, -2:].T
    return second - first


# How much one wants to know the label of each row, by the probabilities of its classes, (N, K).
QUERIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "uncertainty": lambda p: 1 - p.max(axis=1),
    "margin": _margin,
    "entropy": lambda p: entr(p).sum(axis=1),
}


def information_gain(p: np.ndarray) -> np.ndarray:  # (M, N, K)
    """Return how much a label says about the weights, (N,): where members disagree.

    >>> information_gain(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])).round(2)
    array([0.69, 0.  ])
    """
    gain: np.ndarray = entr(p.mean(axis=0)).sum(axis=1) - entr(p).sum(axis=2).mean(axis=0)
    return gain


def farthest_first(X: np.ndarray, known: np.ndarray, n: int) -> np.ndarray:
    """Return n rows of X, each the farthest from those known and taken so far.

    >>> farthest_first(np.array([[1.0], [5.0], [9.0]]), np.array([[0.0]]), 2)
    array([2, 1])
    """
    near = cdist(X, known).min(axis=1)
    taken = []
    for _ in range(n):
        taken.append(int(near.argmax()))
        near = np.minimum(near, cdist(X, X[taken[-1:]])[:, 0])
    return np.array(taken)


@dataclass(kw_only=True, eq=False, repr=False)
class ActiveLearning(Strategy):
    """A classifier that asks for the labels it would learn most from.

    ``fit`` takes the first labels, ``ask`` says which rows of a pool to label next, ``tell`` takes
    their labels and fits again. Pays where labels are dear and many rows are alike.

    Parameters
    ----------
    task
        ``"classification"``: the only one there is.
    query
        ``"uncertainty"``, ``"margin"``, ``"entropy"``, ``"bald"`` (needs dropout in the network),
        ``"coreset"`` (numbers only) or ``"random"``, the baseline.
    members
        Passes with dropout for ``"bald"``.

    Attributes
    ----------
    estimator_ : object
        The classifier, fitted to all labels so far.
    labels_ : int
        Number of labels so far.
    classes_ : ndarray (K,)
        The classes.

    Shapes
    ------
    As those of the wrapped classifier.

    Notes
    -----
    Every ``tell`` is a fit on all labels so far. Labelled rows are kept while the object lives and
    are not saved with it: after loading, ``fit`` comes before ``tell``.

    References
    ----------
    1994, Lewis, Gale, A sequential algorithm for training text classifiers, SIGIR. 2011, Houlsby,
    Huszar, Ghahramani, Lengyel, Bayesian active learning, arXiv 1112.5745.

    See Also
    --------
    SelfTraining : labels rows by itself.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = ActiveLearning(random_state=0).fit(X[:10], y[:10])
    >>> rows = model.ask(X[10:], 5)
    >>> model.tell(X[10:][rows], y[10:][rows]).labels_
    15
    """

    _classes_only: ClassVar[bool] = True

    task: Annotated[str | None, OneOf(None, "classification")] = None
    query: Annotated[str, OneOf(*QUERIES, "bald", "coreset", "random")] = "margin"
    members: Annotated[int, Interval(2, whole=True)] = 20

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        self._known = X, y, weight
        self.labels_ = len(y)
        return self._fit_member(member, X, y, weight)

    def ask(self, X: Any, n: int = 1) -> np.ndarray:
        """Return the positions of the n rows of a pool whose labels are wanted most, (n,)."""
        X = self._checked(X)
        rows = n_rows(X)
        if not 1 <= n <= rows:
            raise InvalidParameter(
                f"ActiveLearning.ask: `n` must be from 1 to the {rows} rows of the pool; got {n}."
            )
        if self.query == "coreset":
            return farthest_first(self._dense(X), self._dense(self._labelled()[0]), n)
        if self.query == "random":
            drawn = np.random.default_rng([seed_from(self.random_state), self.labels_])
            return drawn.permutation(rows)[:n]
        if self.query == "bald":
            wanted = information_gain(self._drawn(X))
        else:
            wanted = QUERIES[self.query](self.estimator_.predict_proba(X))
        return np.argsort(-wanted, kind="stable")[:n]

    def tell(self, X: Any, y: Any) -> ActiveLearning:
        """Take the labels of further rows, and fit to all of them again."""
        known, labels, weight = self._labelled()
        more = None if weight is None else np.concatenate([weight, np.ones(n_rows(X))])
        joined = join_rows("ActiveLearning", known, self._matrix(X))
        self.fit(joined, np.concatenate([labels, np.asarray(y)]), more)
        return self

    def _labelled(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        check_is_fitted(self, "estimator_")
        if "_known" not in vars(self):
            raise InvalidData(
                "ActiveLearning: must be fitted to the labelled rows again after loading, which "
                "are not saved."
            )
        return self._known

    def _dense(self, X: Any) -> np.ndarray:
        """Return rows as the network receives them, one vector each."""
        blocks = [x.flatten(1) for x in self.estimator_.adapter_.blocks(X, np.float64)]
        return torch.cat(blocks).numpy()

    def _drawn(self, X: Any) -> np.ndarray:
        """Return the probabilities of members that dropout draws, (M, N, K)."""
        net = self.estimator_.module_
        layers = [m for m in net.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]
        if not layers:
            raise InvalidParameter(
                "ActiveLearning: query='bald' needs a network with dropout; set `dropout` of the "
                "estimator."
            )
        weight = next(net.parameters())
        kind = np.float64 if weight.dtype == torch.float64 else np.float32
        seed = seed_from(self.random_state)
        with evaluating(net), torch.inference_mode(), seed_scope(seed, weight.device):
            for layer in layers:
                layer.train()
            blocks = [x.to(weight.device) for x in self.estimator_.adapter_.blocks(X, kind)]
            found = [torch.cat([net(x) for x in blocks]) for _ in range(self.members)]
        return torch.softmax(torch.stack(found).double(), dim=2).cpu().numpy()
