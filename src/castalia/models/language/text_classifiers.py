"""Classifiers of texts, trained from scratch by cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import nn

from castalia.base import Classifier, Estimator, Interval, OneOf, fields_for
from castalia.data.adapter_base import Reads
from castalia.data.text import DocumentAdapter, TextAdapter
from castalia.models.language.attention_sizes import check_heads
from castalia.models.language.text_tags import ReadsTexts
from castalia.models.language.tokenizer_parameter import TokenizerChoice
from castalia.nets.language import HierarchicalAttention, TransformerEncoder
from castalia.objectives import class_loss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec

__all__ = ["AttentionClassifier", "TextClassifier", "TransformerClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class TextClassifier(ReadsTexts, Classifier, Estimator):
    """Base of networks that say what a text is; a subclass gives adapter and network.

    Parameters
    ----------
    tokenizer
        A tokenizer of ``castalia.data.tokenizers``, which is fitted unless it is; a name such as
        ``"characters"``, ``"words"`` or ``"byte-bpe"``; None: words and punctuation marks.
    label_smoothing
        Share of a label's mass that is spread over all classes.
    """

    tokenizer: Annotated[Any, TokenizerChoice()] = None
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _objective(self, spec: Spec) -> Objective:
        return class_loss(self.multilabel_, self.label_smoothing)


@dataclass(kw_only=True, eq=False, repr=False)
class TransformerClassifier(TextClassifier):
    """Transformer encoder that reads a text and says what it is.

    Blocks of self-attention over the tokens, pooled to one vector, and a linear layer;
    cross-entropy is minimised. Right where the order of words matters and there is much text; on
    little data start from a pre-trained network, or take no blocks: a bag of words.

    Parameters
    ----------
    dim
        Width of the vectors; a multiple of ``heads``.
    depth
        Number of blocks; 0, best with ``positions="none"`` and ``pool="sum"``, is a bag of words.
    heads
        Attention heads of a block.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    positions
        ``"sinusoidal"``, ``"learned"``, or ``"none"``: a bag of tokens.
    pool
        How tokens become one vector: their ``"mean"``, their ``"sum"`` over the root of their
        number, a learnt ``"attention"`` over them, or the ``"first"``.
    context
        Most tokens of a text.
    long
        What becomes of texts with more: ``"cut"`` keeps their beginning, ``"refuse"`` says which
        one it is.
    batch_tokens
        Most tokens of a batch, padding included; short texts then make batches of more rows.
        None: batches of ``batch_size`` rows.
    class_weight
        None, ``"balanced"``, or a dict from class to weight.
    calibrate
        Fit one temperature on the validation rows after training.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    module_ : torch.nn.Module
        The trained ``TransformerEncoder``: ids (B, T) to scores (B, K).
    adapter_ : TextAdapter
        Holds the tokenizer and the id of padding.

    Shapes
    ------
    X is N texts, y (N,) or, for several labels at once, (N, L).

    Notes
    -----
    Padding is neither seen nor pooled, so a text gets the same answer whatever it is read with.
    Cost grows with the square of the context.

    References
    ----------
    2017, Vaswani et al., Attention is all you need, arXiv 1706.03762.

    See Also
    --------
    castalia.models.language.AttentionClassifier : attention over words and sentences, recurrent.

    Examples
    --------
    >>> texts = ["good film", "bad film", "a good one", "a bad one"] * 5
    >>> model = TransformerClassifier(
    ...     dim=16, depth=1, heads=2, epochs=20, lr=1e-2, random_state=0
    ... ).fit(texts, ["yes", "no"] * 10)
    >>> model.predict(["bad", "good"]).tolist()
    ['no', 'yes']
    """

    adapter: ClassVar[Any] = Reads(TextAdapter, "tokenizer", "context", "long")

    dim: Annotated[int, Interval(1, whole=True)] = 128
    depth: Annotated[int, Interval(0, whole=True)] = 2
    heads: Annotated[int, Interval(1, whole=True)] = 4
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.1
    positions: Annotated[str, OneOf("sinusoidal", "learned", "none")] = "sinusoidal"
    pool: Annotated[str, OneOf("mean", "sum", "attention", "first")] = "mean"
    context: Annotated[int, Interval(1, whole=True)] = 512
    long: Annotated[str, OneOf("cut", "refuse")] = "cut"
    batch_tokens: Annotated[int | None, Interval(1, whole=True, optional=True)] = None

    def _network(self, spec: Spec) -> nn.Module:
        check_heads(self)
        extra = {"context": spec.extra["context"], "pad": spec.extra["padding"], "pre_norm": True}
        fields = {**fields_for(self, TransformerEncoder), **extra}
        return TransformerEncoder(spec.extra["vocabulary"], spec.outputs, **fields)


@dataclass(kw_only=True, eq=False, repr=False)
class AttentionClassifier(TextClassifier):
    """Recurrent network with attention over the words of sentences and the sentences of a document.

    A GRU in both directions reads each sentence, a learnt question weighs its words, and the same
    again over the sentences; cross-entropy is minimised. For documents whose label hangs on few
    words, and whenever one wants to see which; short texts have no use for the second level.

    Parameters
    ----------
    dim
        Width of the embeddings.
    hidden
        Width of a GRU's state, in each direction.
    dropout
        Probability for embeddings, sentences and the document.
    sentences
        Most sentences of a document; the others are left out.
    words
        Most words of a sentence; the others are left out.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    module_ : torch.nn.Module
        The trained ``HierarchicalAttention``: ids (B, S, W) to scores (B, K).
    adapter_ : DocumentAdapter
        Holds the tokenizer and cuts sentences.

    Shapes
    ------
    X is N texts, y (N,) or, for several labels at once, (N, L).

    Notes
    -----
    Sentences end at . ! ? … and at the ends of lines. Padding is neither seen nor weighed.

    References
    ----------
    2016, Yang, Yang, Dyer, He, Smola, Hovy, Hierarchical attention networks for document
    classification.

    See Also
    --------
    castalia.models.language.TransformerClassifier : self-attention over all tokens.

    Examples
    --------
    >>> texts = ["a good film. see it.", "a bad film. leave it."] * 10
    >>> model = AttentionClassifier(
    ...     dim=8, hidden=8, epochs=20, lr=1e-2, random_state=0
    ... ).fit(texts, ["yes", "no"] * 10)
    >>> model.predict(["bad. truly."]).tolist()
    ['no']
    >>> words, sentences = model.attention(["bad. truly."])[0]
    >>> [round(float(w.sum()), 3) for w in words], len(sentences)
    ([1.0, 1.0], 2)
    """

    adapter: ClassVar[Any] = Reads(DocumentAdapter, "tokenizer", "sentences", "words")

    dim: Annotated[int, Interval(1, whole=True)] = 100
    hidden: Annotated[int, Interval(1, whole=True)] = 50
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.1
    sentences: Annotated[int, Interval(1, whole=True)] = 32
    words: Annotated[int, Interval(1, whole=True)] = 64

    def _network(self, spec: Spec) -> nn.Module:
        return HierarchicalAttention(
            spec.extra["vocabulary"],
            spec.outputs,
            **fields_for(self, HierarchicalAttention),
            padding=spec.extra["padding"],
        )

    def attention(self, X: Any) -> list[tuple[list[np.ndarray], np.ndarray]]:
        """Return, for each text, the weights of the words of each sentence and of the sentences.

        The words are those of ``adapter_.encode``; the weights of each sentence's words sum to one,
        and so do those of the sentences.
        """
        X = self._checked(X)
        return _attention(self.module_.eval(), self.adapter_, X)


@torch.inference_mode()
def _attention(net: Any, adapter: DocumentAdapter, X: Any) -> list[Any]:
    """Return the weights of the words and of the sentences of each text."""
    device = next(net.parameters()).device
    documents, found = adapter.encode(X), list[Any]()
    for block in adapter.blocks(X, np.float32):
        words, sentences = net.attention(block.to(device))
        for w, s in zip(words.cpu().numpy(), sentences.cpu().numpy(), strict=True):
            rows = documents[len(found)][: len(s)]
            found.append(([w[i, : len(row)] for i, row in enumerate(rows)], s[: len(rows)]))
    return found
