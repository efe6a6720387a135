"""The task of classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from castalia.base.params import OneOf
from castalia.base.targets import ClassCodec
from castalia.errors import InvalidParameter

__all__ = ["Classifier"]


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

    codec: ClassVar[Any] = ClassCodec()

    class_weight: Any = None
    calibrate: Annotated[bool, OneOf(True, False)] = False

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class (or label) for each row."""
        return self.codec.probability(self, self._outputs(X)).numpy()  # type: ignore[attr-defined]

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, or the 0/1 matrix of labels."""
        return self.codec.decode(self, self._outputs(X))  # type: ignore[attr-defined]

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
        if self.multilabel_:  # type: ignore[attr-defined]
            raise InvalidParameter(
                "abstain: needs exclusive classes; this classifier was fitted on several labels."
            )
        confidence = probability.max(axis=1)
        known = confidence if self.confidence_ is None else self.confidence_  # type: ignore[attr-defined]
        threshold = np.quantile(known, 1 - coverage)
        classes: np.ndarray = self.classes_  # type: ignore[attr-defined]
        return np.ma.array(classes[probability.argmax(axis=1)], mask=confidence < threshold)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
