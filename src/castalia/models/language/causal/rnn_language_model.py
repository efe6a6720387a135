"""Recurrent language models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from castalia.base import Interval, OneOf
from castalia.base.tasks import Target
from castalia.data.batches import Samples
from castalia.data.text import LanguageAdapter, TokenRows, cut_blocks
from castalia.data.text.token_corpus import CorpusRows
from castalia.errors import InvalidParameter
from castalia.models.language.causal.neural_language_model import NeuralLanguageModel
from castalia.nets.language import RecurrentLM
from castalia.objectives import CarriedLM
from castalia.objectives.objective import Objective
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["RNNLanguageModel"]

CELLS = ("lstm", "gru", "elman")
VALIDATED = 16  # contexts of a validation row, which begins at the state zero


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

    hidden: Annotated[int, Interval(1, whole=True)] = 256
    depth: Annotated[int, Interval(1, whole=True)] = 1
    cell: Annotated[str, OneOf(*CELLS)] = "lstm"
    dim: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    tied: Annotated[bool, OneOf(True, False)] = False
    context: Annotated[int, Interval(1, whole=True)] = 64

    def _adapter(self) -> LanguageAdapter:
        return LanguageAdapter(self.tokenizer, context=self.context, rest=False)

    def _network(self, spec: Spec) -> nn.Module:
        if self.tied and self.dim not in (None, self.hidden):
            raise InvalidParameter(
                f"RNNLanguageModel: `dim` must be None or hidden={self.hidden} with tied weights; "
                f"got {self.dim}."
            )
        return RecurrentLM(
            spec.extra["vocabulary"],
            hidden=self.hidden,
            depth=self.depth,
            cell=self.cell,
            dim=self.dim,
            dropout=self.dropout,
            tied=self.tied,
        )

    def _objective(self, spec: Spec) -> Objective:
        return CarriedLM(self.batch_size)

    def _window(self) -> int | None:
        return None

    def _split(
        self, samples: Samples, target: Target, training: Training, seed: int, dtype: torch.dtype
    ) -> tuple[Samples, Samples]:
        """Hold out the end of the texts in long rows; order the rest as parallel streams."""
        kept, held = super()._split(samples, target, training, seed, dtype)
        return as_streams(kept, self.batch_size), _joined(held, VALIDATED * self.context)


def as_streams(samples: Samples, streams: int) -> Samples:
    """Return blocks in the order of parallel streams: the first of each, then the second of each.

    To the next tokens, y adds the number of a block's stream and whether it begins it, (N, T + 2);
    blocks of a corpus, which hold their next tokens themselves, have these two only, (N, 2).

    Parameters
    ----------
    samples
        The first blocks of a text, which follow each other.
    streams
        How many; fewer where there are fewer blocks.
    """
    streams = min(streams, len(samples))
    steps = len(samples) // streams
    places = torch.arange(streams * steps).view(streams, steps)
    y: Any = samples.y
    marks = torch.zeros(len(y), 2, dtype=y.dtype)
    marks[places, 0] = torch.arange(streams, dtype=y.dtype)[:, None]
    marks[places[:, 0], 1] = 1
    y = torch.cat([y, marks], dim=1) if y.ndim == 2 else marks
    return replace(samples, y=y, rows=places.T.flatten(), ordered=True)


def _joined(samples: Samples, length: int) -> Samples:
    """Return blocks that follow each other as fewer, longer ones, each its own stream."""
    if not len(samples):
        return samples
    if isinstance(samples.x, CorpusRows):
        rows = samples.x.behind(0 if samples.rows is None else int(samples.rows[0]), length)
        return Samples(rows, torch.zeros(len(rows), 2, dtype=torch.long))
    x, y = _taken(samples)
    stream = torch.cat([x.flatten(), y[-1, -1:]])
    blocks = torch.from_numpy(cut_blocks(stream.numpy(), length))
    marks = blocks.new_zeros(len(blocks), 2)
    return Samples(TokenRows(blocks[:, :-1]), torch.cat([blocks[:, 1:], marks], dim=1))


def _taken(samples: Samples) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of samples."""
    found: Any = samples
    x, y = found.x.x, found.y
    return (x, y) if samples.rows is None else (x[samples.rows], y[samples.rows])
