"""Adaline: the adaptive linear neuron of Widrow and Hoff."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from castalia.base import Interval, OneOf
from castalia.models.linear.discriminant import Online
from castalia.models.linear.solvers.lms import lms
from castalia.utils.seeds import derive, seed_from

__all__ = ["Adaline"]


@dataclass(kw_only=True, eq=False, repr=False)
class Adaline(Online):
    """Adaline: a linear unit that moves after every example, in proportion to its error.

    With y = +-1 the rule is w += 2 lr (y - w x) x, stochastic gradient descent on (y - w x)^2; the
    sign of w x is the answer. It hovers about the least-squares solution, nearer for a smaller
    ``lr``. Unlike the perceptron it settles when classes overlap; unlike logistic regression
    it also pulls back the rows that are right by far. Several classes get a unit each.

    Parameters
    ----------
    lr
        Rate of the rule; the mean settles if it is below 1 / mean |x|^2. None takes a twentieth of
        that, and never more than half of 1 / max |x|^2.
    epochs
        Passes over the rows.
    shuffle
        Whether rows come in a new random order every epoch; otherwise they come as they are.
    fit_intercept
        Whether there is a constant term.
    warm_start
        Whether ``fit`` starts from the weights it finds.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    coef_ : ndarray of shape (1, D) or (K, D)
        Weights; one row for two classes.
    intercept_ : ndarray of shape (1,) or (K,)
        Constant terms.
    lr_ : float
        The rate that was used.
    errors_ : ndarray of shape (epochs,)
        Mean squared error of each epoch, every example before its own correction; a weighted mean
        where the rows have weights.

    Shapes
    ------
    X (N, D) dense or scipy-sparse, y (N,) labels of any kind.

    Notes
    -----
    The weights are those of the rule applied row after row; blocks of rows are solved as triangular
    systems, so that an epoch costs O(N (D + 64)) in matrix products. In the long run the mean
    squared error exceeds the least one by a share of about lr tr(R) / (1 - lr tr(R)), R the
    second-moment matrix of the inputs.

    A sample weight v multiplies the step of its row, as in scikit-learn's SGD: 2 lr v (y - w x) x,
    so that the rule settles about the weighted least-squares solution. Weight 0 is the same as
    leaving the row out. Weight 2 is not the same as the row twice, which meets its second step with
    weights that have moved; the two agree as ``lr`` becomes small. With ``lr=None`` only the ratios
    of the weights matter.

    References
    ----------
    1960, Widrow, Hoff, Adaptive switching circuits, IRE WESCON Convention Record 4.

    See Also
    --------
    AdaptiveFilter : the same rule on a signal and its past.
    Perceptron : corrects mistakes only.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> model = Adaline(epochs=200).fit(X, y)
    >>> model.predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    """

    lr: Annotated[float | None, Interval(0, closed="neither", optional=True)] = None
    epochs: Annotated[int, Interval(1, whole=True)] = 20
    shuffle: Annotated[bool, OneOf(True, False)] = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Adaline:
        """Run the rule over the rows ``epochs`` times.

        Parameters
        ----------
        X
            Array, frame, ``castalia.data.Dataset``, tensor or scipy sparse matrix of numbers.
        y
            Labels.
        sample_weight
            Factor of each row's step; a row of weight 0 is left out.

        Returns
        -------
        self
        """
        (X, codes, weight), again = self._read(X, y, sample_weight)
        seed = seed_from(self.random_state)
        rows, target = self._rows(X), self._signs(codes)
        self.lr_ = self._rate(rows, weight)
        W = self._start(rows, again=again)
        errors = []
        for epoch in range(self.epochs):
            order = np.arange(len(codes))
            if self.shuffle:
                order = np.random.default_rng(derive(seed, epoch)).permutation(len(codes))
            errors.append(self._epoch(rows, target, W, order, weight))
        self.errors_ = np.array(errors)
        self._keep(W)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Adaline:
        """Run the rule over further rows once, in their order, from the weights there are.

        Parameters
        ----------
        X, y
            Rows and their labels.
        classes
            All classes there will be; needed the first time.
        sample_weight
            Factor of each row's step; a row of weight 0 is left out.
        """
        (X, codes, weight), first = self._read_part(X, y, classes, sample_weight)
        rows = self._rows(X)
        if first:
            self.lr_ = self._rate(rows, weight)
        W = self._start(rows, again=not first)
        error = self._epoch(rows, self._signs(codes), W, np.arange(len(codes)), weight)
        self.errors_ = np.append([] if first else self.errors_, error)
        self._keep(W)
        return self

    def _rows(self, X: Any) -> Any:
        return X if issparse(X) else self._tensor(X)

    def _signs(self, codes: np.ndarray) -> np.ndarray:
        """Return +-1 for each row and unit, (N, 1) or (N, K)."""
        K = len(self.classes_)
        columns = np.array([1]) if K == 2 else np.arange(K)
        return np.where(codes[:, None] == columns, 1.0, -1.0)

    def _rate(self, rows: Any, weight: np.ndarray | None) -> float:
        if self.lr is not None:
            return float(self.lr)
        power = rows.multiply(rows).sum(axis=1) if issparse(rows) else rows.square().sum(dim=1)
        power = power + float(self.fit_intercept)
        if weight is not None:  # a step is 2 lr weight |x|^2 of the error
            power = power * (weight if issparse(rows) else torch.as_tensor(weight).to(power))
        if not power.max():  # nothing but zeros: any rate will do
            return 0.05
        return min(0.05 / float(power.mean()), 0.5 / float(power.max()))

    def _start(self, rows: Any, *, again: bool) -> Tensor:
        design = self._design(rows)
        units = 1 if len(self.classes_) == 2 else len(self.classes_)
        again = again and self.coef_.shape == (units, rows.shape[1])
        return self._theta(design).clone() if again else design.zeros(units)

    def _epoch(
        self, rows: Any, target: np.ndarray, W: Tensor, order: np.ndarray, weight: Any
    ) -> float:
        """Run the rule over the rows in an order and return the mean squared error."""
        y = torch.as_tensor(target, dtype=W.dtype, device=W.device)
        share = np.ones(len(order)) if weight is None else weight
        steps = torch.as_tensor(2 * self.lr_ * share, dtype=W.dtype, device=W.device)

        def blocks(size: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
            for start in range(0, len(order), size):
                index = order[start : start + size]
                yield self._block(rows, index, W), y[index], steps[index]

        errors = lms(blocks, W, owner=type(self).__name__, lr=self.lr_)
        squares = errors.double().square().mean(dim=1).cpu().numpy()  # in the order of the pass
        return float(np.average(squares, weights=share[order]))

    def _block(self, rows: Any, index: np.ndarray, W: Tensor) -> Tensor:
        """Return some rows with the constant column, (B, P)."""
        X = torch.from_numpy(rows[index].toarray()) if issparse(rows) else rows[index]
        return torch.cat([X, torch.ones_like(X[:, :1])], dim=1) if self.fit_intercept else X
