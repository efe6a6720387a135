"""Language models of a fixed window of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import nn

from castalia.base import Interval, fields_for
from castalia.models.language.causal.neural_language_model import NeuralLanguageModel
from castalia.nets.language import WindowNetwork
from castalia.protocols import Spec

__all__ = ["WindowLanguageModel"]


@dataclass(kw_only=True, eq=False, repr=False)
class WindowLanguageModel(NeuralLanguageModel):
    """Feed-forward network that predicts the next token from the last n.

    p(x_(t+1) | x_(t-n+1) … x_t) = softmax(U tanh(H [e_(t-n+1) … e_t] + d) + b), with shared word
    embeddings e; the mean of -log p is minimised. Unlike an n-gram model it knows that words are
    alike. With ``depth`` above 1 it is a convolutional language model. Quick; blind beyond its
    window.

    Parameters
    ----------
    window
        Tokens n that a layer reads; with one layer, all that the model sees.
    dim
        Width of the embeddings.
    hidden
        Units of each layer.
    depth
        Layers of causal convolution; the model sees depth (n - 1) + 1 tokens.
    dropout
        Probability for embeddings and hidden units.
    context
        Tokens of a training block. Only its first tokens are learnt with a shorter window.
    tokenizer
        As for ``GPTLanguageModel``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``WindowNetwork``: ids (B, T) to logits (B, T, V).
    tokenizer_, history_
        As for ``GPTLanguageModel``.

    Shapes
    ------
    X is N texts: strings, arrays of token ids, or ``pathlib.Path`` of text files. ``score_samples``
    gives (N,).

    Notes
    -----
    A block is learnt from in one pass, every place with the same weights. Scores are exact whatever
    the length of a text: windows of reading overlap by more than the model sees.

    References
    ----------
    2003, Bengio, Ducharme, Vincent, Jauvin, A neural probabilistic language model.

    See Also
    --------
    castalia.models.language.NGramLanguageModel : the same window, by counting.
    castalia.models.language.RNNLanguageModel : no bound on what is seen.

    Examples
    --------
    >>> texts = ["ab" * 10] * 20
    >>> model = WindowLanguageModel(
    ...     window=2, dim=8, hidden=16, context=16, epochs=40, lr=1e-2, random_state=0
    ... ).fit(texts)
    >>> model.generate("aba", tokens=5, temperature=0)
    'abababab'
    """

    _cached: ClassVar[bool] = False

    window: Annotated[int, Interval(1, whole=True)] = 4
    dim: Annotated[int, Interval(1, whole=True)] = 64
    hidden: Annotated[int, Interval(1, whole=True)] = 128
    depth: Annotated[int, Interval(1, whole=True)] = 1
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        own = fields_for(self, WindowNetwork)
        return WindowNetwork(spec.extra["vocabulary"], **own)

    def _window(self) -> int | None:
        seen: int = self.module_.context  # type: ignore[assignment]
        return max(256, 2 * seen)
