"""What learning asks of a model of discrete states: conditionals, Gibbs steps, pseudo-likelihood.

Shapes: B rows of state numbers, n variables, K states of one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["DiscreteStates"]


class DiscreteStates(nn.Module):
    """Base of networks with ln P(x) + ln Z as forward, (B, n) to (B,), and ``log_odds``."""

    def log_odds(self, x: Tensor, i: int) -> Tensor:
        """Return the log-probabilities of a variable's states given the others, up to a constant.

        (B, n) to (B, K).
        """
        raise NotImplementedError

    def log_pseudo(self, x: Tensor) -> Tensor:
        """Return sum_i ln P(x_i | all others), (B,)."""
        found = [
            self.log_odds(x, i).log_softmax(dim=1).gather(1, x[:, i : i + 1].long())
            for i in range(x.shape[1])
        ]
        return torch.cat(found, dim=1).sum(dim=1)

    def contrast(self, x: Tensor, p: Tensor, drawn: Tensor, q: Tensor) -> Tensor:
        """Return sum_i p_i F(x_i) - sum_j q_j F(drawn_j), ()."""
        return q @ self(drawn) - p @ self(x)

    def gibbs(self, x: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Draw every variable in turn given the others, (B, n)."""
        x = x.clone()
        for i in range(x.shape[1]):
            p = self.log_odds(x, i).softmax(dim=1)
            x[:, i] = torch.multinomial(p, 1, generator=source)[:, 0].to(x.dtype)
        return x

    def draw_hidden(self, x: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Return the variables as they are: none is hidden."""
        return x

    def reconstruct(self, x: Tensor) -> Tensor:
        """Return the most probable state of each variable given the others, (B, n)."""
        found = [self.log_odds(x, i).argmax(dim=1) for i in range(x.shape[1])]
        return torch.stack(found, dim=1).to(x.dtype)
