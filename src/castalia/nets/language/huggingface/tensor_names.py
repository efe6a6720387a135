"""Tensors under two names: theirs and ours.

One table serves both ways. A rule joins one of our tensors to one of theirs, or to several that
stand one above the other in ours (queries, keys and values).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from castalia.errors import CheckpointMismatch
from castalia.utils.text import listing

__all__ = ["Rule", "ours", "pair", "theirs"]

WIDTHS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Rule:
    """Our tensor, and theirs in order of rows; ``flipped`` if theirs are (inputs, outputs).

    ``sizes`` are the rows of each of theirs; empty: all have as many.
    """

    ours: str
    theirs: tuple[str, ...]
    flipped: bool = False
    sizes: tuple[int, ...] = ()


def pair(
    ours: str,
    *theirs: str,
    flipped: bool = False,
    bias: bool = True,
    sizes: tuple[int, ...] = (),
) -> list[Rule]:
    """Return the rules of a layer's weight and bias."""
    rules = [Rule(f"{ours}.weight", tuple(f"{t}.weight" for t in theirs), flipped, sizes)]
    if bias:
        rules.append(Rule(f"{ours}.bias", tuple(f"{t}.bias" for t in theirs), sizes=sizes))
    return rules


def ours(rules: Iterable[Rule], given: Mapping[str, Tensor], net: nn.Module) -> dict[str, Tensor]:
    """Return our tensors from theirs.

    What is missing, too much or of another shape is named in the error.
    """
    rules = list(rules)
    wanted = [name for rule in rules for name in rule.theirs]
    absent = [name for name in wanted if name not in given]
    extra = sorted(set(given) - set(wanted))
    if absent or extra:
        raise CheckpointMismatch(_difference(net, absent, extra))
    shapes = {name: tensor.shape for name, tensor in net.state_dict().items()}
    found, dtype = {}, _one_type({name: given[name].dtype for name in wanted})
    for rule in rules:
        parts = [given[name].to(dtype) for name in rule.theirs]
        parts = [part.T for part in parts] if rule.flipped else parts
        whole = parts[0] if len(parts) == 1 else torch.cat(parts)
        if whole.shape != shapes[rule.ours]:
            raise CheckpointMismatch(
                f"load_pretrained: {listing(rule.theirs, 'and')} must give the shape "
                f"{tuple(shapes[rule.ours])} by `config.json`; got {tuple(whole.shape)}. Weights "
                "and configuration belong to different models."
            )
        found[rule.ours] = whole.contiguous()
    return found


def _one_type(types: Mapping[str, torch.dtype]) -> torch.dtype:
    """Return the type that all tensors get: the widest, where a file mixes them."""
    for name, dtype in types.items():
        if dtype not in WIDTHS:
            raise CheckpointMismatch(
                f"load_pretrained: `{name}` must hold real numbers of 16, 32 or 64 bits; got "
                f"{dtype}."
            )
    return max(types.values(), key=WIDTHS.index)


def theirs(rules: Iterable[Rule], net: nn.Module) -> dict[str, Tensor]:
    """Return their tensors from ours."""
    mine = net.state_dict()
    found = {}
    for rule in rules:
        whole, count = mine[rule.ours], len(rule.theirs)
        parts = whole.split(rule.sizes) if rule.sizes else whole.chunk(count)
        for name, part in zip(rule.theirs, parts, strict=True):
            found[name] = (part.T if rule.flipped else part).contiguous()
    return found


def _difference(net: nn.Module, absent: list[str], extra: list[str]) -> str:
    parts = []
    if absent:
        parts.append(f"{listing(absent, 'and')} must be there and are not")
    if extra:
        parts.append(f"{listing(extra, 'and')} have no place in it")
    remedy = " Set extra='ignore' to leave them out." if extra and not absent else ""
    return (
        f"load_pretrained: the weights do not fit {type(net).__name__}: {'; '.join(parts)}.{remedy}"
    )
