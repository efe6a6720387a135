"""Attention: scores, masks, positions, the cache of a decoder, and transformer blocks."""

from castalia.nn.attention.attention_masks import (
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
from castalia.nn.attention.attention_scores import (
    AdditiveAttention,
    AttentionPooling,
    DotProductAttention,
    MultiplicativeAttention,
)
from castalia.nn.attention.key_value_cache import Cache
from castalia.nn.attention.masked_mean import masked_mean
from castalia.nn.attention.multihead_attention import MultiHeadAttention, attend
from castalia.nn.attention.position_encodings import (
    LearnedPositions,
    RelativeBias,
    Rotary,
    SinusoidalPositions,
    token_positions,
)
from castalia.nn.attention.sparse_attention import block_attention, local_attention
from castalia.nn.attention.transformer_blocks import (
    FeedForward,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)

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
