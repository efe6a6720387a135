"""Logistic and softmax regression."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from math import isinf
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.special import expit, log_softmax, softmax
from sklearn.utils.metaestimators import available_if
from torch import Tensor

from castalia.base import Interval, OneOf, check_parameters
from castalia.base.direct_descent import descend, loop_settings
from castalia.base.input_checks import check_target, check_weight
from castalia.base.targets import class_weights, encode_classes
from castalia.errors import DataWarning, InvalidParameter, TrainingWarning
from castalia.models.linear.descent_regressor import layer
from castalia.models.linear.discriminant import Discriminant
from castalia.models.linear.solvers.likelihood_minimiser import lbfgs, lbfgs_lasso, newton_by_parts
from castalia.models.linear.solvers.logistic_likelihood import Bernoulli, Categorical, Likelihood
from castalia.objectives import L1, L2, BinaryCrossEntropy, CrossEntropy
from castalia.train import Training

__all__ = ["LogisticRegression", "SoftmaxRegression"]

FEW = 400  # parameters up to which Newton's method is quicker than L-BFGS


@dataclass(kw_only=True, eq=False, repr=False)
class Logistic(Discriminant):
    """What logistic and softmax regression share; see there for the parameters."""

    _likelihoods: ClassVar[dict[bool, type[Likelihood]]] = {}  # by: are there two classes

    class_weight: Any = None
    C: Annotated[float, Interval(0, closed="right")] = 1.0
    l1_ratio: Annotated[float, Interval(0, 1)] = 0.0
    solver: Annotated[str, OneOf("auto", "newton", "lbfgs", "gd", "sgd")] = "auto"
    tol: Annotated[float, Interval(0, closed="neither")] = 1e-3
    warm_start: Annotated[bool, OneOf(True, False)] = False
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-2
    training: Training | None = None

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        before = getattr(self, "classes_", None) if self.warm_start else None
        self.classes_, codes = encode_classes(self, y)
        weight = class_weights(self, codes, sample_weight, ones=True)
        again = before is not None and np.array_equal(before, self.classes_)
        again = again and self.coef_.shape[1] == X.shape[1]
        if self.solver in ("gd", "sgd"):
            self.seen_ = float(weight.sum())
            training = loop_settings(self.training, self.device)
            self._descend(X, codes, weight, training, self.epochs, again)
            return
        problem = self._problem(X, codes, weight)
        start = problem.design.zeros(problem.outputs)
        if again:
            start = self._theta(problem.design)
        theta = self._minimise(problem, start)
        self._keep(theta)
        if isinf(self.C):
            self._warn_if_separable(problem, theta)

    def _problem(self, X: Any, codes: np.ndarray, weight: np.ndarray) -> Likelihood:
        design, total = self._design(X), weight.sum()
        return self._likelihoods[len(self.classes_) == 2](
            design=design,
            y=torch.as_tensor(codes, device=design.device),
            weight=torch.as_tensor(weight / total, dtype=design.dtype, device=design.device),
            ridge=(1 - self.l1_ratio) / (self.C * total),
            lasso=self.l1_ratio / (self.C * total),
            classes=len(self.classes_),
        )

    def _minimise(self, problem: Likelihood, start: Tensor) -> Tensor:
        name = type(self).__name__
        newton = self.solver == "newton" or (self.solver == "auto" and start.numel() <= FEW)
        if problem.lasso and self.solver == "newton":
            raise InvalidParameter(
                f"{name}: `solver` must be 'auto' or 'lbfgs' when `l1_ratio` is above 0; got "
                f"'newton'."
            )
        if problem.lasso:
            found = lbfgs_lasso(problem, start, self.tol)
        else:
            found = (newton_by_parts if newton else lbfgs)(problem, start, self.tol)
        self.n_iter_ = found.steps
        if not found.converged:
            warnings.warn(
                f"{name}: the solver stopped after {found.steps} steps, before `tol` of "
                f"{self.tol:g} was reached. Scale the columns of X to similar ranges.",
                TrainingWarning,
                stacklevel=4,
            )
        return found.theta

    def _warn_if_separable(self, problem: Likelihood, theta: Tensor) -> None:
        """Say that without a penalty there is no minimum, when one boundary parts all rows."""
        outputs = problem.design.forward(theta)
        if outputs.shape[1] == 1:
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=1)
        own = outputs.gather(1, problem.y[:, None])
        others = outputs.scatter(1, problem.y[:, None], -torch.inf)
        counted = problem.weight > 0
        if (own > others.amax(dim=1, keepdim=True))[counted].all():
            warnings.warn(
                f"{type(self).__name__}: the classes are perfectly separable, so without a penalty "
                "the likelihood has no maximum and the coefficients grow without end; stopped at "
                f"|coef| = {np.linalg.norm(self.coef_):.3g}. Give `C` a finite value, such as 1.0.",
                DataWarning,
                stacklevel=4,
            )

    def _descend(
        self,
        X: Any,
        codes: np.ndarray,
        weight: np.ndarray,
        training: Training,
        epochs: int,
        again: bool,
    ) -> None:
        """Run the training loop, from the coefficients there are when ``again``."""
        one = self._likelihoods[len(self.classes_) == 2] is Bernoulli
        outputs, start = 1 if one else len(self.classes_), self.module_ if again else None
        net = layer(X.shape[1], outputs, bias=self.fit_intercept, start=start)
        y = torch.from_numpy(codes)
        loss: Any = BinaryCrossEntropy() if one else CrossEntropy()
        price = 1 / (self.C * self.seen_)
        for penalty in (L2((1 - self.l1_ratio) * price), L1(self.l1_ratio * price)):
            loss = loss + penalty if penalty.alpha else loss
        state = descend(
            self,
            net,
            loss,
            X,
            y[:, None].double() if one else y,
            None if (weight == 1).all() else weight,
            training=training,
            epochs=epochs,
            batch_size=X.shape[0] if self.solver == "gd" else self.batch_size,
            lr=self.lr,
        )
        self.n_iter_ = state.step
        self.coef_ = net.weight.detach().numpy()
        zero = np.zeros(len(self.coef_), self.coef_.dtype)
        self.intercept_ = net.bias.detach().numpy() if self.fit_intercept else zero

    @available_if(lambda self: self.solver == "sgd")
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Logistic:
        """Go on from where the coefficients are with one pass over further rows (``"sgd"`` only).

        The penalty is that beside the sum of all rows so far. Every call starts the optimizer and
        the schedule of ``training`` again and keeps no run.

        Parameters
        ----------
        X, y
            Rows and their labels.
        classes
            All classes there will be; needed the first time.
        sample_weight
            How often each row counts.
        """
        check_parameters(self)
        first = not hasattr(self, "coef_")
        X = self._matrix(X, reset=first)
        codes = self._codes(check_target(self, X, y), classes, first=first)
        weight = check_weight(self, X, sample_weight)
        weight = class_weights(self, codes, weight, ones=True)
        self.seen_ = float(weight.sum()) + (0.0 if first else getattr(self, "seen_", 0.0))
        training = replace(loop_settings(self.training, self.device), run=None)
        self._descend(X, codes, weight, training, 1, again=not first)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (N, K)."""
        z = self._outputs(X)
        if z.shape[1] > 1:
            return softmax(z, axis=1)
        return np.concatenate([expit(-z), expit(z)], axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of each class's probability, (N, K), without underflow."""
        z = self._outputs(X)
        return log_softmax(z if z.shape[1] > 1 else np.concatenate([0 * z, z], axis=1), axis=1)


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(Logistic):
    """Linear classifier whose score is the log-odds of a class.

    P(y = 1 | x) = sigma(w x + b) for two classes, softmax(W x + b) for more. The first choice for a
    table: convex, quick, calibrated where the log-odds are linear. Where they are not, a network or
    boosted trees do better.

    Parameters
    ----------
    C
        Inverse strength of the penalty; ``math.inf`` for none. Smaller values shrink more.
    l1_ratio
        Share of the penalty that is L1: 0 is ridge, 1 is lasso, which sets coefficients to zero.
    class_weight
        None, ``"balanced"``, or a dict from class to weight; multiplies the sample weights.
    solver
        ``"newton"``, best for few columns; ``"lbfgs"``, for many; ``"auto"`` chooses between them;
        ``"sgd"`` and ``"gd"`` run the training loop on batches and on all rows.
    tol
        Newton decrement at which to stop; the objective is then within tol^2 / 2 of its minimum.
        L-BFGS stops when no entry of the gradient exceeds tol / 1000.
    fit_intercept
        Whether there is a constant term; it is not penalised.
    warm_start
        Whether ``fit`` starts from the coefficients it finds.
    epochs, batch_size, lr, training
        For ``"sgd"`` and ``"gd"`` only, as in every trained estimator.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    coef_ : ndarray of shape (1, D) or (K, D)
        Coefficients; one row for two classes.
    intercept_ : ndarray of shape (1,) or (K,)
        Constant terms.
    n_iter_ : int
        Steps of the solver.
    seen_ : float
        After ``"gd"`` and ``"sgd"``: rows, or weight of rows, of the fit and of every part since.

    Shapes
    ------
    X (N, D) dense or scipy-sparse, y (N,) labels of any kind.

    Notes
    -----
    Minimises C sum_n v_n nll_n + (1 - l1_ratio)/2 |W|_2^2 + l1_ratio |W|_1 with sample weights v,
    as scikit-learn does. Newton's method costs O(N D^2) a Hessian; with many rows an eighth of them
    gives the starting point and the Hessian, and the rest of the work is a few gradients. With
    ``C=inf`` and perfectly separable classes there is no minimum; a ``DataWarning`` says so.

    References
    ----------
    1958, Cox, The regression analysis of binary sequences, J. R. Statist. Soc. B 20.

    See Also
    --------
    Perceptron : the same boundary without probabilities.
    castalia.MLPClassifier : when no hyperplane is enough.

    Examples
    --------
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> model.predict([[0.2], [2.9]]).tolist()
    ['no', 'yes']
    >>> model.predict_proba([[1.5]]).round(3).tolist()
    [[0.5, 0.5]]
    """

    _likelihoods: ClassVar[dict[bool, type[Likelihood]]] = {True: Bernoulli, False: Categorical}


@dataclass(kw_only=True, eq=False, repr=False)
class SoftmaxRegression(Logistic):
    """Multinomial logistic regression in its symmetric form: an output for every class.

    P(y = k | x) = softmax(W x + b)_k, two classes included, where ``LogisticRegression`` keeps one
    output. Of the many equal parameters the ones whose mean over the classes is zero are found.

    Parameters
    ----------
    C
        Inverse strength of the penalty; ``math.inf`` for none. Smaller values shrink more.
    l1_ratio
        Share of the penalty that is L1: 0 is ridge, 1 is lasso, which sets coefficients to zero.
    class_weight
        None, ``"balanced"``, or a dict from class to weight; multiplies the sample weights.
    solver
        ``"newton"``, best for few columns and classes; ``"lbfgs"``, for many; ``"auto"`` chooses;
        ``"sgd"`` and ``"gd"`` run the training loop on batches and on all rows.
    tol
        Newton decrement at which to stop; L-BFGS stops when no entry of the gradient exceeds
        tol / 1000.
    fit_intercept
        Whether there are constant terms; they are not penalised.
    warm_start
        Whether ``fit`` starts from the coefficients it finds.
    epochs, batch_size, lr, training
        For ``"sgd"`` and ``"gd"`` only, as in every trained estimator.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    coef_ : ndarray of shape (K, D)
        Coefficients, a row a class.
    intercept_ : ndarray of shape (K,)
        Constant terms.
    n_iter_ : int
        Steps of the solver.
    seen_ : float
        After ``"gd"`` and ``"sgd"``: rows, or weight of rows, of the fit and of every part since.

    Shapes
    ------
    X (N, D) dense or scipy-sparse, y (N,) labels of any kind.

    Notes
    -----
    Minimises C sum_n v_n nll_n + (1 - l1_ratio)/2 |W|_2^2 + l1_ratio |W|_1; the gradient by w_k is
    sum_n (p_nk - 1[y_n = k]) x_n. With two classes and a penalty C this is ``LogisticRegression``
    with 2 C, as the difference of the two rows pays half of what one row would.

    References
    ----------
    1992, Böhning, Multinomial logistic regression algorithm, Ann. Inst. Statist. Math. 44.

    See Also
    --------
    LogisticRegression : one output for two classes.
    castalia.MLPClassifier : a softmax on top of hidden layers.

    Examples
    --------
    >>> model = SoftmaxRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.coef_.shape, bool(abs(model.coef_.sum()) < 1e-9)
    ((2, 1), True)
    """

    _likelihoods: ClassVar[dict[bool, type[Likelihood]]] = {True: Categorical, False: Categorical}

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each class, (N, K), or of the second of two over the first, (N,)."""
        scores = self._outputs(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
