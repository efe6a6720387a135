"""What every model of whole rows shares: tables or images in, tables or images out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Estimator, NoTarget, Target, TargetCodec
from castalia.base.input_checks import check_target, n_rows
from castalia.data.images import Images
from castalia.data.row_adapter import RowAdapter
from castalia.errors import InvalidData, InvalidParameter
from castalia.objectives import (
    LevelLikelihood,
    LogisticLikelihood,
    MixedLikelihood,
    RowLikelihood,
)
from castalia.protocols import Spec
from castalia.train import step_work
from castalia.utils.devices import cpu_scope, forked_threads
from castalia.utils.text import listing

__all__ = ["LIKELIHOODS", "RowCodec", "RowEstimator", "row_likelihood", "row_width"]

LIKELIHOODS = ("auto", "gaussian", "bernoulli", "logistic", "categorical")
GREY = ("auto", "bernoulli", "logistic", "categorical")  # of pixels between 0 and 1
ROWS = 1024  # of images whose values are checked together


def row_width(spec: Spec) -> int:
    """Return how many numbers a row has."""
    size = spec.extra.get("size") or (1, 1)
    return int(spec.inputs * size[0] * size[1])


def row_likelihood(
    name: str, spec: Spec, *, spread: bool = False, owner: str = "castalia"
) -> RowLikelihood:
    """Return the distribution of a row by its name; columns of a table have their own.

    Parameters
    ----------
    name
        ``"gaussian"``, ``"bernoulli"``, ``"logistic"`` or ``"categorical"`` for images,
        ``"gaussian"`` or ``"auto"`` for tables.
    spec
        What is known of rows.
    spread
        Whether deviations of numbers are learnt; otherwise they are 1.
    owner
        Who asks, for messages.
    """
    width = row_width(spec)
    if not spec.extra.get("size"):
        if name not in ("auto", "gaussian"):
            raise InvalidParameter(
                f"{owner}: `likelihood` must be 'auto' for tables, whose columns each have their "
                f"own; got {name!r}. Flat images become images by X.reshape(-1, height, width)."
            )
        numbers, missing = spec.extra["numbers"], spec.extra["missing"]
        return MixedLikelihood(
            numbers, len(missing), spec.categories, missing=missing, spread=spread
        )
    if name == "gaussian":
        return MixedLikelihood(width, spread=spread)
    if name == "logistic":
        return LogisticLikelihood(width)
    return LevelLikelihood(width) if name == "categorical" else MixedLikelihood(0, width, unit=True)


class RowCodec(TargetCodec):
    """No targets, or the classes that a conditional model is given; learns ``classes_``."""

    required = False

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return the labels, or zeros; refuse a single row and values outside the support."""
        name = type(est).__name__
        if n_rows(X) < 2:
            raise InvalidData(f"{name}: there must be at least 2 rows to learn from; got 1 sample.")
        if isinstance(X, Images):
            _check_values(est, X, name)
        if not getattr(est, "conditional", False):
            if getattr(est, "unlabelled", None) is not None:
                raise InvalidParameter(
                    f"{name}: `unlabelled` must be None without conditional=True; got "
                    f"{est.unlabelled!r}."
                )
            return NoTarget().check(est, adapter, X, y)
        if y is None:
            raise InvalidData(
                f"{name}: y must hold a class for each row with conditional=True; got None. Give "
                "labels, or set conditional=False."
            )
        return check_target(est, X, y)

    def fit(
        self, est: Any, adapter: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn the classes."""
        if getattr(est, "conditional", False):
            est.classes_ = np.unique(y[known_labels(est, y)])
            if not len(est.classes_):
                raise InvalidData(
                    f"{type(est).__name__}: some rows must have a class; all labels are "
                    f"{est.unlabelled!r}, which means that they are unknown."
                )
        return super().fit(est, adapter, X, y, weight)

    def encode(self, est: Any, y: Any) -> Target:
        """Return class numbers."""
        if not getattr(est, "conditional", False):
            return Target(torch.from_numpy(np.asarray(y)), 0)
        known, labels = known_labels(est, y), np.asarray(y).reshape(-1)
        numbers = torch.full((len(labels),), -1)
        numbers[torch.from_numpy(known)] = class_numbers(est, labels[known])
        return Target(numbers, len(est.classes_))


def known_labels(est: Any, y: Any) -> np.ndarray:
    """Return which labels are classes, (n,): those that are not ``unlabelled``."""
    labels, unknown = np.asarray(y).reshape(-1), getattr(est, "unlabelled", None)
    if unknown is None:
        return np.ones(len(labels), dtype=bool)
    found: np.ndarray = labels != unknown
    return found


def class_numbers(est: Any, y: Any) -> Tensor:
    """Return the places of labels among the classes, or say which label is none."""
    labels = np.asarray(y).reshape(-1)
    places = np.searchsorted(est.classes_, labels).clip(0, len(est.classes_) - 1)
    wrong = est.classes_[places] != labels
    if wrong.any():
        raise InvalidData(
            f"{type(est).__name__}: y must be of the classes of fit, "
            f"{listing(est.classes_.tolist(), 'and', 10)}; got {labels[wrong].tolist()[0]!r}."
        )
    return torch.from_numpy(places)


def _check_values(est: Any, X: Images, name: str) -> None:
    """Refuse images with pixels that the model cannot draw or gives no probability."""
    if not (est.grey or getattr(est, "likelihood", "gaussian") in GREY) or X.source.lazy:
        return
    size = (int(X.sizes[0, 0]), int(X.sizes[0, 1]))
    for start in range(0, len(X), ROWS):
        index = np.arange(start, min(start + ROWS, len(X)))
        pixels = X.pixels(index, size, X.channels)
        if pixels.dtype == torch.uint8:
            return
        wrong = ((pixels < 0) | (pixels > 1)).flatten(1)
        if wrong.any():
            image = int(wrong.any(dim=1).nonzero()[0])
            value = float(pixels[image].flatten()[wrong[image]][0])
            remedy = "Scale them." if est.grey else "Scale them, or use likelihood='gaussian'."
            raise InvalidData(
                f"{name}: pixels must be bytes, or numbers between 0 and 1; got {value:g} in image "
                f"{start + image}. {remedy}"
            )


@dataclass(kw_only=True, eq=False, repr=False)
class RowEstimator(Estimator):
    """Base of networks that read and write whole rows."""

    adapter: ClassVar[Any] = RowAdapter
    codec: ClassVar[TargetCodec] = RowCodec()
    grey: ClassVar[bool] = False  # whether pixels are between 0 and 1, whatever the likelihood

    def _each(self, X: Any, function: Callable[[Tensor], Any], rows: int = 0) -> Iterator[Any]:
        """Yield what a function makes of encoded rows, block by block, on the CPU."""
        X = self._checked(X)
        if isinstance(X, Images):
            _check_values(self, X, type(self).__name__)
        parameter = next(self.module_.parameters())
        kind = np.float64 if parameter.dtype == torch.float64 else np.float32
        forked_threads()
        self.module_.eval()
        for block in self.adapter_.blocks(X, kind):
            for part in block.split(rows or len(block)):
                work = step_work(self.module_, self.adapter_.shape, len(part))
                with torch.inference_mode(), cpu_scope(parameter.device, work, wait=False):
                    found = function(part.to(parameter.device)).cpu()
                yield found

    def _values(self, rows: Tensor) -> Any:
        """Return encoded rows in the units and the form of X."""
        return self.adapter_.decode(rows.cpu())

    def _device_tensor(self, values: Any) -> Tensor:
        """Return numbers where the network is, in its format."""
        check_is_fitted(self, "module_")
        parameter = next(self.module_.parameters())
        return torch.as_tensor(np.asarray(values), dtype=parameter.dtype, device=parameter.device)
