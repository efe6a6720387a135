"""Bottleneck adapters: small networks behind the parts of a frozen one.

y -> y + U g(D y),  D narrows, U widens and is zero at first: the network begins where it was.
Reference: 2019, Houlsby et al., Parameter-efficient transfer learning for NLP, arXiv 1902.00751.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.adaptation.lora import layer_pattern, no_match

__all__ = ["Bottleneck", "BottleneckAdapters"]


class Bottleneck(nn.Module):
    """U g(D y), to be added to y.

    Parameters
    ----------
    dim
        Width of the vectors.
    width
        Width of the narrow layer.

    Examples
    --------
    >>> import torch
    >>> Bottleneck(8, 2)(torch.ones(1, 8)).abs().sum()
    tensor(0., grad_fn=<SumBackward0>)
    """

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(dim, width), nn.Linear(width, dim)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, y: Tensor) -> Tensor:
        """Return what is added to y."""
        return self.up(F.gelu(self.down(y)))


@dataclass(frozen=True)
class BottleneckAdapters:
    """A bottleneck behind some parts of a network, all else frozen.

    Parameters
    ----------
    width
        Width of the narrow layers.
    pattern
        Regular expression; parts in whose name it is found get one. Their outputs must be vectors
        of the width of their last linear layer.
    """

    width: int = 16
    pattern: str = r"(attention\.out|cross\.out|feed_forward)$"

    def apply(self, net: nn.Module) -> nn.Module:
        """Change a network in place and return it; the names of its tensors stay."""
        if self.width < 1:
            raise InvalidParameter(
                f"BottleneckAdapters: `width` must be a whole number from 1; got {self.width!r}."
            )
        pattern = layer_pattern("BottleneckAdapters", self.pattern)
        found = [m for name, m in net.named_modules() if pattern.search(name)]
        if not found:
            raise no_match("BottleneckAdapters", self.pattern, net, nn.Linear)
        net.requires_grad_(False)
        for module in found:
            last = [m for m in module.modules() if isinstance(m, nn.Linear)][-1]
            module.adapter = Bottleneck(last.out_features, self.width).to(last.weight)
            module.register_forward_hook(_add)
        return net


def _add(module: Any, given: Any, output: Tensor) -> Tensor:
    """Return y + adapter(y); a hook, so that the part itself stays as it is."""
    return output + module.adapter(output)
