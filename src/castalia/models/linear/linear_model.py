"""What linear models share: coefficients, an intercept, and what follows from them.

f(x) = W x + b.  Shapes: N rows, D features, T outputs; W is (T, D), or (D,) for one output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import DirectEstimator, OneOf
from castalia.base.targets import numeric_target
from castalia.models.linear.solvers.design_matrix import Design

__all__ = ["LinearModel", "LinearRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class LinearModel:
    """What models that are linear in their inputs have.

    Parameters
    ----------
    fit_intercept
        Whether there is a constant term b; without it the model passes through the origin.
    """

    _sparse: ClassVar[bool] = True

    fit_intercept: Annotated[bool, OneOf(True, False)] = True

    def _expanded(self, X: Any) -> Any:
        """Return what the model is linear in: the rows themselves, where nothing else is said."""
        return X

    def _outputs(self, X: Any) -> np.ndarray:
        """Return W x + b for each row, (N,) or (N, T)."""
        check_is_fitted(self, "coef_")
        est: Any = self  # with the base that it is mixed into
        X = self._expanded(est._matrix(X))
        if isinstance(X, Tensor):
            weight = torch.as_tensor(est.coef_, device=X.device, dtype=X.dtype)
            found = X @ weight.mT if weight.ndim == 2 else X @ weight
            return found.cpu().numpy() + est.intercept_
        return safe_sparse_dot(X, est.coef_.T) + est.intercept_

    @property
    def module_(self) -> nn.Linear:
        """The model as a torch layer, a fresh copy."""
        check_is_fitted(self, "coef_")
        est: Any = self
        weight = torch.as_tensor(np.atleast_2d(est.coef_))
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype, device="meta")
        bias = np.broadcast_to(est.intercept_, len(weight)).astype(est.coef_.dtype)
        state = {"weight": weight.clone(), "bias": torch.from_numpy(bias.copy())}
        layer.load_state_dict(state, assign=True)
        return layer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegressor(RegressorMixin, LinearModel, DirectEstimator):
    """Base of linear models that predict numbers."""

    def _keep(self, coef: Tensor, design: Design, y: np.ndarray, dtype: Any) -> None:
        """Set ``coef_`` and ``intercept_`` from W (T, D), in the data's precision and shape."""
        intercept = (design.y_mean - coef @ design.x_mean).numpy().astype(dtype)
        weights = coef.numpy().astype(dtype)
        self.coef_ = weights[0] if y.ndim == 1 else weights
        self.intercept_ = intercept[0] if y.ndim == 1 else intercept

    def _design(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Design:
        """Return the least-squares problem of checked data."""
        target = numeric_target(self, y).reshape(len(y), -1)
        return Design(X, target, weight, centre=self.fit_intercept, device=self.device)

    def predict(self, X: Any) -> np.ndarray:
        """Return W x + b for each row."""
        return self._outputs(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
