"""Principal components: the best linear code, and the optimum of the linear autoencoder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.utils.seeds import generator, seed_from

__all__ = ["PCA"]

OVERSAMPLED, ROUNDS = 10, 4  # columns and power iterations beyond what is wanted
STREAM = 2**21  # numbers the seed of sampling apart from that of the fit


@dataclass(kw_only=True, eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DirectEstimator):
    """Principal component analysis.

    X - mean = U S V^T; codes are the coordinates on the first K columns of V, the directions of
    largest variance. The error of what comes back, ||X - X V V^T||^2, is the sum of the squared
    singular values left out, and no other linear code of width K has a smaller one (Eckart, Young).
    As a density it is the probabilistic PCA of Tipping and Bishop: N(mean, V L V^T + s^2 I).

    Parameters
    ----------
    components
        Width K of the code; None: as many as there are columns or rows.
    solver
        ``"full"``: exact, by singular values; ``"covariance"``: exact, by the D x D covariance, for
        many rows of few columns; ``"randomized"``: a random projection that is refined by power
        iterations; ``"auto"``: the covariance where rows are many and columns at most 1,000, the
        random projection for a small part of many columns, otherwise the exact one.
    whiten
        Whether codes are divided by their deviations.

    Attributes
    ----------
    components_ : ndarray (K, D)
        Directions, those of largest variance first.
    mean_ : ndarray (D,)
        Means of the columns.
    explained_variance_, explained_variance_ratio_ : ndarray (K,)
        Variance along each direction, and its share of all.
    singular_values_ : ndarray (K,)
        Of the centred rows.
    noise_variance_ : float
        Mean variance of the directions left out.
    n_samples_ : int
        Rows seen.
    products_ : ndarray (D, D)
        After ``partial_fit``: sum of the products of the centred rows seen so far.

    Shapes
    ------
    X (n, D): an array, a frame, or a tensor on any device; codes (n, K).

    Notes
    -----
    O(n D^2) by the covariance, O(n D K) at random. ``partial_fit`` adds rows to sums of products,
    so tables larger than memory need D^2 numbers. Signs are scikit-learn's: the largest entry of a
    component is positive.

    References
    ----------
    1933, Hotelling, Analysis of a complex of statistical variables. 1936, Eckart, Young. 1999,
    Tipping, Bishop, Probabilistic principal component analysis. 2011, Halko, Martinsson, Tropp,
    Finding structure with randomness, arXiv 0909.4061.

    See Also
    --------
    LinearAutoencoder : finds the same space by gradients.
    Autoencoder : codes that are not linear.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    >>> model = PCA(components=1).fit(X)
    >>> model.explained_variance_ratio_.round(6).tolist()
    [1.0]
    >>> np.allclose(model.inverse_transform(model.transform(X)), X)
    True
    """

    components: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    solver: Annotated[str, OneOf("auto", "full", "covariance", "randomized")] = "auto"
    whiten: Annotated[bool, OneOf(True, False)] = False

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        x = self._tensor(X)
        n, d = x.shape
        k = self._width(n, d)
        self.n_samples_ = n
        self.__dict__.pop("products_", None)
        solver = self._chosen(n, d, k)
        if sample_weight is not None:
            weight = torch.from_numpy(sample_weight).to(x)
            total = float(weight.sum())
            self.n_samples_ = round(total)
            self._from_products(*_weighted(x, weight), total, k)
            return
        mean = x.mean(dim=0)
        centred = x - mean
        if solver == "covariance":
            self._from_products(mean, centred.T @ centred, float(n), k)
            return
        find = _randomized if solver == "randomized" else _singular
        values, directions = find(centred, k, seed_from(self.random_state))
        variance = float(centred.square().sum()) / max(1, n - 1)
        self._keep(mean, values.square() / max(1, n - 1), directions, variance, min(n, d))

    def partial_fit(self, X: Any, y: Any = None) -> PCA:
        """Add rows to those seen so far, and find the components of all of them.

        Returns
        -------
        self
        """
        first = not hasattr(self, "products_")
        x = self._tensor(self._matrix(X, reset=first)).double()
        own = x.mean(dim=0)
        mean, products, n, more = own, x.new_zeros(2 * x.shape[1:]), 0, len(x)
        if not first:
            mean, products = (torch.from_numpy(a).to(x) for a in (self.mean_, self.products_))
            n = self.n_samples_
        apart = (own - mean)[:, None]
        centred = x - own
        products = products + centred.T @ centred + apart @ apart.T * (n * more / (n + more))
        mean = mean + (own - mean) * (more / (n + more))
        self.n_samples_ = n + more
        self.products_: np.ndarray = products.cpu().numpy()
        self._from_products(mean, products, float(n + more), self._width(n + more, x.shape[1]))
        return self

    def _width(self, n: int, d: int) -> int:
        if self.components is not None and self.components > min(n, d):
            raise InvalidParameter(
                f"PCA: `components` must be at most {min(n, d)}, the smaller of rows and columns; "
                f"got {self.components} with n_samples = {n} and {d} columns."
            )
        return min(n, d) if self.components is None else self.components

    def _chosen(self, n: int, d: int, k: int) -> str:
        if self.solver != "auto":
            return self.solver
        if d <= 1000 and n >= 10 * d:
            return "covariance"
        return "randomized" if min(n, d) > 500 and k < 0.2 * min(n, d) else "full"

    def _from_products(self, mean: Tensor, products: Tensor, n: float, k: int) -> None:
        variances, directions = torch.linalg.eigh(products.double() / max(1.0, n - 1))
        variances, directions = variances.flip(0).clamp_min(0), directions.flip(1).T
        rank = min(int(n), len(variances))
        self._keep(mean, variances[:k], directions[:k], float(variances.sum()), rank)

    def _keep(
        self, mean: Tensor, variances: Tensor, directions: Tensor, total: float, rank: int
    ) -> None:
        """Keep what was found, with the signs that make each largest entry positive."""
        largest = directions.abs().argmax(dim=1, keepdim=True)
        directions = directions * directions.gather(1, largest).sign()
        k, d = directions.shape
        self.mean_, self.components_ = mean.cpu().numpy(), directions.to(mean.dtype).cpu().numpy()
        self.explained_variance_ = variances.to(mean.dtype).cpu().numpy()
        self.explained_variance_ratio_ = self.explained_variance_ / max(total, 1e-300)
        self.singular_values_ = np.sqrt(self.explained_variance_ * max(1, self.n_samples_ - 1))
        left = max(0.0, total - float(variances.sum()))
        self.noise_variance_ = left / (rank - k) if rank > k else 0.0

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _arrays(self, X: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows, mean and components on one device."""
        check_is_fitted(self, "components_")
        x = self._tensor(self._matrix(X))
        return x, torch.as_tensor(self.mean_).to(x), torch.as_tensor(self.components_).to(x)

    def _deviation(self) -> np.ndarray:
        return np.sqrt(self.explained_variance_) if self.whiten else np.ones(1)

    def transform(self, X: Any) -> np.ndarray:
        """Return the code of each row, (n, K)."""
        x, mean, components = self._arrays(X)
        codes = ((x - mean) @ components.T).cpu().numpy()
        return codes / self._deviation().astype(codes.dtype).clip(1e-12)

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Return the rows of codes, (n, D)."""
        check_is_fitted(self, "components_")
        codes = np.asarray(Z)
        if codes.ndim != 2 or codes.shape[1] != len(self.components_):
            raise ShapeMismatch(
                f"PCA.inverse_transform: codes must have shape (n, {len(self.components_)}); got "
                f"{codes.shape}."
            )
        return (codes * self._deviation()) @ self.components_ + self.mean_

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log p(x) of each row by probabilistic PCA, (n,)."""
        x, mean, components = (part.double() for part in self._arrays(X))
        (k, d), noise = components.shape, self.noise_variance_
        if k < d and noise <= 0:
            raise InvalidData(
                "PCA.score_samples: the rows lie in a space of fewer dimensions and have no "
                "density. Use fewer `components`."
            )
        centred = x - mean
        codes = centred @ components.T  # (n, K)
        variances = torch.as_tensor(self.explained_variance_).to(centred).clamp_min(1e-300)
        distance = (codes.square() / variances).sum(dim=1)
        logs = float(variances.log().sum())
        if k < d:
            rest = (centred.square().sum(dim=1) - codes.square().sum(dim=1)).clamp_min(0)
            distance, logs = distance + rest / noise, logs + (d - k) * math.log(noise)
        return (-(distance + logs + d * math.log(2 * math.pi)) / 2).cpu().numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of log p(x) over the rows."""
        return float(self.score_samples(X).mean())

    def sample(self, n: int = 1) -> np.ndarray:
        """Draw rows of N(mean, V L V^T + s^2 I), (n, D), by ``random_state``."""
        check_is_fitted(self, "components_")
        random = generator(seed_from(self.random_state), STREAM)
        k, d = self.components_.shape
        code = torch.randn(n, k, dtype=torch.float64, generator=random).numpy()
        rest = torch.randn(n, d, dtype=torch.float64, generator=random).numpy()
        variances = np.maximum(self.explained_variance_ - self.noise_variance_, 0)
        drawn = code * np.sqrt(variances) @ self.components_
        return self.mean_ + drawn + math.sqrt(self.noise_variance_) * rest

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _weighted(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the sum of products of rows that count by their weights."""
    mean = weight @ x / weight.sum()
    centred = x - mean
    return mean, (weight[:, None] * centred).T @ centred


def _singular(x: Tensor, k: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return the largest singular values and right vectors."""
    _, values, directions = torch.linalg.svd(x, full_matrices=False)
    return values[:k], directions[:k]


def _randomized(x: Tensor, k: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return them nearly: of the rows' projection on a random space, refined (Halko et al.)."""
    width = min(k + OVERSAMPLED, *x.shape)
    start = torch.randn(x.shape[1], width, generator=generator(seed)).to(x)
    basis = torch.linalg.qr(x @ start)[0]
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(x @ torch.linalg.qr(x.T @ basis)[0])[0]
    _, values, directions = torch.linalg.svd(basis.T @ x, full_matrices=False)
    return values[:k], directions[:k]
