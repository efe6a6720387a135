"""Normalizing flow of couplings: z = f(x), log p(x) = log N(f(x)) + log |det df/dx|.

A coupling keeps the columns of a mask m and changes the others by what the kept ones say:
affine  z = x e^s + t;  spline  z = a monotone rational-quadratic spline of x on [-B, B].
Shapes: B batch, D columns, K bins.
References: 2017, Dinh, Sohl-Dickstein, Bengio, Density estimation using Real NVP, arXiv 1605.08803.
2019, Durkan, Bekasov, Murray, Papamakarios, Neural spline flows, arXiv 1906.04032.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nets.dense import MLP

__all__ = ["CouplingFlow", "spline"]

BOUND = 5.0  # the spline is the identity beyond
LEAST = 1e-3  # least width, height and slope of a bin
STEEPEST = 3.0  # largest log-scale of an affine coupling


def spline(x: Tensor, parameters: Tensor, *, inverse: bool = False) -> tuple[Tensor, Tensor]:
    """Map numbers by rational-quadratic splines; return them and the log-derivatives.

    Parameters
    ----------
    x
        Numbers, (…).
    parameters
        Widths, heights and inner slopes, not yet normalised, (…, 3 K - 1).
    inverse
        Whether to map back; the log-derivative is that of the map back.
    """
    bins = (parameters.shape[-1] + 1) // 3
    width, height, slope = parameters.split([bins, bins, bins - 1], dim=-1)
    xs, ys = _knots(width), _knots(height)  # (…, K + 1)
    slope = F.pad(LEAST + F.softplus(slope + math.log(math.e - 1)), (1, 1), value=1.0)
    inside = (x > -BOUND) & (x < BOUND)
    held = x.clamp(-BOUND + 1e-6, BOUND - 1e-6)
    below = (ys if inverse else xs) < held[..., None]  # ONNX has no searchsorted
    bin_ = (below.sum(-1, keepdim=True) - 1).clamp(0, bins - 1)

    def at(values: Tensor, step: int = 0) -> Tensor:
        return values.gather(-1, bin_ + step)[..., 0]

    x0, y0 = at(xs), at(ys)
    wide, high = at(xs, 1) - x0, at(ys, 1) - y0
    s, d0, d1 = high / wide, at(slope), at(slope, 1)
    if inverse:
        t = _inverted(held - y0, high, s, d0, d1)
        found = x0 + t * wide
    else:
        t = (held - x0) / wide
        found = y0 + high * (s * t**2 + d0 * t * (1 - t)) / (s + (d1 + d0 - 2 * s) * t * (1 - t))
    below = s + (d1 + d0 - 2 * s) * t * (1 - t)
    above = s**2 * (d1 * t**2 + 2 * s * t * (1 - t) + d0 * (1 - t) ** 2)
    log = above.log() - 2 * below.log()
    log = -log if inverse else log
    return torch.where(inside, found, x), torch.where(inside, log, torch.zeros_like(log))


def _knots(sizes: Tensor) -> Tensor:
    """Return where bins begin and end, from -B to B."""
    bins = sizes.shape[-1]
    share = LEAST + (1 - LEAST * bins) * sizes.softmax(dim=-1)
    return F.pad(2 * BOUND * share.cumsum(dim=-1), (1, 0)) - BOUND


def _inverted(y: Tensor, high: Tensor, s: Tensor, d0: Tensor, d1: Tensor) -> Tensor:
    """Return the place in the bin, between 0 and 1, where the spline has climbed by y."""
    bend = y * (d1 + d0 - 2 * s)
    a, b, c = high * (s - d0) + bend, high * d0 - bend, -s * y
    return 2 * c / (-b - (b**2 - 4 * a * c).clamp_min(0).sqrt())


class Coupling(nn.Module):
    """One coupling: columns where the mask is 0 change.

    Parameters
    ----------
    mask
        1 for columns that are kept, (D,).
    hidden
        Widths of the network that reads the kept ones.
    bins
        Bins of the splines; 0: affine.
    """

    def __init__(self, mask: Tensor, *, hidden: Sequence[int], bins: int) -> None:
        super().__init__()
        self.mask: Tensor
        self.register_buffer("mask", mask)
        self.each = 3 * bins - 1 if bins else 2
        self.bins = bins
        self.net = MLP(len(mask), self.each * len(mask), hidden=hidden, activation="relu")
        last = self.net.layers[-1]
        nn.init.normal_(last.weight, std=1e-2)  # type: ignore[union-attr, arg-type]
        nn.init.zeros_(last.bias)  # type: ignore[union-attr, arg-type]

    def forward(self, x: Tensor, *, inverse: bool = False) -> tuple[Tensor, Tensor]:  # (B, D)
        """Return the changed rows and the log-determinant of each, (B,)."""
        said = self.net(x * self.mask).unflatten(1, (-1, self.each))  # (B, D, each)
        if self.bins:
            found, log = spline(x, said, inverse=inverse)
        else:
            s, t = STEEPEST * (said[..., 0] / STEEPEST).tanh(), said[..., 1]
            found, log = ((x - t) * (-s).exp(), -s) if inverse else (x * s.exp() + t, s)
        found = torch.where(self.mask > 0, x, found)
        return found, (log * (1 - self.mask)).sum(dim=1)


class CouplingFlow(nn.Module):
    """Couplings with alternating masks, between rows and normal numbers.

    Parameters
    ----------
    inputs
        Number D of columns.
    depth
        Number of couplings.
    hidden
        Widths of the network of each.
    bins
        Bins of splines; 0: affine couplings.

    Examples
    --------
    >>> flow = CouplingFlow(3, depth=2, hidden=(8,))
    >>> flow.log_prob(torch.zeros(5, 3)).shape
    torch.Size([5])
    """

    def __init__(
        self, inputs: int, *, depth: int = 6, hidden: Sequence[int] = (64, 64), bins: int = 8
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.couplings = nn.ModuleList(
            Coupling(_mask(inputs, i), hidden=hidden, bins=bins) for i in range(depth)
        )
        self.shift = nn.Parameter(torch.zeros(inputs))
        self.scale = nn.Parameter(torch.zeros(inputs))  # log-scale of a last affine map

    def encode(self, x: Tensor) -> Tensor:
        """Return z = f(x), (B, D)."""
        return self._flow(x)[0]

    def _flow(self, x: Tensor) -> tuple[Tensor, Tensor]:
        total = x.new_zeros(x.shape[0])
        with torch.autocast(x.device.type, enabled=False):  # bf16 would not be the same map
            for coupling in self.couplings:
                x, log = coupling(x)
                total = total + log
        return (x - self.shift) * (-self.scale).exp(), total - self.scale.sum()

    def decode(self, z: Tensor) -> Tensor:
        """Return x = f^-1(z), (B, D)."""
        x = z * self.scale.exp() + self.shift
        for coupling in reversed(self.couplings):
            x, _ = coupling(x, inverse=True)
        return x

    def log_prob(self, x: Tensor) -> Tensor:
        """Return log p(x) of each row, (B,)."""
        z, log = self._flow(x)
        return log - (z.square() + math.log(2 * math.pi)).sum(dim=1) / 2

    def forward(self, x: Tensor) -> Tensor:
        """Return log p(x) of each row."""
        return self.log_prob(x)


def _mask(inputs: int, number: int) -> Tensor:
    """Return a mask: odd columns, even ones, the first half, the second, and again."""
    place = torch.arange(inputs)
    kept = place % 2 if number % 4 < 2 else place < inputs // 2
    kept = kept.float()
    return 1 - kept if number % 2 else kept
