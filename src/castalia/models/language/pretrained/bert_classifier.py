"""Labels of texts and pairs of texts, on an encoder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from torch import nn

from castalia.base import Classifier, Estimator, Interval, OneOf
from castalia.errors import CheckpointMismatch, InvalidParameter
from castalia.models.language.pretrained.encoder_parameters import Startable
from castalia.models.language.pretrained.task_exchange import TaskExchange, classes_of
from castalia.nets.language import EncoderClassifier, TaskFolder
from castalia.objectives import Objective, class_loss
from castalia.protocols import Spec

__all__ = ["BERTClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class BERTClassifier(TaskExchange, Startable, Classifier, Estimator):
    """Transformer encoder that classifies texts or pairs of texts.

    A linear layer on one vector of the text; cross-entropy is minimised. With a ``start`` it
    continues from a pretrained encoder, the right choice with few labels; without, it learns from
    the labels alone and needs many.

    Parameters
    ----------
    tokenizer
        A tokenizer, fitted or not, or the name of one; None: word pieces. A ``start`` has its own.
    context
        Most tokens of a row; longer texts are cut.
    dim, depth, heads
        Width of the vectors, number of blocks and attention heads; not used with a ``start``.
    hidden
        Units of the position-wise networks; None: 4 ``dim``.
    dropout
        Probability for embeddings, attention weights, the output of each part and the last layer.
    label_smoothing
        Share of a label's mass that is spread over all classes.
    pool
        Where that vector comes from: ``"first"``, BERT's layer on the first token, or ``"mean"``,
        the mean over all tokens.
    start
        A fitted ``BERT``, ``RoBERTa`` or model made from one, the folder of a saved one, or a
        Hugging Face folder; None: random weights.
    batch_tokens
        Most tokens of a batch, padding included; short texts then make batches of more rows.
        None: batches of ``batch_size`` rows.
    train
        ``"all"``, ``"head"``, or the number of last blocks to train with the head.
    adapt
        ``LoRA(…)``, ``BottleneckAdapters(…)`` or ``Prompts(…)``, trained in a frozen start.
    class_weight
        None, ``"balanced"`` or a dict from class to weight.
    calibrate
        Fit one temperature on the validation rows after training.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``.
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.EncoderClassifier``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n texts, or n pairs of texts.  y: (n,) classes, or (n, L) of 0 and 1.

    Notes
    -----
    A pair is read as ``[CLS] a [SEP] b [SEP]``. A step costs 6 operations a trained weight and
    token; attention grows with the square of the length.

    References
    ----------
    2019, Devlin, Chang, Lee, Toutanova, BERT: pre-training of deep bidirectional transformers,
    arXiv 1810.04805.

    See Also
    --------
    BERT : the pretraining.
    TransformerClassifier : a smaller encoder without pretraining.

    Examples
    --------
    >>> X = ["good film", "bad film", "a good one", "a bad one"] * 15
    >>> y = [1, 0, 1, 0] * 15
    >>> model = BERTClassifier(
    ...     context=8, dim=16, depth=1, heads=2, dropout=0.0, epochs=10, lr=0.01, random_state=0)
    >>> model.fit(X, y).predict(["good", "bad"])
    array([1, 0])
    """

    _task: ClassVar[str] = "SequenceClassification"

    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    pool: Annotated[str, OneOf("first", "mean")] = "first"

    def _network(self, spec: Spec) -> nn.Module:
        pooler = self.pool == "first"
        encoder = self._encoder(spec, masked=False, pooler=pooler, next_sentence=False)
        return self._finished(
            EncoderClassifier(
                encoder,
                spec.outputs,
                end=spec.extra["end"],
                padding=spec.extra["padding"],
                dropout=self.dropout,
                pool=self.pool,
            )
        )

    def _name_outputs(self, found: TaskFolder) -> None:
        if len(found.labels) < 2:
            raise CheckpointMismatch(
                "BERTClassifier.from_pretrained: the head must have two outputs or more, one a "
                f"class; got {len(found.labels)}, a regression."
            )
        self.classes_, self.multilabel_ = classes_of(found.labels), found.several
        self.temperature_, self.confidence_ = 1.0, None

    def save_pretrained(self, path: str | os.PathLike[str]) -> Path:
        """Write network, head and tokenizer as a folder that Hugging Face's libraries read."""
        if self.pool != "first":
            raise InvalidParameter(
                "BERTClassifier.save_pretrained: `pool` must be 'first', as Hugging Face's models "
                f"have it; got {self.pool!r}."
            )
        return super().save_pretrained(path)

    def _objective(self, spec: Spec) -> Objective:
        return class_loss(self.multilabel_, self.label_smoothing)
