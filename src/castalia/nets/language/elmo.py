"""ELMo: two recurrent language models, one in each direction, on one layer of tokens.

x_k = token layer,  h_k,0 = [x_k, x_k]
forward   f_k,j = LSTM_j(f_1..k,j-1),  p(x_{k+1} | x_1..k) = softmax(W f_k,L + b)
backward  b_k,j = LSTM_j(b_n..k,j-1),  p(x_{k-1} | x_k..n) = softmax(W b_k,L + b)
h_k,j = [f_k,j, b_k,j]: the vectors of token k, one a layer, which depend on the whole sentence.
Layers from the second on add their input; the token layer and W are shared by the two directions.

The token layer is a table, or it reads how a token is written: convolutions over its bytes, the
maximum over places, highway layers y = t relu(A x) + (1 - t) x, and a projection.

Shapes: B batch, T tokens, W letters, V vocabulary, L depth.
References: 2018, Peters et al., Deep contextualized word representations, arXiv 1802.05365; 2016,
Kim, Jernite, Sontag, Rush, Character-aware neural language models, arXiv 1508.06615; 2016,
Jozefowicz et al., Exploring the limits of language modeling, arXiv 1602.02410 (projections).
Departs from them: a full softmax instead of a sampled one; states begin at zero in each sentence.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.attention import masked_mean
from castalia.nn.layers.scalar_mix import ScalarMix

__all__ = ["ELMo", "ELMoReader", "SpelledTokens"]

LETTER_DIM = 16
# Of the paper, where dim is 512: width of a filter and how many there are.
FILTERS = {1: 32, 2: 32, 3: 64, 4: 128, 5: 256, 6: 512, 7: 1024}
PAPER_DIM = 512


class SpelledTokens(nn.Module):
    """Vectors of tokens from how they are written, so that no word is unknown.

    Parameters
    ----------
    dim
        Width of a vector; the numbers of filters are the paper's, 2,048 in all for 512, to scale.
    letters
        Numbers of a spelling, W.
    alphabet
        How many different numbers a spelling may hold; 0 is nothing.
    highways
        Highway layers.

    Examples
    --------
    >>> SpelledTokens(8, letters=6)(torch.tensor([[[257, 98, 258, 0, 0, 0]]])).shape
    torch.Size([1, 1, 8])
    """

    def __init__(self, dim: int, *, letters: int, alphabet: int = 261, highways: int = 2) -> None:
        super().__init__()
        counts = {
            width: max(4, round(count * dim / PAPER_DIM))
            for width, count in FILTERS.items()
            if width <= letters
        }
        total = sum(counts.values())
        self.letters = nn.Embedding(alphabet, LETTER_DIM, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(LETTER_DIM, n, w) for w, n in counts.items())
        self.highways = nn.ModuleList(nn.Linear(total, 2 * total) for _ in range(highways))
        self.project = nn.Linear(total, dim)
        for layer in self.highways:  # begin with gates that mostly carry
            nn.init.constant_(layer.bias[total:], -1.0)  # type: ignore[index]

    def forward(self, spelled: Tensor) -> Tensor:  # (..., W)
        """Return a vector for each spelling, (..., dim)."""
        x = self.letters(spelled.flatten(0, -2)).transpose(1, 2)  # (N, LETTER_DIM, W)
        x = torch.cat([F.relu(conv(x).amax(dim=2)) for conv in self.filters], dim=1)  # (N, total)
        for layer in self.highways:
            new, gate = layer(x).chunk(2, dim=1)
            x = x + torch.sigmoid(gate) * (F.relu(new) - x)
        return self.project(x).unflatten(0, spelled.shape[:-1])


class ELMo(nn.Module):
    """Language model in both directions, whose layers are vectors of the tokens.

    Parameters
    ----------
    vocabulary
        Tokens that are predicted, V.
    dim
        Width of a token's vector, and of each direction.
    depth
        Recurrent layers of each direction, L.
    hidden
        Cells of an LSTM, whose outputs are projected to ``dim``; None: ``dim``, not projected.
    letters
        Numbers of a spelling; 0: tokens are looked up in a table.
    dropout
        Probability for the vectors of tokens and the output of each layer.
    padding
        Id of padding, which stands behind a sentence.
    predicts
        Whether there is an output layer.

    Notes
    -----
    A row is ids, (T,), or (C, T): ids first, and the spellings in the last ``letters`` of C.

    Examples
    --------
    >>> net = ELMo(50, dim=8)
    >>> net(torch.tensor([[2, 7, 9, 3, 0]])).shape
    torch.Size([1, 5, 2, 50])
    >>> [h.shape for h in net.layers(torch.tensor([[2, 7, 9, 3, 0]]))]
    [torch.Size([1, 5, 16]), torch.Size([1, 5, 16]), torch.Size([1, 5, 16])]
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        dim: int = 128,
        depth: int = 2,
        hidden: int | None = None,
        letters: int = 0,
        dropout: float = 0.1,
        padding: int = 0,
        predicts: bool = True,
    ) -> None:
        super().__init__()
        if hidden is not None and hidden <= dim:
            raise InvalidParameter(
                f"ELMo: `hidden` must be None or more than dim={dim}, to which it is projected; "
                f"got {hidden}."
            )
        self.vocabulary, self.dim, self.depth, self.hidden = vocabulary, dim, depth, hidden
        self.letters, self.padding = letters, padding
        self.tokens = SpelledTokens(dim, letters=letters) if letters else _table(vocabulary, dim)
        self.dropout = nn.Dropout(dropout)
        self.forwards, self.backwards = (
            nn.ModuleList(
                nn.LSTM(dim, hidden or dim, batch_first=True, proj_size=dim if hidden else 0)
                for _ in range(depth)
            )
            for _ in range(2)
        )
        self.output = nn.Linear(dim, vocabulary) if predicts else None

    def forward(self, x: Tensor) -> Tensor:  # (B, T) or (B, C, T)
        """Return the logits of the token after each one and of that before it, (B, T, 2, V)."""
        if self.output is None:
            raise InvalidParameter("ELMo: without an output layer it predicts nothing.")
        top = self.layers(x)[-1].unflatten(-1, (2, self.dim))  # (B, T, 2, dim)
        return self.output(self.dropout(top))

    def ids(self, x: Tensor) -> Tensor:
        """Return the ids of rows, (B, T)."""
        return x if x.ndim == 2 else x[:, 0]

    def layers(self, x: Tensor) -> list[Tensor]:
        """Return h_0 to h_L, each (B, T, 2 dim); what stands at padding means nothing."""
        mirror = _mirror(self.ids(x) != self.padding)[..., None]  # (B, T, 1)
        ahead = self.dropout(self._embed(x))
        back = ahead.take_along_dim(mirror, dim=1)  # each sentence from its end
        found = [torch.cat([ahead, ahead], dim=-1)]
        for layer, (forwards, backwards) in enumerate(
            zip(self.forwards, self.backwards, strict=True)
        ):
            below = (ahead, back) if layer else (0.0, 0.0)
            ahead = self.dropout(_along(forwards, ahead)) + below[0]
            back = self.dropout(_along(backwards, back)) + below[1]
            found.append(torch.cat([ahead, back.take_along_dim(mirror, dim=1)], dim=-1))
        return found

    def _embed(self, x: Tensor) -> Tensor:
        """Return a vector for each token by itself, (B, T, dim)."""
        if not self.letters:
            return self.tokens(self.ids(x))
        return self.tokens(x[:, -self.letters :].transpose(1, 2))


class ELMoReader(nn.Module):
    """Scores of a sentence, or of each of its tokens, from a mix of ELMo's layers.

    y = V pool_k(gamma sum_j softmax(s)_j h_k,j) + b: a task learns V, b, s and gamma; ELMo may be
    frozen.

    Parameters
    ----------
    encoder
        The language model.
    outputs
        Number of scores, K.
    pool
        ``"mean"`` or ``"max"`` over the tokens, or None: scores for each token.
    dropout
        Probability for the mixed vectors.
    norm
        Whether layers are normalised before they are mixed.

    Examples
    --------
    >>> net = ELMoReader(ELMo(50, dim=8, predicts=False), 3)
    >>> net(torch.tensor([[2, 7, 9, 3, 0]])).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        encoder: ELMo,
        outputs: int,
        *,
        pool: str | None = "mean",
        dropout: float = 0.0,
        norm: bool = False,
    ) -> None:
        super().__init__()
        if pool not in ("mean", "max", None):
            raise InvalidParameter(
                f"ELMoReader: `pool` must be 'mean', 'max' or None; got {pool!r}."
            )
        self.encoder, self.pool = encoder, pool
        self.mix = ScalarMix(1 + encoder.depth, norm=norm)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(2 * encoder.dim, outputs)

    def forward(self, x: Tensor) -> Tensor:  # (B, T) or (B, C, T)
        """Return the scores, (B, K), or (B, T, K) where nothing is pooled."""
        h = self.mix(self.encoder.layers(x))  # (B, T, 2 dim)
        if self.pool is not None:
            keep = self.encoder.ids(x) != self.encoder.padding  # (B, T)
            h = masked_mean(h, keep) if self.pool == "mean" else _maximum(h, keep)
        return self.head(self.dropout(h))


def _table(vocabulary: int, dim: int) -> nn.Embedding:
    table = nn.Embedding(vocabulary, dim)
    nn.init.normal_(table.weight, 0, dim**-0.5)
    return table


def _along(lstm: nn.Module, x: Tensor) -> Tensor:
    """Return the outputs of an LSTM; oneDNN has none with projections, and would say so."""
    if not lstm.proj_size or x.device.type != "cpu":
        return lstm(x)[0]
    before = torch._C._get_mkldnn_enabled()
    try:
        torch._C._set_mkldnn_enabled(False)
        return lstm(x)[0]
    finally:
        torch._C._set_mkldnn_enabled(before)


def _mirror(keep: Tensor) -> Tensor:  # (B, T)
    """Return, for each place, that which mirrors it in its sentence, (B, T); padding stays."""
    place = torch.arange(keep.shape[1], device=keep.device)
    last = keep.sum(dim=1, keepdim=True) - 1
    return torch.where(place <= last, last - place, place)


def _maximum(h: Tensor, keep: Tensor) -> Tensor:
    return h.masked_fill(~keep[..., None], -torch.inf).amax(dim=1)
