"""Translators: texts to texts, learnt from pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from torch import nn

from castalia.base import Constraint, Estimator, Interval, OneOf, fields_for
from castalia.models.language.seq2seq.text_to_text import TextToText
from castalia.nets import language as nets
from castalia.nn.recurrent import CELLS
from castalia.objectives import Objective, SequenceCrossEntropy
from castalia.optim import inverse_sqrt, warmup
from castalia.protocols import Spec, Stage
from castalia.train import Training

__all__ = ["Seq2Seq", "Transformer"]

WARM_UP = 0.1  # share of the steps in which the learning rate rises


class Shares(Constraint):
    """A tuple of probabilities, at least one."""

    def rule(self) -> str:
        """Say so."""
        return "a tuple of numbers from 0 to below 1"

    def holds(self, value: Any) -> bool:
        """Whether every entry is one."""
        share = Interval(0, 1, closed="left")
        return isinstance(value, tuple) and bool(value) and all(share.holds(v) for v in value)


@dataclass(kw_only=True, eq=False, repr=False)
class Transformer(TextToText, Estimator):
    """Encoder and decoder of attention that translate texts.

    The decoder reads the true words so far, and the mean of -log p(next token | source, tokens so
    far) is minimised, with smoothed labels. The right choice for translation with ten thousand
    pairs or more; with fewer, continue from a pretrained ``T5`` or ``BART``.

    Parameters
    ----------
    tokenizer
        A tokenizer with begin and end, fitted or not, or the name of one; it is fitted on sources
        and answers together. None: BPE.
    context
        Most tokens of a source and of an answer; longer ones are cut.
    beams
        Answers that are kept while searching; 1 takes the most probable token at each step.
    length_penalty
        The exponent a of log p / n^a, by which answers of n tokens compete.
    batch_tokens
        Most tokens of a batch, padding included, of texts and answers each; short texts then make
        batches of more rows. None: batches of ``batch_size`` rows.
    dim, depth, heads
        Width of the vectors, blocks of each half, and attention heads.
    hidden
        Units of the position-wise networks; None: 4 ``dim``.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    pre_norm
        Whether norms stand before each part; the original has them after it.
    label_smoothing
        Share of a token's mass that is spread over the vocabulary.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.Transformer``; ``module_(ids, decoder_ids)``.
    adapter_ : PairAdapter
        Holds the fitted ``tokenizer``.
    answer_tokens_ : int
        Most tokens of an answer.
    history_ : list of dict
        Loss and validation loss of every epoch; the latter without smoothing.

    Shapes
    ------
    X: n texts.  y: n texts.  ``predict``: (n,) texts.

    Notes
    -----
    Without a ``training`` of your own the learning rate rises for a tenth of the steps and then
    falls as 1 / sqrt(step). Every token counts the same: a row's loss is divided by the usual
    length of an answer. Texts are read as ``<s> text </s>``. Costs 6 operations a weight and token.

    References
    ----------
    2017, Vaswani et al., Attention is all you need, arXiv 1706.03762.

    See Also
    --------
    Seq2Seq : recurrent, for short texts and few pairs.
    T5 : pretrained on texts alone.

    Examples
    --------
    >>> from castalia.testing.toys import reversal
    >>> X, y = reversal(200)
    >>> model = Transformer(
    ...     tokenizer="whitespace", dim=16, depth=1, heads=2, epochs=2, random_state=0)
    >>> len(model.fit(X, y).predict(X[:3]))
    3
    """

    usual_training: ClassVar[Training] = Training(schedule=warmup(inverse_sqrt(WARM_UP), WARM_UP))

    dim: Annotated[int, Interval(1, whole=True)] = 256
    depth: Annotated[int, Interval(1, whole=True)] = 3
    heads: Annotated[int, Interval(1, whole=True)] = 4
    hidden: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.1
    pre_norm: Annotated[bool, OneOf(True, False)] = False
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.1

    def _network(self, spec: Spec) -> nn.Module:
        return nets.Transformer(spec.extra["vocabulary"], **fields_for(self, nets.Transformer))

    def _objective(self, spec: Spec) -> Objective:
        return SequenceCrossEntropy(
            **self._ids(spec), label_smoothing=self.label_smoothing, per=self.usual_tokens_
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Seq2Seq(TextToText, Estimator):
    """Recurrent encoder and decoder that translate texts, with attention between them.

    A bidirectional network reads the source; at each step the decoder attends to the places of the
    source that matter to it and writes one token. The mean of -log p(next token | source, tokens so
    far) is minimised. Right for short texts and little data; ``Transformer`` is faster to train and
    better with more.

    Parameters
    ----------
    dim
        Width of the tokens' vectors.
    hidden
        Width of a recurrent state; that of the encoder's vectors is twice as large.
    depth
        Recurrent layers of each half.
    cell
        ``"lstm"``, ``"gru"``, or another cell of ``castalia.nn.recurrent``.
    attention
        ``"additive"`` (Bahdanau), ``"multiplicative"`` (Luong), or ``"none"``: one fixed vector
        must carry the whole source, which fails on long texts.
    residual
        Whether each layer from the second on adds its input to its output; for deep stacks.
    dropout
        Probability for the vectors of tokens, between layers and below the output.
    label_smoothing
        Share of a token's mass that is spread over the vocabulary.
    sampled
        Scheduled sampling: shares of the decoder's inputs that are its own guesses, one for each
        part of the training, which is cut into as many equal parts. ``(0.0,)`` is teacher forcing.
    tokenizer, context, beams, length_penalty, batch_tokens
        As for ``Transformer``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.Seq2Seq``; ``module_.alignments`` shows the attention.
    adapter_ : PairAdapter
        Holds the fitted ``tokenizer``.
    answer_tokens_ : int
        Most tokens of an answer.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n texts.  y: n texts.  ``predict``: (n,) texts.

    Notes
    -----
    The decoder goes token by token in training too, so a step takes time in proportion to the
    length of the answers.

    References
    ----------
    2014, Sutskever, Vinyals, Le, Sequence to sequence learning with neural networks, arXiv
    1409.3215; 2015, Bahdanau, Cho, Bengio, Neural machine translation by jointly learning to align
    and translate, arXiv 1409.0473; 2015, Bengio, Vinyals, Jaitly, Shazeer, Scheduled sampling,
    arXiv 1506.03099.

    See Also
    --------
    Transformer : attention only.

    Examples
    --------
    >>> from castalia.testing.toys import reversal
    >>> X, y = reversal(200)
    >>> model = Seq2Seq(tokenizer="whitespace", dim=16, hidden=16, epochs=2, random_state=0)
    >>> len(model.fit(X, y).predict(X[:3]))
    3
    """

    dim: Annotated[int, Interval(1, whole=True)] = 256
    hidden: Annotated[int, Interval(1, whole=True)] = 256
    depth: Annotated[int, Interval(1, whole=True)] = 1
    cell: Annotated[str, OneOf(*CELLS)] = "lstm"
    attention: Annotated[str, OneOf("additive", "multiplicative", "none")] = "additive"
    residual: Annotated[bool, OneOf(True, False)] = False
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    sampled: Annotated[tuple[float, ...], Shares()] = (0.0,)

    def _network(self, spec: Spec) -> nn.Module:
        return nets.Seq2Seq(spec.extra["vocabulary"], **fields_for(self, nets.Seq2Seq))

    def _objective(self, spec: Spec) -> Sequence[Stage]:
        loss = partial(SequenceCrossEntropy, **self._ids(spec), per=self.usual_tokens_)
        loss = partial(loss, label_smoothing=self.label_smoothing)
        return _stages(loss, self.sampled[: self.epochs], self.epochs)


def _stages(
    loss: Callable[..., Objective], sampled: Sequence[float], epochs: int
) -> Sequence[Stage]:
    """Return one stage a share of words that are the network's own, of like lengths."""
    cuts = [epochs * i // len(sampled) for i in range(len(sampled) + 1)]
    return [
        Stage(f"sampled {share:g}", loss(sampled=share), epochs=stop - start)
        for share, (start, stop) in zip(sampled, pairwise(cuts), strict=True)
    ]
