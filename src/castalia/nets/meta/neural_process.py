"""Conditional neural process: a function's context points in, a normal at each target point out.

r = mean_i h(x_i, y_i),  (mu, log s)(x) = g(x, r),  p(y | x, context) = N(mu(x), s(x)^2).  The mean
makes it blind to the order of the context; with heads > 0 each target point has its own
r(x) = sum_i softmax_i(q(x) k(x_i)) h(x_i, y_i).
Shapes: B tasks, C context points, N target points, D inputs, T outputs, H hidden.
Latent: z ~ q(z | context) = N(m(s), d(s)^2), s = mean_i h(x_i, y_i), and g(x, z) instead of
g(x, r): one z is one function, so that draws at several points belong together.
References: 2018, Garnelo et al., Conditional neural processes, arXiv 1807.01613. 2018, Garnelo et
al., Neural processes, arXiv 1807.01622. 2019, Kim et al., Attentive neural processes, arXiv
1901.05761 (deterministic path).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["LatentProcess", "NeuralProcess"]

LEAST = 1e-2  # standard deviation below which nothing is claimed, in units of the scaled target


def _mlp(inputs: int, hidden: int, outputs: int, depth: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(inputs, hidden), nn.ReLU()]
        inputs = hidden
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


class NeuralProcess(nn.Module):
    """From a context of any size and order to a distribution at any point.

    Parameters
    ----------
    inputs, outputs
        D and T.
    hidden
        H, also the length of the summary r.
    depth
        Hidden layers of encoder and decoder.
    heads
        Attention heads of a target point over the context; 0 takes the mean.

    Examples
    --------
    >>> net = NeuralProcess(1, 1, hidden=8)
    >>> mean, scale = net(torch.zeros(2, 3, 1), torch.zeros(2, 3, 1), torch.zeros(2, 5, 1))
    >>> mean.shape, bool((scale > 0).all())
    (torch.Size([2, 5, 1]), True)
    """

    def __init__(
        self, inputs: int, outputs: int, *, hidden: int = 64, depth: int = 2, heads: int = 0
    ) -> None:
        super().__init__()
        self.hidden = hidden
        self.encode = _mlp(inputs + outputs, hidden, hidden, depth)
        self.decode = _mlp(inputs + hidden, hidden, 2 * outputs, depth)
        self.attend = nn.MultiheadAttention(hidden, heads, batch_first=True) if heads else None
        self.place = _mlp(inputs, hidden, hidden, 1) if heads else None

    def summary(
        self, x: Tensor, y: Tensor, at: Tensor
    ) -> Tensor:  # (B, C, D), (B, C, T), (B, N, D)
        """Return what the context says about each target point, (B, N, H); without any, 0."""
        if not x.shape[1]:
            return at.new_zeros(*at.shape[:2], self.hidden)
        points = self.encode(torch.cat([x, y], dim=2))  # (B, C, H)
        if self.attend is None or self.place is None:
            return points.mean(dim=1, keepdim=True).expand(-1, at.shape[1], -1)
        found: Tensor = self.attend(self.place(at), self.place(x), points, need_weights=False)[0]
        return found

    def forward(self, x: Tensor, y: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation at the target points, (B, N, T) each."""
        joined = torch.cat([at, self.summary(x, y, at)], dim=2)
        mean, raw = self.decode(joined).chunk(2, dim=2)
        return mean, LEAST + nn.functional.softplus(raw)


class LatentProcess(nn.Module):
    """From a context to a distribution over functions, each given by a code z.

    Parameters
    ----------
    inputs, outputs
        D and T.
    hidden
        H, also the length of z.
    depth
        Hidden layers of encoder and decoder.

    Examples
    --------
    >>> net = LatentProcess(1, 1, hidden=8)
    >>> code = net.code(torch.zeros(2, 0, 1), torch.zeros(2, 0, 1))
    >>> code.mean.abs().sum().item(), code.stddev[0, 0].item()  # without context: N(0, 1)
    (0.0, 1.0)
    """

    def __init__(self, inputs: int, outputs: int, *, hidden: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.hidden = hidden
        self.encode = _mlp(inputs + outputs, hidden, hidden, depth)
        self.to_code = nn.Linear(hidden, 2 * hidden)
        self.decode = _mlp(inputs + hidden, hidden, 2 * outputs, depth)

    def code(self, x: Tensor, y: Tensor) -> torch.distributions.Normal:  # (B, C, D), (B, C, T)
        """Return q(z | context), (B, H); without context the prior."""
        if not x.shape[1]:
            zero = x.new_zeros(len(x), self.hidden)
            return torch.distributions.Normal(zero, zero + 1)
        summary = self.encode(torch.cat([x, y], dim=2)).mean(dim=1)
        mean, raw = self.to_code(summary).chunk(2, dim=1)
        return torch.distributions.Normal(mean, 0.1 + 0.9 * raw.sigmoid())

    def forward(self, z: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:  # (B, H), (B, N, D)
        """Return mean and standard deviation of the function z at the target points."""
        joined = torch.cat([at, z[:, None].expand(-1, at.shape[1], -1)], dim=2)
        mean, raw = self.decode(joined).chunk(2, dim=2)
        return mean, LEAST + nn.functional.softplus(raw)
