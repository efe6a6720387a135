"""Random Fourier features as a transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval
from castalia.nn import FourierFeatures, draw_frequencies, fourier_features
from castalia.utils.seeds import generator, seed_from

__all__ = ["RandomFourierFeatures"]


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DirectEstimator):
    """Random waves of the inputs, whose inner products tend to the Gaussian kernel.

    phi(x) = (cos v_m.x, sin v_m.x) / sqrt(M) with v_m ~ N(0, I / length_scale^2). A linear model on
    phi approximates a kernel machine at the cost of a linear one.

    Parameters
    ----------
    n_frequencies
        Number M of random frequencies; there are 2 M features. The error of the kernel falls as
        1 / sqrt(M).
    length_scale
        Width l of the kernel exp(-|x - z|^2 / (2 l^2)); larger is smoother.

    Attributes
    ----------
    frequencies_ : ndarray of shape (M, D)
        The frequencies v.

    Shapes
    ------
    X (N, D) dense or sparse; the features (N, 2 M), cosines first, a tensor where X was one.

    Notes
    -----
    Every feature vector has length one. ``score`` says how well the kernel is met on given rows.

    References
    ----------
    2007, Rahimi, Recht, Random features for large-scale kernel machines, NeurIPS 20.

    See Also
    --------
    castalia.BasisRegression : fixed functions, for one or two features.

    Examples
    --------
    >>> maps = RandomFourierFeatures(n_frequencies=500, random_state=0).fit([[0.0], [1.0]])
    >>> phi = maps.transform([[0.0], [1.0]])
    >>> phi.shape, bool(abs(phi[0] @ phi[1] - np.exp(-0.5)) < 0.05)
    ((2, 1000), True)
    """

    _sparse: ClassVar[bool] = True

    n_frequencies: Annotated[int, Interval(1, whole=True)] = 100
    length_scale: Annotated[float, Interval(0, closed="neither")] = 1.0

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        drawn = draw_frequencies(
            X.shape[1],
            self.n_frequencies,
            length_scale=self.length_scale,
            generator=generator(seed_from(self.random_state)),
        )
        self.frequencies_ = drawn.numpy()

    def transform(self, X: Any) -> Any:
        """Return cosines and sines of each row, (N, 2 M)."""
        check_is_fitted(self, "frequencies_")
        X = self._matrix(X)
        if isinstance(X, Tensor):
            return fourier_features(X, torch.from_numpy(self.frequencies_).to(X))
        v = self.frequencies_.astype(X.dtype)
        phase = X @ v.T  # (N, M)
        found = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
        return found / np.sqrt(len(v), dtype=X.dtype)

    def score(self, X: Any, y: Any = None) -> float:
        """Return R^2 of the approximate kernel matrix against the Gaussian one, O(N^2)."""
        phi = np.asarray(torch.as_tensor(self.transform(X)).cpu(), dtype=np.float64)
        rows = X.cpu().numpy() if isinstance(X, Tensor) else X if issparse(X) else np.asarray(X)
        exact = rbf_kernel(rows, gamma=0.5 / self.length_scale**2)
        spread = ((exact - exact.mean()) ** 2).sum()
        error = ((phi @ phi.T - exact) ** 2).sum()
        return float(1 - error / spread) if spread > 0 else float(error == 0)

    @property
    def module_(self) -> FourierFeatures:
        """The map as a torch module, a fresh copy."""
        check_is_fitted(self, "frequencies_")
        return FourierFeatures(torch.from_numpy(self.frequencies_.copy()))

    @property
    def _n_features_out(self) -> int:
        return 2 * len(self.frequencies_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
