"""Vectors of texts in which like texts lie close, and search by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from torch import nn

from castalia.base import Estimator, Interval, NoTarget, OneOf, TargetCodec
from castalia.data.text import TwinAdapter
from castalia.models.language.pretrained.encoder_parameters import Startable
from castalia.models.language.pretrained.sentence_methods import SentenceMethods
from castalia.models.language.pretrained.start_weights import StartReader
from castalia.nets.language import SentenceVectors
from castalia.objectives import InBatchContrast, Objective
from castalia.protocols import Spec

__all__ = ["SentenceEncoder"]


@dataclass(kw_only=True, eq=False, repr=False)
class SentenceEncoder(SentenceMethods, Startable, Estimator):
    """Transformer encoder that gives texts vectors, like texts close together.

    Learns from pairs of texts that belong together (question and answer, two ways to say a thing):
    the vector of the first must be nearer to that of its second than to those of all other pairs of
    the batch; the mean of -log softmax of the cosines is minimised. For search, clustering and
    duplicates; from scratch it needs many pairs, with a ``start`` fewer. Where texts share their
    words, tf-idf is hard to beat.

    Parameters
    ----------
    pool
        What becomes the vector: the ``"mean"`` of the tokens, or the ``"first"`` one.
    temperature
        Divides the cosines in training; smaller values look at the nearest mistakes only.
    both_ways
        Whether second texts must find their first, too.
    tokenizer, context, dim, depth, heads, hidden, dropout, start, batch_tokens, train, adapt
        As for ``BERTClassifier``; ``start`` also takes DistilBERT, RoBERTa and XLM-R.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.SentenceVectors``: ids (B, T) to unit vectors (B, D).
    adapter_ : TwinAdapter
        Holds the fitted ``tokenizer``.
    vectors_ : ndarray (N, D)
        Those of the documents, after ``index``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n pairs of texts.  ``embed``: (n, D) of texts, (n, 2, D) of pairs.

    Notes
    -----
    All other pairs of a batch are wrong answers, so a larger ``batch_size`` teaches more; texts
    that equal the right answer are left out. A step costs 12 operations a weight and token of a
    text, and memory for B^2 cosines.

    References
    ----------
    2019, Reimers, Gurevych, Sentence-BERT, arXiv 1908.10084. 2017, Henderson et al., Efficient
    natural language response suggestion for smart reply, arXiv 1705.00652.

    See Also
    --------
    BERT : vectors without pairs, by ``transform``.
    castalia.evaluate.ndcg : scores of a search.

    Examples
    --------
    >>> from castalia.testing.toys import paraphrases
    >>> X, _ = paraphrases(60)
    >>> model = SentenceEncoder(
    ...     context=8, dim=16, depth=1, heads=2, dropout=0.0, epochs=20, lr=5e-3, random_state=0
    ... ).fit(X)
    >>> documents = [second for _, second in X]
    >>> hits = model.index(documents).search([X[7][0]], k=3)
    >>> hits.documents.shape, bool(7 in hits.documents)
    ((1, 3), True)
    """

    adapter: ClassVar[Any] = StartReader(TwinAdapter)
    codec: ClassVar[TargetCodec] = NoTarget()

    pool: Annotated[str, OneOf("mean", "first")] = "mean"
    temperature: Annotated[float, Interval(0, closed="neither")] = 0.05
    both_ways: Annotated[bool, OneOf(True, False)] = True

    def _reader(self, **settings: Any) -> TwinAdapter:
        """Make the adapter; it reads as that of a classifier does, but texts apart."""
        read = super()._reader(**settings)
        made = TwinAdapter(read.asked, context=read.context)
        made.double = read.double
        return made

    def _network(self, spec: Spec) -> nn.Module:
        encoder = self._encoder(spec, masked=False, pooler=False, next_sentence=False)
        end, padding = spec.extra["end"], spec.extra["padding"]
        return self._finished(SentenceVectors(encoder, end=end, padding=padding, pool=self.pool))

    def _objective(self, spec: Spec) -> Objective:
        return InBatchContrast(self.temperature, both_ways=self.both_ways)
