"""Recurrent encoder and decoder, with attention or with one fixed vector between them.

h_j = BiRNN(x)_j                                        a vector for each token of the source
e_ij = a(s_{i-1}, h_j),  a_ij = softmax_j(e_ij),  c_i = sum_j a_ij h_j        attention
s_i = RNN(s_{i-1}, [y_{i-1}, c_i]),  logits_i = U tanh(W [s_i, c_i, y_{i-1}])
Without attention c_i is the same for all i: the encoder's last states in both directions.

Shapes: B batch, S tokens of the source, T tokens of the answer, H hidden, V vocabulary.
References: 2014, Sutskever, Vinyals, Le, Sequence to sequence learning, arXiv 1409.3215; 2015,
Bahdanau, Cho, Bengio, Neural machine translation by jointly learning to align and translate, arXiv
1409.0473; 2015, Luong, Pham, Manning, Effective approaches, arXiv 1508.04025; 2016, Wu et al.,
Google's neural machine translation system, arXiv 1609.08144 (residual stacks).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.attention import AdditiveAttention, MultiplicativeAttention
from castalia.nn.attention.attention_masks import additive
from castalia.nn.recurrent import CELLS, Recurrent
from castalia.utils.text import did_you_mean, listing

__all__ = ["Seq2Seq", "StateCache"]

ATTENTIONS = ("additive", "multiplicative", "none")


class StateCache:
    """The decoder's state between tokens; it stays in place, so that a step can be recorded."""

    def __init__(self) -> None:
        self.state: list[Tensor] = []
        self.seen = 0

    def keep(self, state: list[Tensor]) -> None:
        """Take over a state."""
        if not self.state:
            self.state = [part.clone() for part in state]
        else:
            for kept, part in zip(self.state, state, strict=True):
                kept.copy_(part)

    def reorder(self, rows: Tensor) -> None:
        """Let row b go on from what was row ``rows[b]``, as beam search needs."""
        self.keep([part.index_select(0, rows) for part in self.state])


class Seq2Seq(nn.Module):
    """Recurrent encoder and decoder.

    Parameters
    ----------
    vocabulary
        Tokens of source and answer.
    dim
        Width of the tokens' vectors.
    hidden
        Width of a recurrent state.
    depth
        Recurrent layers of the encoder, the first in both directions, and of the decoder.
    cell
        ``"lstm"``, ``"gru"`` or another name of ``castalia.nn.recurrent.CELLS``.
    attention
        ``"additive"`` (Bahdanau), ``"multiplicative"`` (Luong) or ``"none"``: a fixed vector.
    residual
        Whether each layer from the second on adds its input to its output.
    dropout
        Probability for the vectors of tokens, between layers and below the output.

    Examples
    --------
    >>> net = Seq2Seq(50, dim=8, hidden=6)
    >>> net(torch.tensor([[3, 1, 4]]), torch.tensor([[2, 7]])).shape
    torch.Size([1, 2, 50])
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        dim: int = 256,
        hidden: int = 256,
        depth: int = 1,
        cell: str = "lstm",
        attention: str = "additive",
        residual: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if attention not in ATTENTIONS or cell not in CELLS:
            raise InvalidParameter(
                f"Seq2Seq: `attention` must be {listing(ATTENTIONS)} and `cell` {listing(CELLS)}; "
                f"got {attention!r} and {cell!r}.{did_you_mean(str(attention), ATTENTIONS)}"
            )
        self.vocabulary, self.dim, self.hidden, self.residual = vocabulary, dim, hidden, residual
        self.tokens = nn.Embedding(vocabulary, dim)
        self.dropout = nn.Dropout(dropout)
        wide = 2 * hidden
        first = Recurrent(cell, dim, hidden, bidirectional=True)
        more = (Recurrent(cell, wide, wide) for _ in range(depth - 1))
        self.encoder = nn.ModuleList([first, *more])
        self.decoder = nn.ModuleList(
            CELLS[cell](hidden if layer else dim + wide, hidden) for layer in range(depth)
        )
        self.parts = len(first.widths)  # of a cell's state
        self.begin = nn.Linear(wide, depth * self.parts * hidden)
        self.attention: AdditiveAttention | MultiplicativeAttention | None = None
        if attention == "additive":
            self.attention = AdditiveAttention(wide, query_dim=hidden, hidden=hidden)
        elif attention == "multiplicative":
            self.attention = MultiplicativeAttention(wide, query_dim=hidden)
        self.readout = nn.Linear(hidden + wide + dim, dim)
        self.output = nn.Linear(dim, vocabulary)

    def forward(
        self,
        ids: Tensor,
        decoder_ids: Tensor,
        *,
        keep: Tensor | None = None,
        decoder_keep: Tensor | None = None,
        sampled: float = 0.0,
    ) -> Tensor:  # (B, S), (B, T)
        """Return the logits of the token after each of ``decoder_ids``, (B, T, V).

        Parameters
        ----------
        ids, keep
            Tokens of the source, (B, S), and which are real.
        decoder_ids, decoder_keep
            True tokens of the answer, the first being the start; the mask is not needed.
        sampled
            Probability that a step reads the token it thought most probable instead of the true
            one.
        """
        memory = self.encode(ids, keep=keep)
        if not sampled:
            return self.head(self.decode(decoder_ids, memory, memory_keep=keep))
        walk = _Walk(self, memory, keep)
        logits: list[Tensor] = []
        for t in range(decoder_ids.shape[1]):
            read = decoder_ids[:, t]
            if t:
                own = torch.rand(len(read), device=read.device) < sampled
                read = torch.where(own, logits[-1].detach().argmax(dim=-1), read)
            logits.append(self.head(walk.step(self._embed(read))))
        return torch.stack(logits, dim=1)

    def encode(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, S)
        """Return a vector for each token of the source, (B, S, 2 H)."""
        order, lengths = None, None
        if keep is not None:  # real tokens first, as the kernel wants them
            order = (~keep).to(torch.uint8).argsort(dim=1, stable=True)
            ids, lengths = ids.gather(1, order), keep.sum(dim=1).clamp_min(1)
        h = self._embed(ids)
        for layer, recurrent in enumerate(self.encoder):
            out, _ = recurrent(self.dropout(h) if layer else h, lengths=lengths)
            h = h + out if self.residual and layer else out
        if order is None:
            return h
        return h.gather(1, order.argsort(dim=1)[..., None].expand_as(h))

    def decode(
        self,
        ids: Tensor,
        memory: Tensor,
        *,
        keep: Tensor | None = None,
        memory_keep: Tensor | None = None,
        cache: StateCache | None = None,
    ) -> Tensor:  # (B, T), (B, S, 2 H)
        """Return the vectors below the output layer, (B, T, dim).

        Parameters
        ----------
        ids, keep
            Tokens of the answer, or the new ones with a cache; the mask is not needed.
        memory, memory_keep
            What ``encode`` returned, and which tokens of the source are real.
        cache
            Made by ``cache``: the state before these tokens.
        """
        walk = _Walk(self, memory, memory_keep, cache)
        read = self._embed(ids)
        found = torch.stack([walk.step(read[:, t]) for t in range(ids.shape[1])], dim=1)
        if cache is not None:
            cache.keep(walk.state)
            cache.seen += ids.shape[1]
        return found

    def head(self, h: Tensor) -> Tensor:  # (..., dim)
        """Return the logits of vectors, (..., V)."""
        return self.output(self.dropout(h))

    def cache(self, batch: int, length: int, *, keep: Tensor | None = None) -> StateCache:
        """Return an empty cache; arguments as other networks have them."""
        return StateCache()

    @torch.no_grad()
    def alignments(self, ids: Tensor, decoder_ids: Tensor, *, keep: Tensor | None = None) -> Tensor:
        """Return the attention a_ij of each token of the answer, (B, T, S)."""
        if self.attention is None:
            raise InvalidParameter("Seq2Seq: without attention there are no alignments.")
        walk = _Walk(self, self.encode(ids, keep=keep), keep)
        read, found = self._embed(decoder_ids), []
        for t in range(decoder_ids.shape[1]):
            walk.step(read[:, t])
            found.append(walk.weights)
        return torch.stack(found, dim=1)

    def _embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.tokens(ids))


class _Walk:
    """The decoder going along one batch."""

    def __init__(
        self, net: Seq2Seq, memory: Tensor, keep: Tensor | None, cache: StateCache | None = None
    ) -> None:
        self.net, self.memory = net, memory
        real = torch.ones(memory.shape[:2], dtype=torch.bool, device=memory.device)
        real = real if keep is None else keep
        self.hidden_keys = None if keep is None else additive(real, memory.dtype)  # (B, S)
        self.fixed = _last_states(memory, real)  # (B, 2 H)
        self.keys = self._keys()
        self.weights = memory.new_zeros(0)
        if cache is not None and cache.state:
            self.state = list(cache.state)
        else:
            begin = torch.tanh(net.begin(self.fixed))
            self.state = list(begin.split(net.hidden, dim=-1))

    def _keys(self) -> Tensor:
        """Return what the attention makes of the memory, once for all steps."""
        attention: Any = self.net.attention
        if attention is None:
            return self.memory
        of = attention.of_key if isinstance(attention, AdditiveAttention) else attention.w
        return of(self.memory)  # (B, S, H)

    def step(self, y: Tensor) -> Tensor:  # (B, dim)
        """Read one token and return the vector below the output layer, (B, dim)."""
        net = self.net
        c = self._gather(self.state[(len(net.decoder) - 1) * net.parts])
        h, state = torch.cat([y, c], dim=-1), []
        for layer, cell in enumerate(net.decoder):
            mine = tuple(self.state[layer * net.parts : (layer + 1) * net.parts])
            out, new = cell.step(cell.lift(net.dropout(h) if layer else h), mine)  # type: ignore[operator]
            h = h + out if net.residual and layer else out
            state += new
        self.state = state
        return torch.tanh(net.readout(torch.cat([h, c, y], dim=-1)))

    def _gather(self, query: Tensor) -> Tensor:  # (B, H)
        """Return the context of a step, (B, 2 H)."""
        attention: Any = self.net.attention
        if attention is None:
            return self.fixed
        if isinstance(attention, AdditiveAttention):
            pairs = torch.tanh(attention.of_query(query)[:, None] + self.keys)
            scores = attention.v(pairs).squeeze(-1)  # (B, S)
        else:
            scores = (self.keys @ query[..., None]).squeeze(-1)
        scores = scores if self.hidden_keys is None else scores + self.hidden_keys
        self.weights = scores.softmax(dim=-1)
        return (self.weights[:, None] @ self.memory).squeeze(1)


def _last_states(memory: Tensor, real: Tensor) -> Tensor:
    """Return the forward state at the last real token and the backward one at the first."""
    place = torch.arange(memory.shape[1], device=memory.device)
    last = torch.where(real, place, -1).amax(dim=1).clamp_min(0)
    first = torch.where(real, place, memory.shape[1]).amin(dim=1).clamp_max(memory.shape[1] - 1)
    rows, half = torch.arange(len(memory), device=memory.device), memory.shape[2] // 2
    return torch.cat([memory[rows, last, :half], memory[rows, first, half:]], dim=-1)
