"""Attention weights of any network, caught while it runs.

torch calls every attention by one of three names, whoever wrote the module around it:
``multi_head_attention_forward`` (``nn.MultiheadAttention``), ``scaled_dot_product_attention``, or
a softmax over (B, heads, queries, keys) written out. These calls are listened to; the network and
its outputs stay as they are.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from castalia.evaluate.network_probe import run
from castalia.nn import evaluating

__all__ = ["Attended", "attention_weights", "dot_product_weights"]

SOFTMAXES = (F.softmax, torch.softmax, Tensor.softmax)
_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


@dataclass(frozen=True)
class Attended:
    """One attention: the innermost module that computed it, and weights (B, heads, Q, K)."""

    name: str
    weights: Tensor


def attention_weights(net: nn.Module, x: Any) -> list[Attended]:
    """Return the weights of every attention of a network, in the order of the calls.

    It runs in evaluation mode and is left as it was, bit for bit.

    Parameters
    ----------
    net
        Any module.
    x
        Inputs on its device; several come as a tuple.

    Examples
    --------
    >>> layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    >>> [(a.name, a.weights.shape) for a in attention_weights(layer, torch.ones(1, 5, 8))]
    [('self_attn', torch.Size([1, 2, 5, 5]))]
    """
    catch = _Catch()
    handles = []
    for name, module in net.named_modules():
        handles.append(module.register_forward_pre_hook(catch.enters(name)))
        handles.append(module.register_forward_hook(catch.leaves))
    try:
        with evaluating(net), catch:
            run(net, x)
    finally:
        for handle in handles:
            handle.remove()
    return catch.found


class _Catch(TorchFunctionMode):
    """Sees every call of a torch function, and knows which module is running."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Attended] = []
        self.inside: list[str] = []

    def enters(self, name: str) -> Callable[..., None]:
        return lambda *_: self.inside.append(name)

    def leaves(self, *_: Any) -> None:
        self.inside.pop()

    def keep(self, weights: Tensor) -> None:
        self.found.append(Attended(self.inside[-1] if self.inside else "", weights.detach()))

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.multi_head_attention_forward:
            return self._multihead(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            self.keep(_batched(dot_product_weights(*args, **kwargs)))
        out = func(*args, **kwargs)
        if func in SOFTMAXES and out.ndim == 4:
            dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
            if dim in (-1, 3):
                self.keep(out)
        return out

    def _multihead(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        """Ask for the weights of each head, and give back what was asked for."""
        call = _SIGNATURE.bind(*args, **kwargs)
        call.apply_defaults()
        wanted = call.arguments["need_weights"], call.arguments["average_attn_weights"]
        call.arguments.update(need_weights=True, average_attn_weights=False)
        weights: Any  # never None, as asked for
        out, weights = F.multi_head_attention_forward(*call.args, **call.kwargs)
        self.keep(_batched(weights))
        if not wanted[0]:
            return out, None
        return out, weights.mean(dim=-3) if wanted[1] else weights


def _batched(weights: Tensor) -> Tensor:
    """Return (B, heads, Q, K) for weights that lack the batch, or batch and heads."""
    while weights.ndim < 4:
        weights = weights.unsqueeze(0)
    return weights.flatten(0, -4)


def dot_product_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(q k' / sqrt(d) + mask), (…, Q, K), of torch's scaled dot-product attention.

    Parameters
    ----------
    query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
        As for ``torch.nn.functional.scaled_dot_product_attention``; dropout is not applied.

    Examples
    --------
    >>> x = torch.eye(2)
    >>> dot_product_weights(x, x, x, is_causal=True)[0]
    tensor([1., 0.])
    """
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)) * scale  # (…, Q, K)
    if is_causal:
        past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~past, -torch.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        else:
            scores = scores + attn_mask
    return scores.softmax(dim=-1)
