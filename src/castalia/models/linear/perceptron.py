"""Rosenblatt's perceptron, with Novikoff's bound and Aizerman's stopping rule."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import Annotated, Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from castalia.base import Interval, OneOf
from castalia.models.linear.discriminant import Online, Passed
from castalia.models.linear.solvers.affine_design import Affine
from castalia.models.linear.solvers.interior_point import soft_margin
from castalia.models.linear.solvers.perceptron_corrections import ArgmaxWalk, BinaryWalk, Walk
from castalia.utils.seeds import derive, seed_from
from castalia.utils.text import plural

__all__ = ["Perceptron", "enough_right"]


def enough_right(k: int, eps: float, risk: float) -> int:
    """Return how many right answers in a row are enough after the k-th correction.

    m_k = ceil((1 + 2 ln k - ln risk) / -ln(1 - eps)): the chance that a rule with an error above
    eps gets that far, summed over all k, is below ``risk`` (Aizerman's stopping rule). Before
    the first correction k counts as 1.

    Parameters
    ----------
    k
        Corrections so far.
    eps
        The error that is tolerated.
    risk
        How likely a worse rule may be accepted; eta in the notes.

    Examples
    --------
    >>> [enough_right(k, 0.05, 0.05) for k in (1, 5, 20)]
    [78, 141, 195]
    """
    return ceil((1 + 2 * log(max(k, 1)) - log(risk)) / -log(1 - eps))


@dataclass(kw_only=True, eq=False, repr=False)
class Perceptron(Online):
    """The perceptron: after every mistake, add the example to the weights.

    With y = +-1, a mistake is y (w x + b) <= 0, and w += lr y x, b += lr y. From zero weights, if
    some hyperplane through the origin of (x, 1) separates the classes with margin rho, at most
    R^2 / rho^2 mistakes are made (Novikoff); if none does, they never end, and the fit stops after
    ``epochs`` or ``patience`` and says so in ``stopped_``. Cheap and online; ``LogisticRegression``
    is the better choice where classes overlap.

    Parameters
    ----------
    multiclass
        ``"argmax"``: K weight vectors together, a mistake moves the true class and the class that
        was said; ``"ovr"``: K perceptrons, each a class against the rest.
    rule
        ``"mistake"``: w += lr y x; ``"delta"``: w += lr (y - o) x with the answer o = +-1, the same
        path with twice the step.
    lr
        Size of a correction. From zero weights it only scales the result.
    init
        Standard deviation of the random starting weights; the bound needs 0.
    stop
        ``"epoch"``: after an epoch without a mistake; ``"aizerman"``: as soon as
        m_k = ceil((1 + 2 ln k - ln risk) / -ln(1 - eps)) examples after the k-th correction were
        all right.
    eps, risk
        Of Aizerman's rule: on fresh examples, the error is below ``eps`` with a probability of at
        least 1 - ``risk``.
    margin
        Which margin goes into the bound: ``"learnt"``, that of the weights found (any separating
        weights give a valid bound), or ``"best"``, the largest there is, by solving the hard-margin
        problem; it gives the smallest bound. With ``"argmax"`` it is always the learnt one.
    epochs
        Most passes over the rows.
    patience
        Epochs without fewer mistakes after which to give up; None goes on to the last epoch.
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
    mistakes_ : ndarray of int, of shape (1,) or, for ``"ovr"``, (K,)
        Corrections made.
    separated_ : bool
        Whether every training row is on its right side.
    stopped_ : str
        Why the fit ended, in a sentence.
    radius_ : float
        R, the largest norm of (x, 1), or of x without an intercept.
    margin_ : ndarray like ``mistakes_``
        rho, the smallest distance of a row (x, 1) from the hyperplane; not positive if not
        separated. With ``"argmax"``, of the pairs (W_y - W_k) x, by the norm of all of W.
    novikoff_bound_ : ndarray like ``mistakes_``
        floor(R^2 / rho^2), with 2 R^2 for ``"argmax"`` and times the largest sample weight over the
        smallest; infinite if not separated or ``init`` > 0.
    n_iter_ : int
        Epochs begun.
    seen_ : int
        Examples seen.

    Shapes
    ------
    X (N, D) dense or scipy-sparse, y (N,) labels of any kind.

    Notes
    -----
    The weights are those of the rule applied row after row, found by matrix products over stretches
    without a mistake; where two classes overlap, by scikit-learn's compiled loop. The walk is
    sequential and runs on the CPU, wherever X is. Aizerman's guarantee holds while the examples are
    fresh: within the first epoch.

    A sample weight v multiplies the correction of its row, as in scikit-learn: w += lr v y x.
    Weight 0 is the same as leaving the row out, and equal weights only scale the result. Weight 2
    is not the same as the row twice: a row may be right after its first correction. A row is
    counted once in ``mistakes_``, whatever its weight; with weights between v and V they are at
    most (V / v) R^2 / rho^2, by Novikoff's argument.

    References
    ----------
    1958, Rosenblatt, The perceptron, Psychological Review 65.
    1962, Novikoff, On convergence proofs on perceptrons.
    1964, Aizerman, Braverman, Rozonoer, Theoretical foundations of the potential function method.

    See Also
    --------
    Adaline : corrects every row, in proportion to its error.
    LinearSVM : the hyperplane with the largest margin.

    Examples
    --------
    >>> model = Perceptron().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    >>> bool(model.mistakes_[0] <= model.novikoff_bound_[0]), model.stopped_
    (True, 'every row was right in epoch 6')
    """

    multiclass: Annotated[str, OneOf("argmax", "ovr")] = "argmax"
    rule: Annotated[str, OneOf("mistake", "delta")] = "mistake"
    lr: Annotated[float, Interval(0, closed="neither")] = 1.0
    init: Annotated[float, Interval(0)] = 0.0
    stop: Annotated[str, OneOf("epoch", "aizerman")] = "epoch"
    eps: Annotated[float, Interval(0, 1, closed="neither")] = 0.05
    risk: Annotated[float, Interval(0, 1, closed="neither")] = 0.05
    margin: Annotated[str, OneOf("learnt", "best")] = "learnt"
    epochs: Annotated[int, Interval(1, whole=True)] = 1000
    patience: Annotated[int | None, Interval(1, whole=True, optional=True)] = 20
    shuffle: Annotated[bool, OneOf(True, False)] = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Perceptron:
        """Walk over the rows until they are all right, or it is time to stop.

        Parameters
        ----------
        X
            Array, frame, ``castalia.data.Dataset``, tensor or scipy sparse matrix of numbers.
        y
            Labels.
        sample_weight
            Factor of each row's correction; a row of weight 0 is left out.

        Returns
        -------
        self
        """
        rows, again = self._read(X, y, sample_weight)
        rows, seed = rows._replace(X=_host(rows.X)), seed_from(self.random_state)
        walks = self._walks(rows.X, seed, again=again)
        self._walk(walks, rows, seed)
        self._keep_walks(walks)
        self._judge(rows)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Perceptron:
        """Walk over further rows once, from the weights there are.

        Parameters
        ----------
        X, y
            Rows and their labels.
        classes
            All classes there will be; needed the first time.
        sample_weight
            Factor of each row's correction; a row of weight 0 is left out.
        """
        (X, codes, weight), first = self._read_part(X, y, classes, sample_weight)
        X = _host(X)
        walks = self._walks(X, seed_from(self.random_state), again=not first)
        if not first:
            for walk, made in zip(walks, self.mistakes_, strict=True):
                walk.corrections, walk.seen = int(made), self.seen_
        for walk, signs in zip(walks, self._targets(codes), strict=True):
            walk.over(X, signs, weight)
            walk.epoch()
        self.n_iter_ = 1
        self._keep_walks(walks)
        return self

    def _walks(self, X: Any, seed: int, *, again: bool) -> list[Walk]:
        """Return the walks at their starting points: one, or one a class."""
        K = 1 if len(self.classes_) == 2 else len(self.classes_)
        if again and self.coef_.shape == (K, X.shape[1]):
            W, b = self.coef_ / self._step(), self.intercept_ / self._step()
        else:
            random = np.random.default_rng(derive(seed, 0))
            W = self.init / self._step() * random.normal(size=(K, X.shape[1]))
            b = self.init / self._step() * random.normal(size=K) * self.fit_intercept
        W, b = W.astype(X.dtype), b.astype(X.dtype)
        if K == 1 or self.multiclass == "ovr":
            parts = [(W[k : k + 1].copy(), b[k : k + 1].copy()) for k in range(K)]
            return [BinaryWalk(*part, intercept=self.fit_intercept) for part in parts]
        return [ArgmaxWalk(W, b, intercept=self.fit_intercept)]

    def _step(self) -> float:
        """Return what one correction adds, in units of y x."""
        return self.lr if self.rule == "mistake" else 2 * self.lr

    def _targets(self, codes: np.ndarray) -> list[np.ndarray]:
        """Return what each walk compares with: signs, or the class numbers."""
        K = len(self.classes_)
        if K > 2 and self.multiclass == "argmax":
            return [codes]
        return [np.where(codes == k, 1, -1) for k in ([1] if K == 2 else range(K))]

    def _walk(self, walks: list[Walk], rows: Passed, seed: int) -> None:
        """Walk until done, and say in ``stopped_`` why it ended."""
        ends = []
        for number, (walk, y) in enumerate(zip(walks, self._targets(rows.codes), strict=True)):
            ends.append(self._one_walk(walk, rows, y, derive(seed, 1, number)))
        self.n_iter_ = max(epochs for epochs, _ in ends)
        self.stopped_ = max(ends)[1]

    def _one_walk(self, walk: Walk, rows: Passed, y: np.ndarray, seed: int) -> tuple[int, str]:
        random = np.random.default_rng(seed)
        rule = None
        if self.stop == "aizerman":
            rule = lambda k: enough_right(k, self.eps, self.risk)  # noqa: E731
        X, weight = rows.X, rows.weight
        walk.over(X, y, weight)
        fewest, since = len(y) + 1, 0
        for epoch in range(1, self.epochs + 1):
            if self.shuffle:
                order = random.permutation(len(y))
                walk.over(X[order], y[order], None if weight is None else weight[order])
            mistakes = walk.epoch(rule)
            if rule is not None and walk.right >= rule(walk.corrections):
                right = plural(walk.right, "right answer")
                return epoch, f"{right} in a row after {plural(walk.corrections, 'correction')}"
            if mistakes == 0:
                return epoch, f"every row was right in epoch {epoch}"
            fewest, since = (mistakes, 0) if mistakes < fewest else (fewest, since + 1)
            if self.patience is not None and since >= self.patience:
                break
        return epoch, (
            f"not separated: {plural(mistakes, 'mistake')} in the last of "
            f"{plural(epoch, 'epoch')}, never fewer than {fewest:,}; there may be no hyperplane "
            "between the classes"
        )

    def _keep_walks(self, walks: list[Walk]) -> None:
        step = self._step()
        self.coef_ = step * np.concatenate([walk.W for walk in walks])
        self.intercept_ = step * np.concatenate([walk.b for walk in walks])
        self.mistakes_ = np.array([walk.corrections for walk in walks])
        self.seen_ = max(walk.seen for walk in walks)

    def _judge(self, rows: Passed) -> None:
        """Set what the bound is made of."""
        X, codes, weight = rows
        squares = X.multiply(X).sum(axis=1) if issparse(X) else np.einsum("nd,nd->n", X, X)
        self.radius_ = float(np.sqrt(squares.max() + self.fit_intercept))
        scores = X @ self.coef_.T + self.intercept_
        theta = np.column_stack([self.coef_, self.intercept_])
        if len(self.classes_) > 2 and self.multiclass == "argmax":
            own = np.take_along_axis(scores, codes[:, None], axis=1)
            np.put_along_axis(scores, codes[:, None], -np.inf, axis=1)
            margins = (own[:, 0] - scores.max(axis=1)).min(keepdims=True) / _norm(theta.ravel())
            reach = 2 * self.radius_**2
        else:
            signs = np.column_stack(self._targets(codes))
            margins = (signs * scores).min(axis=0) / np.array([_norm(row) for row in theta])
            reach = self.radius_**2
            if self.margin == "best":
                pairs = zip(signs.T, margins, strict=True)
                margins = np.array([_best(self, X, *pair) for pair in pairs])
        self.margin_ = margins.astype(np.float64)
        self.separated_ = bool((margins > 0).all())
        known = (self.margin_ > 0) & (self.init == 0) & (not self.warm_start)
        spread = 1.0 if weight is None else weight.max() / weight.min()
        with np.errstate(divide="ignore"):
            bound = np.floor(spread * reach / self.margin_**2)
        self.novikoff_bound_ = np.where(known, bound, np.inf)


def _host(X: Any) -> Any:
    return X.cpu().numpy() if isinstance(X, Tensor) else X


def _norm(row: np.ndarray) -> float:
    return float(np.linalg.norm(row)) or 1.0


def _best(model: Perceptron, X: Any, signs: np.ndarray, learnt: float) -> float:
    """Return the largest margin of unit weights (w, b); that learnt where there is none."""
    if learnt <= 0:
        return learnt
    rows = X.astype(np.float64) if issparse(X) else torch.as_tensor(X).double()
    y = torch.from_numpy(signs.astype(np.float64))
    # sum alpha = |w|^2 = 1 / rho^2, so with this price no row buys itself out
    price = torch.full_like(y, 2 / learnt**2)
    found = soft_margin(Affine(rows, model.fit_intercept), y, price, free=False)
    return max(learnt, float(1 / found.theta.norm()))
