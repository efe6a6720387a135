"""Attention to a neighbourhood at a cost that grows with T, not with T^2.

The sequence is cut into chunks. In ``block_attention`` a chunk attends to itself; in
``local_attention`` chunks of the window's length attend to themselves and their neighbours, under
the rule |i - j| < window. Both equal dense attention with the masks ``block`` and ``local``.
Shapes: B batch, H heads, T tokens, D width of a head, C chunks, S tokens of a chunk.
References: 2019, Child et al., Sparse transformers, arXiv 1904.10509; 2020, Beltagy, Peters, Cohan,
Longformer, arXiv 2004.05150.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.nn.attention.attention_masks import additive

__all__ = ["block_attention", "local_attention"]


def block_attention(q: Tensor, k: Tensor, v: Tensor, size: int, *, causal: bool = False) -> Tensor:
    """Return attention inside blocks of ``size`` tokens, (B, H, T, D).

    Parameters
    ----------
    q, k, v
        (B, H, T, D).
    size
        Tokens of a block; the last one may be shorter.
    causal
        Whether a token sees itself and the past only.

    Examples
    --------
    >>> x = torch.eye(4)[None, None]
    >>> block_attention(x, x, x, 2)[0, 0, 0]
    tensor([0.6225, 0.3775, 0.0000, 0.0000])
    """
    _check("block_attention", "size", size)
    length = q.shape[-2]
    place = torch.arange(size, device=q.device)
    chunks = -(-length // size)
    real = (torch.arange(chunks, device=q.device)[:, None] * size + place) < length  # (C, S)
    seen = real[:, None, :].expand(-1, size, -1)  # (C, S, S)
    if causal:
        seen = seen & (place[None, :] <= place[:, None])
    return _joined(_chunks(q, size), _chunks(k, size), _chunks(v, size), seen, length)


def local_attention(
    q: Tensor, k: Tensor, v: Tensor, window: int, *, causal: bool = False
) -> Tensor:
    """Return attention to keys nearer than ``window``, (B, H, T, D).

    Parameters
    ----------
    q, k, v
        (B, H, T, D).
    window
        As in the mask ``local``.
    causal
        Whether a token sees itself and the past only.

    Examples
    --------
    >>> x = torch.eye(4)[None, None]
    >>> local_attention(x, x, x, 2, causal=True)[0, 0, 1]
    tensor([0.3775, 0.6225, 0.0000, 0.0000])
    """
    _check("local_attention", "window", window)
    length, size = q.shape[-2], window
    chunks = -(-length // size)
    own = torch.arange(chunks * size, device=q.device).view(chunks, size)  # positions, (C, S)
    sides = (-1, 0) if causal else (-1, 0, 1)
    near = torch.cat([own + side * size for side in sides], dim=1)  # (C, sides * S)
    i, j = own[:, :, None], near[:, None, :]
    seen = ((i - j).abs() < window) & (j >= 0) & (j < length)
    if causal:
        seen = seen & (j <= i)
    keys, values = (_neighbours(_chunks(x, size), sides) for x in (k, v))
    return _joined(_chunks(q, size), keys, values, seen, length)


def _chunks(x: Tensor, size: int) -> Tensor:
    """Cut (B, H, T, D) into (B, H, C, S, D), with zeros at the end."""
    lack = -x.shape[-2] % size
    return F.pad(x, (0, 0, 0, lack)).unflatten(-2, (-1, size))


def _neighbours(x: Tensor, sides: tuple[int, ...]) -> Tensor:
    """Put the chunks beside each chunk into it, (B, H, C, sides * S, D)."""
    count = x.shape[2]
    padded = F.pad(x, (0, 0, 0, 0, 1, 1))
    return torch.cat([padded[:, :, 1 + side : 1 + side + count] for side in sides], dim=3)


def _joined(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, length: int) -> Tensor:
    """Attend inside each chunk and put the chunks one after the other again."""
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=additive(seen, q.dtype))
    return out.flatten(2, 3)[:, :, :length]


def _check(owner: str, name: str, value: int) -> None:
    if value < 1:
        raise InvalidParameter(f"{owner}: `{name}` must be a whole number from 1; got {value!r}.")
