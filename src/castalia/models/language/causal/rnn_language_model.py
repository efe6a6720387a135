"""Recurrent language models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from torch import nn

from castalia.base import Interval, OneOf, fields_for
from castalia.data.adapter_base import Reads
from castalia.data.text import StreamAdapter
from castalia.errors import InvalidParameter
from castalia.models.language.causal.neural_language_model import NeuralLanguageModel
from castalia.nets.language import RecurrentLM
from castalia.objectives import CarriedLM
from castalia.objectives.objective import Objective
from castalia.protocols import Spec

__all__ = ["RNNLanguageModel"]

CELLS = ("lstm", "gru", "elman")


@dataclass(kw_only=True, eq=False, repr=False)
class RNNLanguageModel(NeuralLanguageModel):
    """Recurrent network that predicts the next token from a state that goes on.

    s_t = f(x_t, s_(t-1)), p(x_(t+1) | s_t) = softmax(V s_t + b); the mean of -log p is minimised by
    truncated back-propagation through time: the text is cut into ``batch_size`` parallel streams,
    a step takes the next ``context`` tokens of each, and the state, not its gradient, goes on to
    the next step. Small, and without a bound on what it remembers; ``GPTLanguageModel`` learns
    more from large data.

    Parameters
    ----------
    hidden
        Width of the state.
    depth
        Recurrent layers.
    cell
        ``"lstm"``, ``"gru"`` or ``"elman"``.
    dim
        Width of the embeddings; None: ``hidden``.
    dropout
        Probability before, between and after the layers, never inside the recurrence.
    tied
        Whether the output layer is the table of the tokens; it needs ``dim`` None or ``hidden``.
    context
        Tokens through which gradients go back.
    tokenizer
        As for ``GPTLanguageModel``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``RecurrentLM``: ids (B, T) to logits (B, T, V).
    tokenizer_, history_
        As for ``GPTLanguageModel``.

    Shapes
    ------
    X is N texts: strings, arrays of token ids, or ``pathlib.Path`` of text files; or a
    ``castalia.data.text.Corpus`` of files larger than memory. ``score_samples`` gives (N,).

    Notes
    -----
    Steps are never shuffled. The state is zero at the beginning of every epoch; checkpoints keep
    it, so that a run that was interrupted inside of one goes on. What does not fill a block of
    every stream is left out.
    ``score`` and ``perplexity`` carry the state over the whole text. Validation rows begin at the
    state zero and are 16 contexts long, so ``val_loss`` is slightly pessimistic.

    References
    ----------
    2010, Mikolov et al., Recurrent neural network based language model. 2014, Zaremba, Sutskever,
    Vinyals, Recurrent neural network regularization, arXiv 1409.2329.

    See Also
    --------
    castalia.models.language.WindowLanguageModel : a fixed number of tokens instead of a state.
    castalia.models.language.GPTLanguageModel : attention instead of a state.

    Examples
    --------
    >>> texts = ["ab" * 10] * 20
    >>> model = RNNLanguageModel(
    ...     hidden=16, context=8, batch_size=8, epochs=30, lr=3e-2, random_state=0
    ... ).fit(texts)
    >>> model.generate("aba", tokens=5, temperature=0)
    'abababab'
    """

    adapter: ClassVar[Any] = Reads(StreamAdapter, "tokenizer", "context", parallel="batch_size")
    _bounded: ClassVar[bool] = False

    hidden: Annotated[int, Interval(1, whole=True)] = 256
    depth: Annotated[int, Interval(1, whole=True)] = 1
    cell: Annotated[str, OneOf(*CELLS)] = "lstm"
    dim: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    tied: Annotated[bool, OneOf(True, False)] = False
    context: Annotated[int, Interval(1, whole=True)] = 64

    def _network(self, spec: Spec) -> nn.Module:
        if self.tied and self.dim not in (None, self.hidden):
            raise InvalidParameter(
                f"RNNLanguageModel: `dim` must be None or hidden={self.hidden} with tied weights; "
                f"got {self.dim}."
            )
        return RecurrentLM(spec.extra["vocabulary"], **fields_for(self, RecurrentLM))

    def _objective(self, spec: Spec) -> Objective:
        return CarriedLM(self.batch_size)
