"""Readouts: the states of all nodes of a graph as one vector, whatever their order and number.

Shapes: N nodes of all packed graphs, B graphs, F states.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["READOUTS", "AttentionReadout", "Readout", "UniversalReadout", "readout"]


def _sums(h: Tensor, starts: Tensor) -> Tensor:
    return torch.segment_reduce(h.contiguous(), "sum", offsets=starts)


class Readout(nn.Module):
    """Sum, mean or maximum over the nodes of each graph.

    Sums tell how large a graph is, means forget it.

    Parameters
    ----------
    kind
        ``"sum"``, ``"mean"`` or ``"max"``.
    size
        What sums are divided by, such as the nodes of a usual graph.

    Examples
    --------
    >>> Readout("mean")(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 2, 3]))
    tensor([[2.],
            [5.]])
    """

    def __init__(self, kind: str, *, size: float = 1.0) -> None:
        super().__init__()
        self.kind, self.size = kind, size if kind == "sum" else 1.0

    def forward(self, h: Tensor, starts: Tensor) -> Tensor:  # (N, F), (B + 1,)
        """Return one vector a graph."""
        found = torch.segment_reduce(h.contiguous(), self.kind, offsets=starts)
        return found if self.size == 1 else found / self.size  # (B, F)


class AttentionReadout(nn.Module):
    """Mean of the nodes, each counting as much as a learnt score of it says.

    Parameters
    ----------
    dim
        Width of the states.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, h: Tensor, starts: Tensor) -> Tensor:  # (N, F), (B + 1,)
        """Return one vector a graph."""
        score = self.score(h)
        most = torch.segment_reduce(score.detach().contiguous(), "max", offsets=starts)
        counts = starts.diff()
        weight = (score - most.repeat_interleave(counts, dim=0, output_size=len(h))).exp()
        return _sums(weight * h, starts) / _sums(weight, starts)  # (B, F)


class UniversalReadout(nn.Module):
    """rho(sum_v phi(h_v)): with wide enough phi and rho, any function of the set of nodes.

    Parameters
    ----------
    dim
        Width of the states and of the result.
    hidden
        Width of phi's outputs; None: twice ``dim``.
    size
        What sums are divided by, such as the nodes of a usual graph.

    References
    ----------
    2017, Zaheer et al., Deep sets, arXiv 1703.06114.
    """

    def __init__(self, dim: int, *, hidden: int | None = None, size: float = 1.0) -> None:
        super().__init__()
        self.size = size
        wide = 2 * dim if hidden is None else hidden
        self.phi = nn.Sequential(nn.Linear(dim, wide), nn.ReLU(), nn.Linear(wide, wide))
        self.rho = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, dim))

    def forward(self, h: Tensor, starts: Tensor) -> Tensor:  # (N, F), (B + 1,)
        """Return one vector a graph."""
        found: Tensor = self.rho(_sums(self.phi(h), starts) / self.size)
        return found  # (B, F)


READOUTS = ("sum", "mean", "max", "attention", "universal")


def readout(kind: str, dim: int, *, size: float = 1.0) -> nn.Module:
    """Return the readout of a name, for states of a width and graphs of a usual size.

    >>> type(readout("universal", 4)).__name__
    'UniversalReadout'
    """
    if kind not in READOUTS:
        raise InvalidParameter(
            f"readout: `kind` must be {listing(READOUTS)}; got {kind!r}."
            f"{did_you_mean(str(kind), READOUTS)}"
        )
    if kind == "attention":
        return AttentionReadout(dim)
    return UniversalReadout(dim, size=size) if kind == "universal" else Readout(kind, size=size)
