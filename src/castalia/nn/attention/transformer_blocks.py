"""Transformer blocks: attention and a position-wise network, each with a residual and a norm.

post-norm (the original)   x <- norm(x + f(x))
pre-norm (GPT-2, T5)       x <- x + f(norm(x)), and a last norm after all blocks

The position-wise network is g(x W1 + b1) W2 + b2, or, gated, (g(x W1) * x W3) W2.
Shapes: B batch, T tokens, M tokens of the memory.
References: 2017, Vaswani et al., Attention is all you need, arXiv 1706.03762; 2019, Radford et al.,
Language models are unsupervised multitask learners; 2020, Shazeer, GLU variants improve
transformer, arXiv 2002.05202.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.activations import activation as make_activation
from castalia.nn.attention.attention_masks import Mask
from castalia.nn.attention.key_value_cache import Cache
from castalia.nn.attention.multihead_attention import MultiHeadAttention
from castalia.nn.attention.position_encodings import Rotary
from castalia.utils.text import listing

__all__ = ["FeedForward", "TransformerDecoderBlock", "TransformerEncoderBlock"]

NORMS: dict[str, Callable[[int, float, bool], nn.Module]] = {
    "layer": lambda dim, eps, bias: nn.LayerNorm(dim, eps=eps, bias=bias),
    "rms": lambda dim, eps, bias: nn.RMSNorm(dim, eps=eps),
}


def make_norm(kind: str, dim: int, eps: float, bias: bool) -> nn.Module:
    """Return a fresh norm of a kind of ``NORMS``."""
    if kind not in NORMS:
        raise InvalidParameter(f"nn: `norm` must be {listing(NORMS)}; got {kind!r}.")
    return NORMS[kind](dim, eps, bias)


def block_activation(name: str) -> nn.Module:
    """Return a fresh activation: one of ``castalia.nn.ACTIVATIONS``, or GPT-2's GELU."""
    return nn.GELU(approximate="tanh") if name == "gelu_tanh" else make_activation(name)


class FeedForward(nn.Module):
    """The same small network at every position.

    Parameters
    ----------
    dim
        Width of the vectors.
    hidden
        Hidden units.
    activation
        A name of ``castalia.nn.ACTIVATIONS``, or ``"gelu_tanh"``, GPT-2's approximation of it.
    bias
        Whether the layers have one.
    gated
        Whether the hidden units are multiplied by a second projection.

    Examples
    --------
    >>> import torch
    >>> FeedForward(4, 16)(torch.ones(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        activation: str = "relu",
        bias: bool = True,
        gated: bool = False,
    ) -> None:
        super().__init__()
        self.up = nn.Linear(dim, hidden, bias=bias)
        self.gate = nn.Linear(dim, hidden, bias=bias) if gated else None
        self.activation = block_activation(activation)
        self.down = nn.Linear(hidden, dim, bias=bias)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, dim)
        """Return the outputs, (B, T, dim)."""
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


class TransformerEncoderBlock(nn.Module):
    """Self-attention and a position-wise network; with a causal mask, a decoder-only block.

    Parameters
    ----------
    dim
        Width of the vectors.
    heads
        Attention heads.
    hidden
        Units of the position-wise network; None: 4 ``dim``.
    head_dim
        Width of a head; None: ``dim / heads``.
    activation
        Of the position-wise network.
    dropout
        Probability for attention weights and for the output of each part.
    pre_norm
        Whether the norm stands before each part instead of after the residual.
    norm
        ``"layer"`` or ``"rms"`` (T5's, without mean and shift).
    bias
        Whether linear layers and norms have a bias.
    gated
        Whether the position-wise network is gated.
    eps
        Smallest variance of the norms.
    scale
        Factor of the products; None: 1 / sqrt(head_dim).
    rotary
        Turns queries and keys by their positions.

    Examples
    --------
    >>> import torch
    >>> TransformerEncoderBlock(8, heads=2)(torch.ones(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        hidden: int | None = None,
        head_dim: int | None = None,
        activation: str = "relu",
        dropout: float = 0.0,
        pre_norm: bool = False,
        norm: str = "layer",
        bias: bool = True,
        gated: bool = False,
        eps: float = 1e-5,
        scale: float | None = None,
        rotary: Rotary | None = None,
    ) -> None:
        super().__init__()
        self.pre_norm = pre_norm
        self.attention = MultiHeadAttention(
            dim, heads, head_dim=head_dim, bias=bias, dropout=dropout, scale=scale, rotary=rotary
        )
        self.feed_forward = FeedForward(
            dim, hidden or 4 * dim, activation=activation, bias=bias, gated=gated
        )
        self.norm1 = make_norm(norm, dim, eps, bias)
        self.norm2 = make_norm(norm, dim, eps, bias)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Mask | None = None,
        bias: Tensor | None = None,
        cache: Cache | None = None,
        layer: int = 0,
    ) -> Tensor:  # (B, T, dim)
        """Return the vectors of the next block, (B, T, dim); arguments as for the attention."""

        def attention(h: Tensor) -> Tensor:
            return self.attention(h, mask=mask, bias=bias, cache=cache, layer=layer)

        x = residual(x, attention, self.norm1, self.dropout, self.pre_norm)
        return residual(x, self.feed_forward, self.norm2, self.dropout, self.pre_norm)


class TransformerDecoderBlock(nn.Module):
    """Causal self-attention, attention to a memory, and a position-wise network.

    Parameters
    ----------
    dim, heads, hidden, head_dim, activation, dropout, pre_norm, norm, bias, gated, eps, scale
        As for ``TransformerEncoderBlock``.

    Examples
    --------
    >>> import torch
    >>> from castalia.nn.attention import causal
    >>> block = TransformerDecoderBlock(8, heads=2)
    >>> block(torch.ones(1, 3, 8), torch.ones(1, 5, 8), mask=causal()).shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        hidden: int | None = None,
        head_dim: int | None = None,
        activation: str = "relu",
        dropout: float = 0.0,
        pre_norm: bool = False,
        norm: str = "layer",
        bias: bool = True,
        gated: bool = False,
        eps: float = 1e-5,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.pre_norm = pre_norm
        self.attention, self.cross = (
            MultiHeadAttention(
                dim, heads, head_dim=head_dim, bias=bias, dropout=dropout, scale=scale
            )
            for _ in range(2)
        )
        self.feed_forward = FeedForward(
            dim, hidden or 4 * dim, activation=activation, bias=bias, gated=gated
        )
        self.norm1, self.norm2, self.norm3 = (make_norm(norm, dim, eps, bias) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        mask: Mask | None = None,
        memory_mask: Mask | None = None,
        bias: Tensor | None = None,
        cache: Cache | None = None,
        layer: int = 0,
    ) -> Tensor:  # (B, T, dim), (B, M, dim)
        """Return the vectors of the next block, (B, T, dim).

        Parameters
        ----------
        x
            Vectors of the tokens.
        memory
            Vectors attended to.
        mask
            Of the self-attention.
        memory_mask
            Of the attention to the memory.
        bias
            Added to the scores of the self-attention.
        cache
            Keeps what both attentions need of earlier tokens.
        layer
            Number of the block.
        """

        def attention(h: Tensor) -> Tensor:
            return self.attention(h, mask=mask, bias=bias, cache=cache, layer=layer)

        def cross(h: Tensor) -> Tensor:
            return self.cross(h, memory, mask=memory_mask, cache=cache, layer=layer)

        x = residual(x, attention, self.norm1, self.dropout, self.pre_norm)
        x = residual(x, cross, self.norm2, self.dropout, self.pre_norm)
        return residual(x, self.feed_forward, self.norm3, self.dropout, self.pre_norm)


def residual(
    x: Tensor,
    f: Callable[[Tensor], Tensor],
    norm: nn.Module,
    dropout: nn.Module,
    pre_norm: bool,
) -> Tensor:
    """Return x + f(norm(x)), or norm(x + f(x))."""
    if pre_norm:
        return x + dropout(f(norm(x)))
    return norm(x + dropout(f(x)))
