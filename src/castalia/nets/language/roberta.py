"""RoBERTa: BERT's equations without pairs of sentences, with positions that begin at row 2.

Reference: 2019, Liu et al., RoBERTa: a robustly optimized BERT pretraining approach, arXiv
1907.11692.
"""

from castalia.nets.language.bert import BERT

__all__ = ["RoBERTa"]


def RoBERTa(  # named as a network
    vocabulary: int,
    *,
    context: int = 512,
    dim: int = 768,
    depth: int = 12,
    heads: int = 12,
    hidden: int | None = None,
    segments: int = 1,
    dropout: float = 0.0,
    activation: str = "gelu",
    pooler: bool = False,
    masked: bool = True,
    eps: float = 1e-5,
) -> BERT:
    """Return a ``BERT`` with RoBERTa's settings.

    Examples
    --------
    >>> import torch
    >>> RoBERTa(50, context=16, dim=8, depth=2, heads=2)(torch.tensor([[0, 7, 2]])).shape
    torch.Size([1, 3, 50])
    """
    return BERT(
        vocabulary,
        context=context,
        dim=dim,
        depth=depth,
        heads=heads,
        hidden=hidden,
        segments=segments,
        dropout=dropout,
        activation=activation,
        masked_activation="gelu",
        offset=2,
        pooler=pooler,
        masked=masked,
        next_sentence=False,
        eps=eps,
    )
