"""Five networks of equal blocks that answer texts, and what they cost.

With L blocks of P weights in all: encoder and decoder of L blocks each have 2 P and the cost M of a
language model of L blocks on source and answer together; sharing them leaves P; halving their depth
leaves P and M / 2. The decoder's attention to the source, which only the first three have, is
counted by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from castalia.lab.transfer.invented_language import VOCABULARY, WIDTH
from castalia.models.language.pretrained.encoder_parameters import as_wide
from castalia.nets.language import GPT, T5
from castalia.nn.attention import prefix

__all__ = [
    "ARCHITECTURES",
    "TextToTextLM",
    "block_parameters",
    "cross_parameters",
    "forward_flops",
    "share_halves",
]

SIZES: dict[str, Any] = {"dim": 32, "heads": 2, "hidden": 64}


class TextToTextLM(nn.Module):
    """A language model that reads a source and goes on with the answer.

    Parameters
    ----------
    decoder
        The network.
    sees_source
        Whether the tokens of the source see each other in both directions (a prefix LM).
    """

    def __init__(self, decoder: GPT, *, sees_source: bool) -> None:
        super().__init__()
        self.decoder, self.sees_source = decoder, sees_source

    def forward(self, ids: Tensor, decoder_ids: Tensor, *, keep: Tensor) -> Tensor:
        """Return the logits of the token after each of ``decoder_ids``, (B, T, V)."""
        width = ids.shape[1]
        both = torch.cat([ids, decoder_ids], dim=1)
        real = torch.cat([keep, torch.ones_like(decoder_ids, dtype=torch.bool)], dim=1)
        lengths = torch.full((len(ids),), width, device=ids.device)
        mask = prefix(lengths) if self.sees_source else None
        h = self.decoder.features(both, keep=real, mask=mask)
        return self.decoder.head(h[:, width:])


def share_halves(net: T5) -> T5:
    """Let the decoder use the encoder's blocks; its attention to the source stays its own."""
    for encoder, decoder in zip(net.encoder, net.decoder, strict=True):
        decoder.attention, decoder.feed_forward = encoder.attention, encoder.feed_forward
    return net


def _t5(depth: int) -> T5:
    return T5(VOCABULARY, depth=depth, head_dim=SIZES["dim"] // SIZES["heads"], **SIZES)


def _lm(depth: int, sees_source: bool) -> TextToTextLM:
    same: dict[str, Any] = {"activation": "relu", "bias": False}  # as T5's blocks
    decoder = GPT(VOCABULARY, context=2 * WIDTH, depth=depth, **SIZES, **same)
    as_wide(decoder)
    return TextToTextLM(decoder, sees_source=sees_source)


ARCHITECTURES: dict[str, Callable[[int], nn.Module]] = {
    "encoder–decoder": _t5,
    "shared": lambda depth: share_halves(_t5(depth)),
    "half the depth": lambda depth: _t5(depth // 2),
    "language model": lambda depth: _lm(depth, False),
    "prefix LM": lambda depth: _lm(depth, True),
}


def _parts(net: nn.Module, kinds: tuple[str, ...]) -> int:
    return sum(
        p.numel()
        for name, p in net.named_parameters()  # a shared tensor is named once
        if p.ndim == 2 and any(f".{kind}." in name for kind in kinds)
    )


def block_parameters(net: nn.Module) -> int:
    """Return the weights of self-attention and position-wise networks."""
    return _parts(net, ("attention", "feed_forward"))


def cross_parameters(net: nn.Module) -> int:
    """Return the weights of the attention to the source."""
    return _parts(net, ("cross",))


def forward_flops(net: Any) -> int:
    """Return the operations of the blocks in one pass over a pair of ``WIDTH`` tokens each side.

    Two for each weight and each token it is applied to. Half of the weights that read the source
    are applied to the source and half to the answer. The products of queries and keys, small for
    short texts, are left out, as is the output layer, which all networks share.
    """
    if isinstance(net, TextToTextLM):
        blocks, tokens = [*net.decoder.blocks], 2 * WIDTH
    else:
        blocks, tokens = [*net.encoder, *net.decoder], WIDTH  # shared ones are used twice
    return 2 * tokens * sum(p.numel() for block in blocks for p in block.parameters() if p.ndim > 1)
