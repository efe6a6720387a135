"""Recurrent language model: the state after a token predicts the next one.

s_t = f(U e_{x_t} + W s_{t-1}),  logits_t = V s_t + b, with any cell f, stacked.

Shapes: B batch, T tokens, V vocabulary, H hidden, L depth.
References: 2010, Mikolov et al., Recurrent neural network based language model; 2014, Zaremba,
Sutskever, Vinyals, Recurrent neural network regularization, arXiv 1409.2329 (where dropout goes);
2017, Press, Wolf, Using the output embedding to improve language models, arXiv 1608.05859 (tied).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.recurrent import Recurrent

__all__ = ["RecurrentLM", "StateCache"]

State = tuple[Tensor, ...]


class StateCache:
    """The state after the tokens seen so far; it stays in place, so a step can be recorded.

    Attributes
    ----------
    state
        Parts of (L, B, width).
    seen
        Tokens read.
    keep
        Which tokens of the prompt are real, (B, P); None: all.
    """

    def __init__(self, state: State, keep: Tensor | None = None) -> None:
        self.state, self.keep, self.seen = state, keep, 0

    def remember(self, state: State, tokens: int) -> None:
        """Take up the state after some more tokens."""
        for kept, new in zip(self.state, state, strict=True):
            kept.copy_(new)
        self.seen += tokens


class RecurrentLM(nn.Module):
    """Embedding, recurrent layers, output layer.

    Parameters
    ----------
    vocabulary
        Number of tokens known.
    hidden
        Width of the state.
    depth
        Recurrent layers.
    cell
        A name of ``castalia.nn.recurrent.CELLS``, such as ``"lstm"``, ``"gru"`` or ``"elman"``.
    dim
        Width of the embeddings; None: ``hidden``.
    dropout
        Probability before, between and after the recurrent layers, never inside.
    tied
        Whether the output layer is the table of the tokens; it needs ``dim = hidden``.

    Examples
    --------
    >>> net = RecurrentLM(50, hidden=8)
    >>> net(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 50])
    """

    context: int | None = None  # any number of tokens

    def __init__(
        self,
        vocabulary: int,
        *,
        hidden: int = 256,
        depth: int = 1,
        cell: str = "lstm",
        dim: int | None = None,
        dropout: float = 0.0,
        tied: bool = False,
    ) -> None:
        super().__init__()
        dim = dim or hidden
        if tied and dim != hidden:
            raise InvalidParameter(
                f"RecurrentLM: `dim` must be hidden={hidden} with tied weights; got {dim}."
            )
        self.vocabulary = vocabulary
        self.tokens = nn.Embedding(vocabulary, dim)
        self.dropout = nn.Dropout(dropout)
        self.layers = Recurrent(cell, dim, hidden, depth=depth, dropout=dropout)
        self.output = nn.Linear(self.layers.outputs, vocabulary)
        nn.init.uniform_(self.tokens.weight, -0.1, 0.1)
        nn.init.uniform_(self.output.weight, -0.1, 0.1)
        nn.init.zeros_(self.output.bias)
        if tied:
            self.output.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:  # (B, T)
        """Return the logits of the token after each one, (B, T, V), from the state zero."""
        return self.head(self.features(ids))

    def carry(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits (B, T, V) and the last state, going on from a state."""
        h, state = self.layers(self.dropout(self.tokens(ids)), state)
        return self.head(self.dropout(h)), state

    def features(
        self, ids: Tensor, *, keep: Tensor | None = None, cache: StateCache | None = None
    ) -> Tensor:
        """Return the vectors below the output layer, (B, T, H).

        Parameters
        ----------
        ids
            Tokens, (B, T).
        keep
            Which tokens are real, (B, T), padded on the left; None: all.
        cache
            Made by ``cache``: the state to go on from, and where the last one is kept.
        """
        x = self.dropout(self.tokens(ids))
        state = None if cache is None else tuple(part.clone() for part in cache.state)
        keep = cache.keep if cache is not None and cache.seen == 0 else keep
        if keep is None:
            h, state = self.layers(x, state)
        else:
            h, state = self._padded(x, state, keep)
        if cache is not None:
            cache.remember(state, ids.shape[1])
        return self.dropout(h)

    def _padded(self, x: Tensor, state: State | None, keep: Tensor) -> tuple[Tensor, State]:
        """Run rows padded on the left: real tokens are moved to the front and back again."""
        lengths, steps = keep.long().sum(dim=1), torch.arange(x.shape[1], device=x.device)
        shift = (x.shape[1] - lengths)[:, None]  # (B, 1)
        forth = ((steps + shift) % x.shape[1])[..., None]
        back = ((steps - shift) % x.shape[1])[..., None]
        h, state = self.layers(x.take_along_dim(forth, dim=1), state, lengths=lengths)
        return h.take_along_dim(back, dim=1), state

    def head(self, h: Tensor) -> Tensor:  # (B, T, H)
        """Return the logits of vectors, (B, T, V)."""
        return self.output(h)

    def start(self, batch: int) -> State:
        """Return the state zero for some rows, parts of (L, B, width)."""
        return self.layers.start(self.tokens.weight.new_zeros(batch, 1))

    def cache(self, batch: int, length: int, *, keep: Tensor | None = None) -> StateCache:
        """Return the state before the first token; any ``length`` will do."""
        return StateCache(self.start(batch), keep)
