"""Targets that are classes: exclusive ones, or several yes/no labels at once."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from castalia.base.targets.target_codec import Target, TargetCodec
from castalia.data.tables.column_moments import spans
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.shared_arrays import shared_tensor
from castalia.utils.text import listing

__all__ = ["ClassCodec", "class_weights", "encode_classes", "fit_temperature"]


class ClassCodec(TargetCodec):
    """Learns ``classes_`` and ``multilabel_``, then ``temperature_`` and ``confidence_``."""

    judges: ClassVar[bool] = True

    def fit(
        self, est: Any, adapter: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn the classes, and return each row's number."""
        if y.ndim == 2:
            check_classification_targets(y)
        est.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if est.multilabel_:
            _check_labels(est, y)
            est.classes_ = np.arange(y.shape[1])
            return Target(torch.from_numpy(y.astype(np.float64)), y.shape[1], weight)
        est.classes_, codes = encode_classes(est, y, narrow=getattr(X, "streaming", False))
        return self.coded(est, codes, weight)

    def coded(self, est: Any, codes: np.ndarray, weight: np.ndarray | None) -> Target:
        """Return the targets of class numbers, with the weights of their classes."""
        weights = class_weights(est, codes, weight)
        return Target(torch.from_numpy(codes), len(est.classes_), weights, codes)

    def check_classes(self, est: Any, y: Any, classes: Any, *, first: bool) -> None:
        """Refuse settings that need all rows, and classes that change or are not given."""
        name = type(est).__name__
        for field, wrong in (("class_weight", "balanced"), ("calibrate", True)):
            value = getattr(est, field)
            if isinstance(value, str | bool) and value == wrong:
                raise InvalidParameter(
                    f"{name}.partial_fit: `{field}` must not be {wrong!r}, which needs all rows at "
                    "once."
                )
        if first:
            if classes is None and np.ndim(y) < 2:
                raise InvalidParameter(
                    f"{name}.partial_fit: `classes` must be passed on the first call to "
                    "partial_fit; got None. Give all classes that y will ever hold."
                )
            return
        if classes is None:
            return
        if not np.array_equal(np.unique(classes), est.classes_):
            raise InvalidParameter(
                f"{name}.partial_fit: `classes` must be those of the first call, "
                f"{listing(est.classes_.tolist(), 'and')}; got {np.unique(classes).tolist()}."
            )

    def begin(self, est: Any, y: np.ndarray, weight: np.ndarray | None, classes: Any) -> Target:
        """Take the classes as given, and return each row's number."""
        est.multilabel_ = False
        est.classes_, _ = encode_classes(est, np.asarray(classes))
        return self.more(est, y, weight)

    def more(self, est: Any, y: np.ndarray, weight: np.ndarray | None) -> Target:
        """Encode further targets, with the weights of their classes."""
        if est.multilabel_:
            return super().more(est, y, weight)
        return self.coded(est, self.encode(est, column_or_1d(y, warn=True)).y.numpy(), weight)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Encode further targets with the classes already learnt."""
        if est.multilabel_:
            return Target(shared_tensor(np.asarray(y, dtype=np.float64)), len(est.classes_))
        known = np.isin(y, est.classes_)
        if not known.all():
            raise InvalidData(
                f"{type(est).__name__}: further targets must hold only classes seen in training; "
                f"got {y[~known].tolist()[0]!r}."
            )
        return Target(torch.from_numpy(np.searchsorted(est.classes_, y)), len(est.classes_))

    def conclude(self, est: Any, outputs: Tensor | None, targets: Tensor | None) -> None:
        """Learn the temperature and the spread of confidence from the validation rows."""
        est.temperature_, est.confidence_ = 1.0, None
        if outputs is None or targets is None:
            if est.calibrate:
                raise InvalidParameter(
                    f"{type(est).__name__}: `calibrate=True` needs validation rows; got none. "
                    "Give more rows or set Training(validation=…)."
                )
            return
        if est.calibrate:
            est.temperature_ = fit_temperature(outputs, targets)
        confidence = self.probability(est, outputs).amax(dim=1).double().numpy()
        est.confidence_ = np.quantile(confidence, np.linspace(0, 1, 101))

    def probability(self, est: Any, outputs: Tensor) -> Tensor:
        """Return the probability of each class or label, (N, K)."""
        scaled = outputs / est.temperature_ if est.temperature_ != 1.0 else outputs
        return torch.sigmoid(scaled) if est.multilabel_ else torch.softmax(scaled, dim=1)

    def decode(self, est: Any, outputs: Tensor) -> np.ndarray:
        """Return the most probable classes, or the 0/1 matrix of labels."""
        if est.multilabel_:
            return (outputs > 0).numpy().astype(int)
        found: np.ndarray = est.classes_[outputs.argmax(dim=1).numpy()]
        return found


def _check_labels(est: Any, y: np.ndarray) -> None:
    """Refuse what is no matrix of 0 and 1, and class weights for it."""
    if type_of_target(y) != "multilabel-indicator":
        raise InvalidData(
            f"{type(est).__name__}: a y of two dimensions must hold only 0 and 1 (one "
            "column a label); "
            f"got values {np.unique(y)[:5].tolist()}. Fit one classifier a column instead."
        )
    if est.class_weight is not None:
        raise InvalidParameter(
            f"{type(est).__name__}: `class_weight` must be None for several labels; got "
            f"{est.class_weight!r}. It needs exclusive classes; use `sample_weight`."
        )


def class_weights(
    est: Any, codes: np.ndarray, weight: np.ndarray | None, *, ones: bool = False
) -> Any:
    """Return row weights times the weights of the rows' classes; None or ones without any."""
    weight = np.ones(len(codes)) if ones and weight is None else weight
    setting, name = est.class_weight, type(est).__name__
    if setting is None:
        return weight
    if setting == "balanced":
        numbers = np.arange(len(est.classes_))
        each = compute_class_weight("balanced", classes=numbers, y=codes, sample_weight=weight)
    elif isinstance(setting, dict):
        each = _given_weights(name, setting, est.classes_)
    else:
        raise InvalidParameter(
            f"{name}: `class_weight` must be None, 'balanced' or a dict; got {setting!r}."
        )
    return each[codes] * (1.0 if weight is None else weight)


def _given_weights(owner: str, setting: dict[Any, Any], classes: np.ndarray) -> np.ndarray:
    """Return one weight a class, 1 for those that are not named."""
    unknown = [label for label in setting if label not in classes]
    if unknown:
        raise InvalidParameter(
            f"{owner}: `class_weight` must name classes of y; got {unknown[0]!r}, which is not one "
            f"of {classes.tolist()[:10]}."
        )
    found = [setting.get(label, 1.0) for label in classes.tolist()]
    if not all(isinstance(w, Real) and 0 <= float(w) < np.inf for w in found):
        raise InvalidParameter(
            f"{owner}: `class_weight` must hold numbers of at least 0; got {setting!r}."
        )
    return np.array(found, dtype=np.float64)


def encode_classes(
    owner: Any, y: np.ndarray, *, narrow: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of exclusive labels, two or more, and each row's class number.

    ``narrow`` numbers take as few bytes as they can, instead of eight.
    """
    labels = column_or_1d(y, warn=True)
    try:
        classes, codes = _class_codes(labels, narrow)
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


def _class_codes(y: np.ndarray, narrow: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes and each row's class number, a chunk at a time: y may be very long."""
    chunks = [y[span] for span in spans(len(y))]
    classes = np.unique(np.concatenate([np.unique(chunk) for chunk in chunks]))
    check_classification_targets(classes if y.dtype.kind == "f" else y[: len(chunks[0])])
    codes = np.empty(len(y), np.min_scalar_type(-len(classes)) if narrow else np.int64)
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
