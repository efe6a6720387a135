"""Networks for tasks on an encoder: a label or a vector of a text, labels of tokens, a stretch.

The encoder reads ``begin a end b end`` with padding behind; from the ids alone it follows which
tokens are real and which belong to the second text.
Shapes: B batch, T tokens, K outputs.
References: 2019, Devlin, Chang, Lee, Toutanova, BERT, arXiv 1810.04805, 4; 2019, Reimers, Gurevych,
Sentence-BERT: sentence embeddings using siamese BERT-networks, arXiv 1908.10084.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.language.bert import BERT
from castalia.nn.attention import masked_mean

__all__ = ["EncoderClassifier", "EncoderSpans", "EncoderTagger", "SentenceVectors", "segments_of"]


def segments_of(ids: Tensor, *, end: int, padding: int) -> Tensor:
    """Return 0 for tokens of the first text, up to its end, and 1 for those after it.

    >>> segments_of(torch.tensor([[2, 7, 3, 8, 3, 0]]), end=3, padding=0)
    tensor([[0, 0, 0, 1, 1, 0]])
    """
    ends = ids == end
    return ((ends.long().cumsum(dim=1) - ends.long() > 0) & (ids != padding)).long()


class _OnEncoder(nn.Module):
    """An encoder and how it reads rows."""

    def __init__(self, encoder: BERT, *, end: int, padding: int) -> None:
        super().__init__()
        self.encoder, self.end, self.padding = encoder, end, padding

    def features(self, ids: Tensor) -> Tensor:  # (B, T)
        """Return a vector for each token, (B, T, dim)."""
        segments = None
        if self.encoder.segments.num_embeddings > 1 and not self.encoder.offset:
            segments = segments_of(ids, end=self.end, padding=self.padding)
        return self.encoder.features(ids, segments, keep=ids != self.padding)

    def _start_head(self, head: nn.Linear) -> nn.Linear:
        nn.init.normal_(head.weight, 0, 0.02)
        nn.init.zeros_(head.bias)
        return head


class EncoderClassifier(_OnEncoder):
    """Scores of a text or a pair of texts, from the first token or from all of them.

    Parameters
    ----------
    encoder
        The network that reads.
    outputs
        Number of scores, K.
    end, padding
        Ids of the end of a text and of padding.
    dropout
        Probability for the inputs of the last layer.
    pool
        ``"first"``: BERT's layer on the first token; ``"mean"``: the mean of the real tokens.

    Examples
    --------
    >>> net = EncoderClassifier(BERT(50, context=8, dim=8, depth=1, heads=2), 3, end=2, padding=0)
    >>> net(torch.tensor([[1, 7, 2, 0]])).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        encoder: BERT,
        outputs: int,
        *,
        end: int,
        padding: int,
        dropout: float = 0.0,
        pool: str = "first",
    ) -> None:
        super().__init__(encoder, end=end, padding=padding)
        self.dropout, self.pool = nn.Dropout(dropout), pool
        self.head = self._start_head(nn.Linear(encoder.dim, outputs))

    def forward(self, ids: Tensor) -> Tensor:  # (B, T)
        """Return the scores, (B, K)."""
        return self.head(self.dropout(self._pooled(self.features(ids), ids)))  # (B, K)

    def _pooled(self, h: Tensor, ids: Tensor) -> Tensor:  # (B, T, dim), (B, T)
        if self.pool == "first":
            return self.encoder.pool(h)
        return masked_mean(h, ids != self.padding)


class EncoderTagger(_OnEncoder):
    """Scores of each token.

    Parameters
    ----------
    encoder, outputs, end, padding, dropout
        As for ``EncoderClassifier``.

    Notes
    -----
    A row is (2, T): ids, and at the first piece of the n-th word n, elsewhere 0.

    Examples
    --------
    >>> net = EncoderTagger(BERT(50, context=8, dim=8, depth=1, heads=2), 3, end=2, padding=0)
    >>> net(torch.tensor([[[1, 7, 2, 0], [0, 1, 0, 0]]])).shape
    torch.Size([1, 4, 3])
    """

    def __init__(
        self, encoder: BERT, outputs: int, *, end: int, padding: int, dropout: float = 0.0
    ) -> None:
        super().__init__(encoder, end=end, padding=padding)
        self.dropout = nn.Dropout(dropout)
        self.head = self._start_head(nn.Linear(encoder.dim, outputs))

    def forward(self, x: Tensor) -> Tensor:  # (B, 2, T)
        """Return the scores at each token, (B, T, K)."""
        return self.head(self.dropout(self.features(x[:, 0])))  # (B, T, K)


class EncoderSpans(_OnEncoder):
    """Scores of each token as the first and as the last of an answer.

    The answer stands in the second text; the first token stands for no answer.

    Parameters
    ----------
    encoder, end, padding, dropout
        As for ``EncoderClassifier``.

    Notes
    -----
    A row is (3, T): ids, and where each piece of the second text begins and ends among its
    characters, counted from 1; elsewhere 0.

    Examples
    --------
    >>> net = EncoderSpans(BERT(50, context=8, dim=8, depth=1, heads=2), end=2, padding=0)
    >>> row = torch.tensor([[[1, 7, 2, 8, 2], [0, 0, 0, 1, 0], [0, 0, 0, 4, 0]]])
    >>> net(row)[0, :, 0] > -1e4
    tensor([ True, False, False,  True, False])
    """

    def __init__(self, encoder: BERT, *, end: int, padding: int, dropout: float = 0.0) -> None:
        super().__init__(encoder, end=end, padding=padding)
        self.dropout = nn.Dropout(dropout)
        self.head = self._start_head(nn.Linear(encoder.dim, 2))

    def forward(self, x: Tensor) -> Tensor:  # (B, 3, T)
        """Return the scores as first and as last token, (B, T, 2)."""
        scores = self.head(self.dropout(self.features(x[:, 0])))  # (B, T, 2)
        allowed = x[:, 2] > 0
        allowed = torch.cat([torch.ones_like(allowed[:, :1]), allowed[:, 1:]], dim=1)
        return scores.masked_fill(~allowed[..., None], -1e5)


class SentenceVectors(_OnEncoder):
    """An encoder that gives one unit vector for a text.

    Parameters
    ----------
    encoder
        The network that reads.
    end, padding
        Ids of the end of a text and of padding.
    pool
        ``"mean"`` of the real tokens, or the ``"first"`` token, without a layer on it.

    Examples
    --------
    >>> net = SentenceVectors(BERT(50, context=8, dim=8, depth=1, heads=2), end=2, padding=0)
    >>> round(net(torch.tensor([[1, 7, 2, 0]])).norm(dim=1).item(), 4)
    1.0
    """

    def __init__(self, encoder: BERT, *, end: int, padding: int, pool: str = "mean") -> None:
        super().__init__(encoder, end=end, padding=padding)
        if pool not in ("mean", "first"):
            raise InvalidParameter(
                f"SentenceVectors: `pool` must be 'mean' or 'first'; got {pool!r}."
            )
        self.pool = pool

    def forward(self, ids: Tensor) -> Tensor:  # (B, T)
        """Return the vectors, (B, dim)."""
        h = self.features(ids)  # (B, T, dim)
        found = h[:, 0] if self.pool == "first" else masked_mean(h, ids != self.padding)
        return F.normalize(found, dim=1)
