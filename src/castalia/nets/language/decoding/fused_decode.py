"""Decode steps of GPT-2's network by kernels of our own, and which networks have one.

The kernels know norms before each part, learned positions, GELU by its approximation and plain
linear layers. Every other network takes its own way, which is the same computation.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nets.language.decoding.decode_kernels import (
    add_norm,
    embed_norm,
    look_back,
    row_step,
)
from castalia.nets.language.gpt import GPT
from castalia.nn.attention import Cache, MultiHeadAttention, TransformerEncoderBlock
from castalia.utils.devices import has_triton
from castalia.utils.triton_language import tl, triton

__all__ = ["ManyRows", "OneRow", "Step", "fused_step"]

TILE = 1 << 15  # weights that a program holds at once
WARPS = 8
LOOK = (32, 2)  # slots that a program reads together, and its warps
PARTS = 14  # pointers of a block: twelve weights, its keys and its values


def fused_step(net: nn.Module, cache: Cache) -> OneRow | ManyRows | None:
    """Return a faster step for a network and its cache; None where there is none."""
    if not isinstance(net, GPT) or not fusible(net):
        return None
    if len(cache.layers[0].keys) == 1 and cache.keep is None and 512 <= net.dim <= TILE // 16:
        step = OneRow(net, cache)
        if step.works():
            return step
    return ManyRows(net, cache)


def fusible(net: nn.Module) -> bool:
    """Say whether the kernels know a network."""
    if type(net) is not GPT or not has_triton(net.tokens.weight.device):
        return False
    dtype, head_dim = net.tokens.weight.dtype, net.dim // net.heads
    return (
        dtype in (torch.bfloat16, torch.float16, torch.float32)
        and not torch.is_autocast_enabled("cuda")
        and all(p.dtype == dtype and p.is_contiguous() for p in net.parameters())
        and all(p.data_ptr() % 16 == 0 for p in net.parameters())  # as vectors are loaded
        and net.dim % 16 == 0
        and head_dim in (16, 32, 64, 128)
        and net.positions is not None
        and isinstance(net.norm, nn.LayerNorm)
        and net.activation == "gelu_tanh"
        and all(_is_plain(block) for block in net.blocks)
        and not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    )


def _is_plain(block: nn.Module) -> bool:
    """Say whether a block has nothing but its own linear layers."""
    if type(block) is not TransformerEncoderBlock:
        return False
    attention, feed = block.attention, block.feed_forward
    linear = (attention.qkv, attention.out, feed.up, feed.down)
    return (
        type(attention) is MultiHeadAttention
        and attention.layout == "standard"
        and feed.gate is None
        and all(type(module) is nn.Linear for module in linear)
    )


class Step:
    """What both kinds of step hold: the weights, but not the network, which may go before them."""

    def __init__(self, net: GPT, cache: Cache) -> None:
        self.cache = cache
        self.rows, self.heads, self.slots, self.head_dim = cache.layers[0].keys.shape
        self.tokens, self.places = net.tokens.weight.detach(), _weight(net.positions)
        self.gain, self.shift = _weight(net.norm), _bias(net.norm)
        self.output = self.tokens if net.output is None else _weight(net.output)
        self.blocks = [_parts(block) for block in net.blocks]
        attention: Any = net.blocks[0].attention
        scale = attention.scale
        self.scale = self.head_dim**-0.5 if scale is None else scale
        self.eps = net.eps

    def __call__(self, ids: Tensor) -> Tensor:
        """Return the scores of the tokens after ``ids``, (B, V), and keep their keys and values."""
        raise NotImplementedError

    def restart(self) -> None:
        """Begin other texts."""

    def _advance(self, *others: Tensor) -> None:
        torch._foreach_add_([self.cache.position, *others], 1)
        self.cache.seen += 1


class OneRow(Step):
    """The step of a single row, which is one kernel.

    Parameters
    ----------
    net
        A network of which ``fusible`` holds.
    cache
        What was seen, of one row without padding.
    """

    def __init__(self, net: GPT, cache: Cache) -> None:
        super().__init__(net, cache)
        device = self.tokens.device
        self.words = torch.zeros(6 * net.dim + net.hidden, dtype=torch.long, device=device)
        self.vectors = self.words.split([net.dim, 3 * net.dim, net.dim, net.dim, net.hidden])
        self.epoch = torch.zeros((), dtype=torch.long, device=device)  # counts tokens, for tags
        self.logits = torch.zeros(1, net.vocabulary, device=device)
        self.table = self._pointers()
        self.sizes = self._sizes(net)

    def __call__(self, ids: Tensor) -> Tensor:
        """Return the scores of the token after ``ids``, (1, V)."""
        self._launch(ids)
        self._advance(self.epoch)
        return self.logits

    def restart(self) -> None:
        """Begin another text and count from 0: tags are 32 bits wide."""
        self.words.zero_()
        self.epoch.zero_()

    def works(self) -> bool:
        """Say whether Triton compiles the kernel for these sizes; to be asked before any prompt."""
        try:
            self._launch(self.cache.position.new_zeros(1, 1))
        except Exception:  # its compiler has bugs, and devices have bounds
            return False
        self.epoch.add_(1)  # what was published is not the next token's
        return True

    def _launch(self, ids: Tensor) -> None:
        shift = self.gain if self.shift is None else self.shift
        given = (self.tokens, self.places, self.table, self.gain, shift, self.output)
        state = (self.cache.position, self.epoch, *self.vectors, self.logits)
        numbers = (self.slots, self.scale, self.eps)
        # A cooperative launch: no program waits for one that found no place on the device.
        options = {"num_warps": WARPS, "launch_cooperative_grid": True}
        row_step[(self.sizes["PROGRAMS"],)](ids, *given, *state, *numbers, **self.sizes, **options)

    def _pointers(self) -> Tensor:
        """Return where the parts of every block lie, (depth, PARTS); 0 where there is no bias."""
        kept = [(layer.keys, layer.values) for layer in self.cache.layers]
        table = [
            [0 if part is None else part.data_ptr() for part in (*parts, *cached)]
            for parts, cached in zip(self.blocks, kept, strict=True)
        ]
        return torch.tensor(table, dtype=torch.long, device=self.tokens.device)

    def _sizes(self, net: GPT) -> dict[str, Any]:
        """Return what the kernel is compiled for."""
        programs = torch.cuda.get_device_properties(self.tokens.device).multi_processor_count
        wide, hidden_wide = triton.next_power_of_2(net.dim), triton.next_power_of_2(net.hidden)

        def tile(outputs: int, width: int) -> int:
            """Return how many columns a program computes together."""
            return min(TILE // width, triton.next_power_of_2(-(-outputs // programs)))

        return {
            "DEPTH": len(self.blocks),
            "PARTS": PARTS,
            "DTYPE": getattr(tl, str(self.tokens.dtype).removeprefix("torch.")),
            "BIAS": self.shift is not None,
            "DIM": net.dim,
            "HIDDEN": net.hidden,
            "VOCABULARY": net.vocabulary,
            "H": self.heads,
            "WIDE": wide,
            "HIDDEN_WIDE": hidden_wide,
            "TILE_QKV": tile(3 * net.dim, wide),
            "TILE_OUT": tile(net.dim, wide),
            "TILE_UP": tile(net.hidden, wide),
            "TILE_DOWN": tile(net.dim, hidden_wide),
            "TILE_HEAD": tile(net.vocabulary, wide),
            "BLOCK": 256,
            "PROGRAMS": programs,
        }


class ManyRows(Step):
    """The step of several rows: products of matrices, and kernels for what is between them.

    Parameters
    ----------
    net
        A network of which ``fusible`` holds.
    cache
        What was seen.
    """

    def __call__(self, ids: Tensor) -> Tensor:
        """Return the scores of the tokens after ``ids``, (B, V)."""
        x, h = self._embed_norm(ids, *self.blocks[0][:2])
        after = [*self.blocks[1:], (self.gain, self.shift)]
        for number, (parts, (next_gain, next_shift, *_)) in enumerate(
            zip(self.blocks, after, strict=True)
        ):
            _, _, qkv, qkv_bias, out, out_bias, gain, shift, up, up_bias, down, down_bias = parts
            mixed = self._look_back(F.linear(h, qkv, qkv_bias), number)
            h = self._add_norm(x, F.linear(mixed, out, out_bias), gain, shift)
            h = _gelu_linear(h, up, up_bias)
            h = self._add_norm(x, F.linear(h, down, down_bias), next_gain, next_shift)
        self._advance()
        # This way round the product has rows of an even length, whatever the vocabulary.
        return (self.output @ h.T).T

    def _embed_norm(self, ids: Tensor, gain: Tensor, shift: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the vectors of the tokens and their norms."""
        position, skipped = self.cache.position, self.cache.skipped
        x = self.tokens.new_empty(self.rows, self.tokens.shape[1])
        out, padded = torch.empty_like(x), skipped is not None
        given = (ids, self.tokens, self.places, position, skipped if padded else position)
        sizes = _norm_sizes(x, shift) | {"PADDED": padded}
        shift = gain if shift is None else shift
        embed_norm[(self.rows,)](*given, gain, shift, x, out, self.eps, **sizes)
        return x, out

    def _look_back(self, qkv: Tensor, number: int) -> Tensor:
        cache, layer = self.cache, self.cache.layers[number]
        out = qkv.new_empty(self.rows, self.heads * self.head_dim)
        keep = layer.keys if cache.keep is None else cache.keep.view(torch.uint8)
        look_back[(self.rows * self.heads,)](
            qkv,
            layer.keys,
            layer.values,
            keep,
            cache.position,
            out,
            self.slots,
            self.scale,
            PADDED=cache.keep is not None,
            BLOCK=LOOK[0],
            H=self.heads,
            D=self.head_dim,
            num_warps=LOOK[1],
        )
        return out

    def _add_norm(self, x: Tensor, more: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
        """Add to x in place; return its norm."""
        out = torch.empty_like(x)
        given = (x, more, gain, gain if shift is None else shift, out, self.eps)
        add_norm[(self.rows,)](*given, **_norm_sizes(x, shift))
        return out


def _norm_sizes(x: Tensor, shift: Tensor | None) -> dict[str, Any]:
    """Return what kernels that end with a norm are compiled for."""
    width = x.shape[-1]
    return {"K": width, "WIDE": triton.next_power_of_2(width), "SHIFTED": shift is not None}


def _gelu_linear(h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return gelu(h W' + b); in half precision cuBLAS does all of it in one kernel."""
    if bias is None or h.dtype == torch.float32:
        return F.gelu(F.linear(h, weight, bias), approximate="tanh")
    return torch._addmm_activation(bias, h, weight.T, use_gelu=True)


def _parts(block: Any) -> list[Any]:
    """Return weight and bias of a block's layers, in the order of their use."""
    attention, feed = block.attention, block.feed_forward
    layers = (block.norm1, attention.qkv, attention.out, block.norm2, feed.up, feed.down)
    return [part for module in layers for part in (_weight(module), _bias(module))]


def _weight(module: Any) -> Tensor:
    return module.weight.detach()


def _bias(module: Any) -> Tensor | None:
    return None if module.bias is None else module.bias.detach()
