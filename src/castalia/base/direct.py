"""Estimators that are fitted without gradients: they skip the loop and keep the contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from castalia.base.direct_descent import loop_settings
from castalia.base.input_checks import (
    check_matrix,
    check_target,
    check_weight,
    is_frame,
    split_target,
)
from castalia.base.parameter_docs import PlainSignature, document, html_diagram
from castalia.base.params import RandomState, check_parameters, parameter_names
from castalia.base.watched import Watched, without_record
from castalia.protocols import Spec
from castalia.utils.devices import resolve_device
from castalia.utils.plain_torch import plain_torch
from castalia.utils.shared_arrays import shared_tensor

__all__ = ["DirectEstimator"]


@dataclass(kw_only=True, eq=False, repr=False)
class DirectEstimator(BaseEstimator):
    """Base of fits by a closed form, a count or an update rule.

    A subclass gives ``_solve(X, y, sample_weight)``, which sets the fitted attributes. ``module_``
    may be among them.

    Parameters
    ----------
    device
        Where the arithmetic runs: ``"auto"`` takes a GPU when there is one.
    random_state
        Seed, for those that draw numbers.
    """

    _get_param_names: ClassVar[Any] = classmethod(parameter_names)  # type: ignore[arg-type]
    diagnosis_: ClassVar[Any] = Watched()
    __signature__: ClassVar[Any] = PlainSignature()
    _html_repr: ClassVar[Any] = html_diagram
    _unsaved: ClassVar[tuple[str, ...]] = ()
    _sparse: ClassVar[bool] = False  # whether scipy's sparse matrices will do

    device: str = "auto"
    random_state: Annotated[Any, RandomState()] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        document(cls)

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        """Set the fitted attributes from checked data: X an array, a tensor or CSR."""
        raise NotImplementedError

    def _network(self, spec: Spec) -> nn.Module:
        """Rebuild the module of a saved estimator, where it has one."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit on rows X and targets y.

        Parameters
        ----------
        X
            Array, frame, ``castalia.data.Dataset`` or tensor of numbers; where the method can use
            it, a scipy sparse matrix.
        y
            Targets, where the method needs them.
        sample_weight
            How often each row counts.

        Returns
        -------
        self
        """
        check_parameters(self)
        wanted = self._wants_target()
        X, y = split_target(X, y) if wanted else (X, None)
        X = self._matrix(X, reset=True)
        weight = check_weight(self, X, sample_weight)
        with plain_torch():
            self._solve(X, check_target(self, X, y) if wanted else None, weight)
        return self

    def set_params(self, **params: Any) -> DirectEstimator:
        """Set parameters; ``training__clip`` works from the default ``training=None`` too."""
        nested = any(name.startswith("training__") for name in params)
        if nested and "training" not in params and getattr(self, "training", 0) is None:
            params = {"training": loop_settings(None, self.device), **params}
        return super().set_params(**params)

    def _wants_target(self) -> bool:
        return bool(self.__sklearn_tags__().target_tags.required)

    def _matrix(self, X: Any, *, reset: bool = False) -> Any:
        """Check rows: those of ``fit`` with ``reset``, later ones against them."""
        return check_matrix(self, self._encoded(X, reset=reset), reset=reset, sparse=self._sparse)

    def _encoded(self, X: Any, *, reset: bool) -> Any:
        """Turn a table into numbers, where the model was made on such: it has an ``adapter_``."""
        if reset and hasattr(self, "adapter_"):
            del self.adapter_
        adapter = getattr(self, "adapter_", None)
        return adapter.matrix(X) if adapter is not None and is_frame(X) else X

    def _tensor(self, X: Any) -> Tensor:
        """Put checked dense rows on the device."""
        device = resolve_device(self.device)
        if device.type == "mps":  # it has no float64, and direct solvers need one
            device = torch.device("cpu")
        return (X if isinstance(X, Tensor) else shared_tensor(X)).to(device)

    def __getstate__(self) -> dict[str, Any]:
        return without_record(super().__getstate__())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        return tags
