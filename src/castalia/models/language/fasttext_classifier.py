"""Classifier of texts by weighted n-grams, trained from scratch by cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from torch import nn

from castalia.base import Classifier, Constraint, Estimator, Interval, Sizes
from castalia.data.adapter_base import Reads
from castalia.data.text import NGramAdapter
from castalia.models.language.text_tags import ReadsTexts
from castalia.nets.language import NGramBag
from castalia.objectives import L2, class_loss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["FastTextClassifier"]


class PieceSizes(Constraint):
    """Two sizes, the smaller first, or None."""

    def rule(self) -> str:
        """Say so."""
        return "a pair of sizes, the smaller first, or None"

    def holds(self, value: Any) -> bool:
        """Whether it is such a pair."""
        return value is None or (Sizes().holds(value) and len(value) == 2 and value[0] <= value[1])


@dataclass(kw_only=True, eq=False, repr=False)
class FastTextClassifier(ReadsTexts, Classifier, Estimator):
    """Weighted bag of words, runs of words and pieces of words, hashed, and a linear layer.

    Cross-entropy plus a penalty on squared weights is minimised. The right start for few texts,
    where it is ahead of TF-IDF with logistic regression on words and of networks that read their
    order; those, or a pre-trained one, win where there are many or order decides.

    Parameters
    ----------
    words
        Longest run of words; 1: single ones.
    characters
        Shortest and longest piece of a word, between marks for its ends; None: no pieces. They let
        words share what they have in common, inflections and misspellings too.
    dim
        Width of the n-grams' vectors; None: each n-gram has a weight for each class, and the loss
        is convex.
    l2
        Strength of the penalty: l2/2 times the sum of squares is added to the sum of the losses of
        all texts. Scikit-learn's C is 1/l2.
    min_count
        Texts that an n-gram must stand in.
    buckets
        Hash values; fewer save memory and let more n-grams share one.
    label_smoothing
        Share of a label's mass that is spread over all classes.
    class_weight
        None, ``"balanced"``, or a dict from class to weight.
    calibrate
        Fit one temperature on the validation rows after training.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    module_ : torch.nn.Module
        The trained ``NGramBag``: ids and weights (B, T) to scores (B, K).
    adapter_ : NGramAdapter
        Turns texts into weighted n-grams.

    Shapes
    ------
    X is N texts, y (N,) or, for several labels at once, (N, L).

    Notes
    -----
    No text is held out by default, since the penalty and not the number of epochs decides.
    Memory: a number for each n-gram of the training texts and class.

    References
    ----------
    2017, Joulin, Grave, Bojanowski, Mikolov, Bag of tricks for efficient text classification,
    arXiv 1607.01759.

    See Also
    --------
    castalia.models.language.TransformerClassifier : reads the order of words.

    Examples
    --------
    >>> texts = ["good film", "bad film", "a good one", "a bad one"] * 5
    >>> model = FastTextClassifier(random_state=0).fit(texts, ["yes", "no"] * 10)
    >>> model.predict(["goodness", "badly"]).tolist()
    ['yes', 'no']
    """

    adapter: ClassVar[Any] = Reads(NGramAdapter, "words", "characters", "min_count", "buckets")
    usual_training: ClassVar[Training] = Training(schedule="cosine", validation=0)

    epochs: Annotated[int, Interval(1, whole=True)] = 10
    batch_size: Annotated[int, Interval(1, whole=True)] = 32
    lr: Annotated[float, Interval(0, closed="neither")] = 0.05
    words: Annotated[int, Interval(1, whole=True)] = 2
    characters: Annotated[tuple[int, int] | None, PieceSizes()] = (3, 6)
    dim: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    l2: Annotated[float, Interval(0)] = 0.3
    min_count: Annotated[int, Interval(1, whole=True)] = 1
    buckets: Annotated[int, Interval(1, whole=True)] = 2**22
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        return NGramBag(spec.extra["vocabulary"], spec.outputs, dim=self.dim)

    def _objective(self, spec: Spec) -> Objective:
        return class_loss(self.multilabel_, self.label_smoothing) + L2(self.l2 / spec.rows)
