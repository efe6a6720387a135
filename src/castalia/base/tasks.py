"""Tasks: how targets become tensors, and outputs become predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from castalia.base.params import OneOf
from castalia.data.tables.column_moments import spans
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.shared_arrays import shared_tensor

__all__ = ["Classifier", "Regressor", "Target", "encode_classes", "numeric_target"]


@dataclass(frozen=True)
class Target:
    """Encoded targets.

    Attributes
    ----------
    y
        Tensor with one row per sample.
    outputs
        Number of network outputs they call for.
    weight
        Row weights after class weights, or None.
    labels
        Class numbers to stratify a split by, or None.
    """

    y: Tensor
    outputs: int
    weight: np.ndarray | None
    labels: np.ndarray | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(ClassifierMixin):
    """Exclusive classes, or several yes/no labels at once.

    Parameters
    ----------
    class_weight
        None, ``"balanced"``, or a dict from class to weight; multiplies the sample weights.
    calibrate
        Fit one temperature on the validation rows after training, so that confidence matches
        accuracy.
    """

    class_weight: Any = None
    calibrate: Annotated[bool, OneOf(True, False)] = False

    def _encode_target(self, y: np.ndarray, weight: np.ndarray | None) -> Target:
        if y.ndim == 2:
            check_classification_targets(y)
        self.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if self.multilabel_:
            if type_of_target(y) != "multilabel-indicator":
                raise InvalidData(
                    f"{type(self).__name__}: a y of two dimensions must hold only 0 and 1 (one "
                    "column a label); "
                    f"got values {np.unique(y)[:5].tolist()}. Fit one classifier a column instead."
                )
            if self.class_weight is not None:
                raise InvalidParameter(
                    f"{type(self).__name__}: `class_weight` must be None for several labels; got "
                    f"{self.class_weight!r}. It needs exclusive classes; use `sample_weight`."
                )
            self.classes_ = np.arange(y.shape[1])
            return Target(torch.from_numpy(y.astype(np.float64)), y.shape[1], weight)
        self.classes_, codes = encode_classes(self, y)
        return Target(
            torch.from_numpy(codes), len(self.classes_), self._class_weights(codes, weight), codes
        )

    def _reencode_target(self, y: np.ndarray) -> Target:
        """Encode further targets with the classes already learnt."""
        if self.multilabel_:
            return Target(shared_tensor(np.asarray(y, dtype=np.float64)), len(self.classes_), None)
        known = np.isin(y, self.classes_)
        if not known.all():
            raise InvalidData(
                f"{type(self).__name__}: the validation target must hold only classes seen in "
                "training; "
                f"got {y[~known].tolist()[0]!r}."
            )
        return Target(torch.from_numpy(np.searchsorted(self.classes_, y)), len(self.classes_), None)

    def _class_weights(self, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        if self.class_weight is None:
            return weight
        setting = self.class_weight
        if isinstance(setting, dict):
            unknown = [label for label in setting if label not in self.classes_]
            if unknown:
                raise InvalidParameter(
                    f"{type(self).__name__}: `class_weight` must name classes of y; got "
                    f"{unknown[0]!r}, "
                    f"which is not one of {self.classes_.tolist()[:10]}."
                )
            per_class = np.array(
                [float(setting.get(label, 1.0)) for label in self.classes_.tolist()]
            )
        elif setting == "balanced":
            per_class = compute_class_weight(
                "balanced", classes=np.arange(len(self.classes_)), y=codes, sample_weight=weight
            )
        else:
            raise InvalidParameter(
                f"{type(self).__name__}: `class_weight` must be None, 'balanced' or a dict; got "
                f"{setting!r}."
            )
        return per_class[codes] * (1.0 if weight is None else weight)

    def _after_fit(self, outputs: Tensor | None, targets: Tensor | None) -> None:
        """Learn the temperature and the spread of confidence from the validation rows."""
        self.temperature_ = 1.0
        self.confidence_ = None
        if outputs is None or targets is None:
            if self.calibrate:
                raise InvalidParameter(
                    f"{type(self).__name__}: `calibrate=True` needs validation rows; got none. "
                    "Give more rows or set Training(validation=…)."
                )
            return
        if self.calibrate:
            self.temperature_ = fit_temperature(outputs, targets)
        confidence = self._probability(outputs).amax(dim=1).double().numpy()
        self.confidence_ = np.quantile(confidence, np.linspace(0, 1, 101))

    def _probability(self, outputs: Tensor) -> Tensor:
        scaled = outputs / self.temperature_ if self.temperature_ != 1.0 else outputs
        return torch.sigmoid(scaled) if self.multilabel_ else torch.softmax(scaled, dim=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class (or label) for each row.

        Parameters
        ----------
        X
            Rows.
        """
        return self._probability(self._outputs(X)).numpy()  # type: ignore[attr-defined]

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, or the 0/1 matrix of labels.

        Parameters
        ----------
        X
            Rows.
        """
        outputs = self._outputs(X)  # type: ignore[attr-defined]
        if self.multilabel_:
            return (outputs > 0).numpy().astype(int)
        return self.classes_[outputs.argmax(dim=1).numpy()]

    def abstain(self, X: Any, coverage: float = 0.9) -> np.ma.MaskedArray:
        """Predict, but leave out the rows one is least sure of.

        The threshold is the confidence that keeps ``coverage`` of the validation rows; without
        validation rows it is taken from X itself.

        Parameters
        ----------
        X
            Rows.
        coverage
            Share of rows to answer, above 0 and at most 1.

        Returns
        -------
        numpy.ma.MaskedArray
            Predictions; the abstentions are masked.
        """
        if not 0 < coverage <= 1:
            raise InvalidParameter(
                f"abstain: `coverage` must be above 0 and at most 1; got {coverage!r}."
            )
        probability = self.predict_proba(X)
        if self.multilabel_:
            raise InvalidParameter(
                "abstain: needs exclusive classes; this classifier was fitted on several labels."
            )
        confidence = probability.max(axis=1)
        known = confidence if self.confidence_ is None else self.confidence_
        threshold = np.quantile(known, 1 - coverage)
        return np.ma.array(self.classes_[probability.argmax(axis=1)], mask=confidence < threshold)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def encode_classes(owner: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of exclusive labels, two or more, and each row's class number."""
    labels = column_or_1d(y, warn=True)
    try:
        classes, codes = _class_codes(labels)
    except TypeError as error:
        kinds = " and ".join(sorted({type(label).__name__ for label in labels}))
        raise InvalidData(
            f"{type(owner).__name__}: the target must hold labels of one type; got {kinds}. Turn "
            "them all into words, say."
        ) from error
    if len(classes) < 2:
        raise InvalidData(
            f"{type(owner).__name__}: the target must hold two classes or more; got one class, "
            f"{classes.tolist()[0]!r}. There is nothing to tell apart."
        )
    return classes, codes


def _class_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes and each row's class number, a chunk at a time: y may be very long."""
    chunks = [y[span] for span in spans(len(y))]
    classes = np.unique(np.concatenate([np.unique(chunk) for chunk in chunks]))
    check_classification_targets(classes if y.dtype.kind == "f" else y[: len(chunks[0])])
    codes = np.empty(len(y), dtype=np.int64)
    for span, chunk in zip(spans(len(y)), chunks, strict=True):
        codes[span] = np.searchsorted(classes, chunk)
    return classes, codes


def fit_temperature(outputs: Tensor, targets: Tensor) -> float:
    """Return the temperature T that minimises the loss of ``outputs / T``.

    The loss is convex in 1/T, so a bounded search in log T finds it (2017, Guo et al., On
    calibration of modern neural networks, arXiv 1706.04599).
    """
    from scipy.optimize import minimize_scalar

    logits = outputs.double()

    def loss(log_t: float) -> float:
        scaled = logits / np.exp(log_t)
        if targets.ndim == 2:
            return float(F.binary_cross_entropy_with_logits(scaled, targets.double()))
        return float(F.cross_entropy(scaled, targets))

    return float(np.exp(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded").x))


@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(RegressorMixin):
    """One number a row, or several."""

    def _encode_target(self, y: np.ndarray, weight: np.ndarray | None) -> Target:
        values = numeric_target(self, y)
        self.one_target_ = y.ndim == 1
        values = values.reshape(len(y), -1)
        self.target_mean_ = np.average(values, axis=0, weights=weight)
        spread = np.sqrt(np.average((values - self.target_mean_) ** 2, axis=0, weights=weight))
        self.target_scale_ = np.where(spread > 0, spread, 1.0)
        scaled = (values - self.target_mean_) / self.target_scale_
        return Target(torch.from_numpy(scaled), values.shape[1], weight)

    def _after_fit(self, outputs: Tensor | None, targets: Tensor | None) -> None:
        """Nothing to learn from the validation rows."""

    def _reencode_target(self, y: np.ndarray) -> Target:
        """Encode further targets with the scale already learnt."""
        values = numeric_target(self, y).reshape(len(y), -1)
        return Target(
            torch.from_numpy((values - self.target_mean_) / self.target_scale_),
            values.shape[1],
            None,
        )

    def _unscale(self, values: np.ndarray) -> np.ndarray:
        values = values * self.target_scale_ + self.target_mean_
        return values[:, 0] if self.one_target_ else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number(s) of each row.

        Parameters
        ----------
        X
            Rows.
        """
        return self._unscale(self._outputs(X).numpy().astype(np.float64))  # type: ignore[attr-defined]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def numeric_target(owner: Any, y: np.ndarray) -> np.ndarray:
    """Return y as float64, one or two dimensions, or say what in it is no number."""
    if y.ndim > 2:
        raise InvalidData(
            f"{type(owner).__name__}: y must have one or two dimensions; got shape {y.shape}."
        )
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{type(owner).__name__}: the target of a regression must hold numbers; got "
            f"{y.ravel().tolist()[0]!r}. "
            "Use a classifier for words."
        ) from error
