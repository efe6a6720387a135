"""Regression on random Fourier features, and its risk over the number of features."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf, check_parameters
from castalia.base.input_checks import check_target
from castalia.base.targets import numeric_target
from castalia.errors import InvalidParameter
from castalia.models.kernel.feature_sweep import Problem, Sweep, sweep, waves
from castalia.models.kernel.least_norm import least_norm
from castalia.nn import draw_frequencies
from castalia.utils.seeds import generator, seed_from
from castalia.utils.sparse_blocks import dense_blocks
from castalia.utils.text import shorten

__all__ = ["RandomFeatureRegression"]

BLOCK = 256  # frequencies drawn from one stream, so that fewer are the first of more
ROWS = 4096  # rows predicted at a time


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFeatureRegression(RegressorMixin, DirectEstimator):
    """Least squares on random waves of the inputs; of all best fits, the shortest.

    f(x) = w.phi(x) with phi(x) = (cos v_m.x, sin v_m.x) / sqrt(M), v_m ~ N(0, I / length_scale^2):
    a two-layer network whose first layer stays random. As M grows it tends to the Gaussian kernel
    machine. With alpha = 0 the test error peaks where the features are as many as the rows, and
    falls again beyond: double descent. A penalty, ``alpha``, takes the peak away.

    Parameters
    ----------
    n_frequencies
        Number M of random frequencies: 2 M real features, or M complex ones.
    length_scale
        Width l of the kernel exp(-|x - z|^2 / (2 l^2)); larger is smoother.
    coding
        ``"real"``: cosines and sines with real weights; ``"complex"``: exp(i v.x) with complex
        weights, of whose values the real part is taken.
    alpha
        Weight of |w|^2; 0: the shortest of all least-squares fits, which interpolates where it can.

    Attributes
    ----------
    frequencies_ : ndarray of shape (M, D)
        The frequencies v. Those of a smaller M are the first ones of a larger.
    coef_ : ndarray of shape (F,) or (T, F)
        Weights, F = 2 M (cosines first) or M.
    rank_ : int
        Rank of the feature matrix.

    Shapes
    ------
    X (N, D): an array, a frame, or a tensor on any device; y (N,) or (N, T).

    Notes
    -----
    A system of min(N, F) equations is solved in float64 by Cholesky's method, O(N F min(N, F)); if
    it is too close to singular, by singular values. The training set is fitted exactly from
    F = N on: from M = N / 2 with real coding and from M = N with complex. There is no constant
    term; centre y where it lies far from zero.

    References
    ----------
    2007, Rahimi, Recht, Random features for large-scale kernel machines, NeurIPS 20. 2019, Belkin,
    Hsu, Ma, Mandal, Reconciling modern machine-learning practice and the classical bias–variance
    trade-off, PNAS 116.

    See Also
    --------
    castalia.LinearRegression : without the waves.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> model = RandomFeatureRegression(n_frequencies=100, random_state=0).fit(X, X[:, 0] ** 2)
    >>> model.coef_.shape, bool(abs(model.predict([[0.5]])[0] - 0.25) < 1e-3)
    ((200,), True)
    """

    _sparse: ClassVar[bool] = True

    n_frequencies: Annotated[int, Interval(1, whole=True)] = 100
    length_scale: Annotated[float, Interval(0, closed="neither")] = 1.0
    coding: Annotated[str, OneOf("real", "complex")] = "real"
    alpha: Annotated[float, Interval(0)] = 0.0

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        Y = self._targets(y)
        self.frequencies_ = self._draw(X.shape[1], self.n_frequencies).numpy()
        A = torch.cat([self._features(block) for block in self._blocks(X)])
        if sample_weight is not None:
            root = self._tensor(sample_weight).sqrt()[:, None]
            counted = root[:, 0] > 0
            A, Y = (root * A)[counted], (root * Y)[counted]
        W, self.rank_ = least_norm(A, Y.to(A.dtype), self.alpha)
        coef = W.T.cpu().numpy()
        self.coef_ = coef[0] if y.ndim == 1 else coef

    def _targets(self, y: np.ndarray) -> Tensor:
        return self._tensor(numeric_target(self, y).astype(np.float64).reshape(len(y), -1))

    def _draw(self, inputs: int, count: int) -> Tensor:
        """Draw frequencies, (M, D), block by block."""
        seed, scale = seed_from(self.random_state), self.length_scale
        blocks = [
            draw_frequencies(inputs, BLOCK, length_scale=scale, generator=generator(seed, block))
            for block in range(-(-count // BLOCK))
        ]
        return torch.cat(blocks)[:count]

    def _features(self, X: Tensor) -> Tensor:
        """Return phi of float64 rows, (N, F)."""
        frequencies = torch.as_tensor(self.frequencies_, device=X.device)
        return waves(X, frequencies, self.coding) / len(frequencies) ** 0.5

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) of each row, (N,) or (N, T), in float64."""
        check_is_fitted(self, "coef_")
        found = []
        for block in self._blocks(self._matrix(X)):
            coef = torch.as_tensor(self.coef_.T, device=block.device)
            found += [self._features(rows) @ coef for rows in block.split(ROWS)]
        return torch.cat(found).real.cpu().numpy()

    def _blocks(self, X: Any) -> Iterator[Tensor]:
        """Yield checked rows in float64: all at once, or blocks of a sparse matrix."""
        for part in dense_blocks(X) if issparse(X) else [X]:
            yield self._tensor(part).double()

    def sweep(self, X: Any, y: Any, X_test: Any, y_test: Any, *, sizes: Sequence[int]) -> Sweep:
        """Fit with every number of frequencies in ``sizes`` and return the errors.

        The features of smaller models are the first ones of larger, so all sizes share their
        matrices and each costs one Cholesky factor, O(min(N, F)^3 / 3). With more than 1,024 rows,
        a system too close to singular gets a penalty of the size of rounding. The fitted attributes
        stay as they are.
        """
        check_parameters(self)
        sizes = self._rising(sizes)
        fresh = clone(self)  # learns the names and number of features, and is thrown away
        X = torch.cat(list(self._blocks(fresh._matrix(X, reset=True))))
        X_test = torch.cat(list(self._blocks(fresh._matrix(X_test))))
        targets = [
            self._targets(check_target(self, rows, part))
            for rows, part in ((X, y), (X_test, y_test))
        ]
        frequencies = self._draw(X.shape[1], sizes[-1]).to(X.device)
        problem = Problem(X, targets[0], X_test, frequencies, self.coding, self.alpha)
        return sweep(problem, targets[1], sizes)

    def _rising(self, sizes: Sequence[int]) -> list[int]:
        found, whole = list(sizes), Interval(1, whole=True)
        rises = all(a < b for a, b in itertools.pairwise(found))
        if not found or not all(whole.holds(m) for m in found) or not rises:
            raise InvalidParameter(
                "RandomFeatureRegression.sweep: `sizes` must be positive whole numbers in rising "
                f"order; got {shorten(found)}."
            )
        return [int(m) for m in found]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
