"""Attention: scores, masks, positions, the cache of a decoder, and transformer blocks."""

from castalia.nn.attention.blocks import (
    FeedForward,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from castalia.nn.attention.cache import Cache
from castalia.nn.attention.masks import (
    Mask,
    block,
    causal,
    full,
    global_tokens,
    local,
    padding,
    prefix,
    strided,
)
from castalia.nn.attention.mean import masked_mean
from castalia.nn.attention.multihead import MultiHeadAttention, attend
from castalia.nn.attention.positions import (
    LearnedPositions,
    RelativeBias,
    Rotary,
    SinusoidalPositions,
    token_positions,
)
from castalia.nn.attention.scores import (
    AdditiveAttention,
    AttentionPooling,
    DotProductAttention,
    MultiplicativeAttention,
)
from castalia.nn.attention.sparse import block_attention, local_attention

__all__ = [
    "AdditiveAttention",
    "AttentionPooling",
    "Cache",
    "DotProductAttention",
    "FeedForward",
    "LearnedPositions",
    "Mask",
    "MultiHeadAttention",
    "MultiplicativeAttention",
    "RelativeBias",
    "Rotary",
    "SinusoidalPositions",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "attend",
    "block",
    "block_attention",
    "causal",
    "full",
    "global_tokens",
    "local",
    "local_attention",
    "masked_mean",
    "padding",
    "prefix",
    "strided",
    "token_positions",
]
