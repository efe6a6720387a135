"""Caption network: a convolutional encoder of the image, a recurrent decoder of its caption.

Maps of the image give a vector a_i for each place i; s_t is the state of an LSTM.

without attention   s_0 = tanh(f([a_1 … a_S])),  s_t = LSTM(s_{t-1}, E y_{t-1})
with attention      s_0 = tanh(f(mean_i a_i)),   s_t = LSTM(s_{t-1}, [E y_{t-1}, z_t])
                    e_ti = v' tanh(U a_i + V s_{t-1}),  z_t = b_t sum_i softmax_i(e_ti) a_i,
                    b_t = sigmoid(w' s_{t-1})
Both write a word with probability softmax(L tanh(R [s_t, E y_{t-1}, z_t])), z_t where there is one;
f is linear between two layer norms.

Shapes: B batch, C channels, H height, W width, S places, D maps, T words, V vocabulary.
References: 2015, Vinyals, Toshev, Bengio, Erhan, Show and tell: a neural image caption generator,
arXiv 1411.4555; 2015, Xu et al., Show, attend and tell, arXiv 1502.03044 (soft attention).
Departs from them: without attention the image sets the first state instead of being read as a
first word; row and column of a place stand beside its maps, which matters where maps are few.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.language.seq2seq import StateCache
from castalia.nets.vision.convnet import ConvNet
from castalia.nn.attention import AdditiveAttention
from castalia.nn.recurrent import LSTMCell

__all__ = ["Captioner"]


class Captioner(nn.Module):
    """Convolutional encoder and LSTM decoder, ``net(x, decoder_ids)``.

    Parameters
    ----------
    channels
        Channels of the images.
    vocabulary
        Number of tokens.
    size
        Height and width of the images.
    widths, convs
        Channels of each stage of the ``ConvNet``, and convolutions in each; every stage but the
        last halves the map.
    dim
        Width of the words' vectors.
    hidden
        Width of the LSTM's state.
    attention
        Whether each word attends to the places of the image.
    dropout
        Probability for the vectors of words and below the output.

    Examples
    --------
    >>> net = Captioner(3, 20, size=(16, 16), widths=(8, 16), dim=8, hidden=12)
    >>> net(torch.zeros(2, 3, 16, 16), torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([2, 5, 20])
    """

    def __init__(
        self,
        channels: int,
        vocabulary: int,
        *,
        size: Sequence[int],
        widths: Sequence[int] = (32, 64, 128),
        convs: int = 2,
        dim: int = 128,
        hidden: int = 256,
        attention: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        body = ConvNet(channels, 1, widths=widths, convs=convs, size=size)
        self.features = body.features
        self.grid = [int(n) // body.least for n in size]  # places down and across
        seen = widths[-1] + 2
        gathered = seen if attention else 0
        self.tokens = nn.Embedding(vocabulary, dim)
        self.dropout = nn.Dropout(dropout)
        self.attention = AdditiveAttention(seen, query_dim=hidden) if attention else None
        self.gate = nn.Linear(hidden, 1) if attention else None
        places = 1 if attention else self.grid[0] * self.grid[1]
        self.begin = nn.Sequential(
            nn.LayerNorm(seen * places),
            nn.Linear(seen * places, 2 * hidden),
            nn.LayerNorm(2 * hidden),  # or tanh is saturated before the first details are learnt
        )
        self.cell = LSTMCell(dim + gathered, hidden)
        self.readout = nn.Linear(hidden + gathered + dim, dim)
        self.output = nn.Linear(dim, vocabulary)
        with torch.no_grad():  # at first the state is kept, for the image came in with it
            self.cell.u.bias[hidden : 2 * hidden] += 1

    def forward(
        self, x: Tensor, decoder_ids: Tensor, *, keep: Tensor | None = None
    ) -> Tensor:  # (B, C, H, W), (B, T)
        """Return the logits of the word after each of ``decoder_ids``, (B, T, V).

        Parameters
        ----------
        x
            Images.
        decoder_ids
            True words so far, the first being the start.
        keep
            Not needed: every place of an image is real.
        """
        return self.head(self.decode(decoder_ids, self.encode(x)))

    def encode(self, x: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, C, H, W)
        """Return a vector for each place, (B, S, D + 2): its maps, its row and its column."""
        maps = self.features(x)  # (B, D, h, w)
        rows, columns = (torch.linspace(-1, 1, n, device=x.device) for n in maps.shape[2:])
        where = torch.stack(torch.meshgrid(rows, columns, indexing="ij"))  # (2, h, w)
        where = where.to(maps.dtype).expand(len(x), -1, -1, -1)
        return torch.cat([maps, where], dim=1).flatten(2).transpose(1, 2)

    def decode(
        self,
        ids: Tensor,
        memory: Tensor,
        *,
        keep: Tensor | None = None,
        memory_keep: Tensor | None = None,
        cache: StateCache | None = None,
    ) -> Tensor:  # (B, T), (B, S, D + 2)
        """Return the vectors below the output layer, (B, T, dim).

        Parameters
        ----------
        ids
            Words, or the new ones with a cache.
        memory
            What ``encode`` returned.
        keep, memory_keep
            Not needed.
        cache
            Made by ``cache``: the state before these words.
        """
        return self._walk(ids, memory, cache)[0]

    def head(self, h: Tensor) -> Tensor:  # (..., dim)
        """Return the logits of vectors, (..., V)."""
        return self.output(self.dropout(h))

    def cache(self, batch: int, length: int, *, keep: Tensor | None = None) -> StateCache:
        """Return an empty cache; arguments as other networks have them."""
        return StateCache()

    def alignments(self, x: Tensor, decoder_ids: Tensor) -> Tensor:  # (B, C, H, W), (B, T)
        """Return what each word to be written attends to, (B, T, h, w); weights that sum to one."""
        if self.attention is None:
            raise InvalidParameter("Captioner: without attention there are no alignments.")
        return self._walk(decoder_ids, self.encode(x))[1].unflatten(2, self.grid)

    def _walk(
        self, ids: Tensor, memory: Tensor, cache: StateCache | None = None
    ) -> tuple[Tensor, Tensor]:
        """Go along the words; return vectors (B, T, dim) and weights (B, T, S)."""
        state = self._begin(memory) if cache is None or not cache.state else tuple(cache.state)
        keys = None if self.attention is None else self.attention.of_key(memory)
        known, weights = [], []
        for y in self.dropout(self.tokens(ids)).unbind(dim=1):  # (B, dim)
            z, a = self._look(state[0], memory, keys)
            read = torch.cat([y, z], dim=-1)
            h, state = self.cell.step(self.cell.lift(read), state)
            known.append(torch.cat([h, read], dim=-1))
            weights.append(a)
        if cache is not None:
            cache.keep(list(state))
            cache.seen += ids.shape[1]
        found = torch.tanh(self.readout(torch.stack(known, dim=1)))
        return found, torch.stack(weights, dim=1)

    def _begin(self, memory: Tensor) -> tuple[Tensor, ...]:
        """Return the state before the first word, twice (B, hidden)."""
        code = memory.flatten(1) if self.attention is None else memory.mean(dim=1)
        return torch.tanh(self.begin(code)).chunk(2, dim=-1)

    def _look(
        self, s: Tensor, memory: Tensor, keys: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # (B, hidden), (B, S, D + 2)
        """Return what a word gathers from the image, and its weights, (B, S)."""
        if self.attention is None or self.gate is None or keys is None:
            return memory[:, 0, :0], memory[:, :0, 0]  # nothing, of this format
        pairs = torch.tanh(self.attention.of_query(s)[:, None] + keys)
        a = self.attention.v(pairs).squeeze(-1).softmax(dim=-1)
        return torch.sigmoid(self.gate(s)) * (a[:, None] @ memory).squeeze(1), a
