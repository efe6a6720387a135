"""LoRA: a linear layer is kept as it is, and a product of two narrow matrices is learnt beside it.

y = W x + (alpha / r) B A x,  A (r, inputs) random, B (outputs, r) zero at first: the network begins
where it was. r (inputs + outputs) numbers are trained instead of inputs * outputs.
Reference: 2021, Hu et al., LoRA: low-rank adaptation of large language models, arXiv 2106.09685.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter

__all__ = ["LoRA", "LoRALinear", "merge_lora", "unmerge_lora"]


class LoRALinear(nn.Linear):
    """A linear layer with a low-rank update; the names of its own tensors stay.

    Parameters
    ----------
    linear
        The layer; its tensors are taken over, not copied.
    rank
        Width of the update, r.
    alpha
        Scale of the update; it is divided by the rank.

    Examples
    --------
    >>> layer = LoRALinear(nn.Linear(6, 4), rank=2)
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'lora_down', 'lora_up', 'weight']
    """

    def __init__(self, linear: nn.Linear, rank: int = 8, alpha: float = 16.0) -> None:
        nn.Module.__init__(self)
        if not 1 <= rank <= min(linear.in_features, linear.out_features):
            raise InvalidParameter(
                f"LoRA: `rank` must be from 1 to {min(linear.in_features, linear.out_features)}, "
                f"the narrower side of the layer; got {rank!r}."
            )
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.scale = alpha / rank
        base = linear.weight
        self._parameters["weight"] = base  # type: ignore[assignment]  # `weight` is a property
        self.register_parameter("bias", linear.bias)
        self.lora_down = nn.Parameter(base.new_empty(rank, self.in_features))
        self.lora_up = nn.Parameter(base.new_zeros(self.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_down, a=math.sqrt(5))
        self.kept: Tensor | None = None  # W before it was merged

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """W + (alpha / r) B A, for who uses the matrix itself."""
        base: Tensor = self._parameters["weight"]  # type: ignore[assignment]
        return base if self.kept is not None else base + self.update()

    def update(self) -> Tensor:
        """Return (alpha / r) B A, (outputs, inputs)."""
        return self.scale * (self.lora_up @ self.lora_down)

    def forward(self, input: Tensor) -> Tensor:
        """Return W x + b + (alpha / r) B A x."""
        found = F.linear(input, self._parameters["weight"], self.bias)  # type: ignore[arg-type]
        if self.kept is not None:
            return found
        return found + self.scale * F.linear(F.linear(input, self.lora_down), self.lora_up)

    @torch.no_grad()
    def merge(self) -> None:
        """Add the update to W, so that the layer costs what it did before."""
        if self.kept is None:
            base: Tensor = self._parameters["weight"]  # type: ignore[assignment]
            kept = base.detach().clone()
            base.copy_(self.weight)
            self.kept = kept

    @torch.no_grad()
    def unmerge(self) -> None:
        """Put W back, to the bit."""
        if self.kept is not None:
            self._parameters["weight"].copy_(self.kept)  # type: ignore[union-attr]
            self.kept = None


@dataclass(frozen=True)
class LoRA:
    """Low-rank updates of some linear layers, all else frozen.

    Parameters
    ----------
    rank
        Width of an update.
    alpha
        Scale of an update; it is divided by the rank.
    pattern
        Regular expression; layers in whose name it is found get an update.

    Examples
    --------
    >>> net = LoRA(rank=1, pattern="0").apply(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    >>> [name for name, p in net.named_parameters() if p.requires_grad]
    ['0.lora_down', '0.lora_up']
    """

    rank: int = 8
    alpha: float = 16.0
    pattern: str = r"attention\.(qkv|out)$"

    def apply(self, net: nn.Module) -> nn.Module:
        """Change a network in place and return it."""
        pattern = layer_pattern("LoRA", self.pattern)
        found = [
            name
            for name, module in net.named_modules()
            if isinstance(module, nn.Linear) and pattern.search(name)
        ]
        if not found:
            raise no_match("LoRA", self.pattern, net, nn.Linear)
        net.requires_grad_(False)
        for name in found:
            owner, _, last = name.rpartition(".")
            layer = net.get_submodule(name)
            setattr(net.get_submodule(owner), last, LoRALinear(layer, self.rank, self.alpha))  # type: ignore[arg-type]
        return net


def layer_pattern(owner: str, pattern: str) -> re.Pattern[str]:
    """Compile a pattern of names, unless it could search for ever: it may come from a file.

    >>> layer_pattern("LoRA", "(a+)+$")
    Traceback (most recent call last):
    castalia.errors.InvalidParameter: LoRA: `pattern` must be a regular expression with at most 4 \
repeats and without repeated groups; got '(a+)+$'.
    """
    try:
        compiled = re.compile(pattern)
        repeats, groups = (len(re.findall(p, pattern)) for p in (r"[*+{]", r"(?<!\\)\)[*+{]"))
        if repeats <= 4 and not groups:
            return compiled
    except (re.error, TypeError, RecursionError, OverflowError):
        pass
    raise InvalidParameter(
        f"{owner}: `pattern` must be a regular expression with at most 4 repeats and without "
        f"repeated groups; got {pattern!r}."
    )


def no_match(owner: str, pattern: str, net: nn.Module, kind: type) -> InvalidParameter:
    """Say which names there are."""
    names = [name for name, module in net.named_modules() if isinstance(module, kind)]
    return InvalidParameter(
        f"{owner}: `pattern` must be found in the name of a layer; got {pattern!r}. Names are such "
        f"as {', '.join(names[:4])}."
    )


def merge_lora(net: nn.Module) -> nn.Module:
    """Add all updates to their layers, and return the network."""
    for module in net.modules():
        if isinstance(module, LoRALinear):
            module.merge()
    return net


def unmerge_lora(net: nn.Module) -> nn.Module:
    """Put all layers back as they were before ``merge_lora``, to the bit."""
    for module in net.modules():
        if isinstance(module, LoRALinear):
            module.unmerge()
    return net
