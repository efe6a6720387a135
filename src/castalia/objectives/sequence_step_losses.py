"""Losses at the steps of sequences: classes or numbers for each, or the step that comes next.

Only real steps count. Every step counts the same, whether its sequence is short or long: a row's
sum is divided by the usual length.
Shapes: B batch, T time, C channels, K outputs.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.objectives.likelihood import Likelihood
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.tokens import row_means, token_losses
from castalia.protocols import Batch

__all__ = [
    "NextStep",
    "NextSymbol",
    "NodeCrossEntropy",
    "StepCrossEntropy",
    "StepSquaredError",
    "real_steps",
]


def real_steps(x: Any) -> tuple[Tensor, Tensor]:
    """Return steps and which of them are real, (B, T), of a batch with or without lengths."""
    if not isinstance(x, tuple):
        return x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    steps, lengths = x
    place = torch.arange(steps.shape[1], device=steps.device)
    return steps, place < lengths[:, None]


class StepCrossEntropy(Objective):
    """-log p of the class of each step; y is (B, T), -1 where there is none.

    Parameters
    ----------
    per
        The usual number of steps of a sequence.
    """

    def __init__(self, per: float) -> None:
        self.per = per

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the rows' losses."""
        outputs = self.outputs(net, batch.x)
        y = batch.y[:, : outputs.shape[1]]
        losses = token_losses(outputs, y.clamp_min(0))
        return {"loss": weighted_mean(row_means(losses, y >= 0, self.per), batch.weight)}

    def outputs(self, net: Any, x: Any) -> Tensor:
        """Return the outputs of every step, (B, T, K)."""
        found: Tensor = net(x)
        return found


class NodeCrossEntropy(StepCrossEntropy):
    """-log p of the class of each node of a tree; y is (B, T), -1 where there is none.

    Parameters
    ----------
    per
        The usual number of nodes of a tree.
    """

    def outputs(self, net: Any, x: Any) -> Tensor:
        """Return the outputs of every node, (B, T, K)."""
        found: Tensor = net.at_nodes(x)
        return found


class StepSquaredError(Objective):
    """Squared error of the numbers of each step; y is (B, K, T).

    Parameters
    ----------
    per
        The usual number of steps of a sequence.
    """

    def __init__(self, per: float) -> None:
        self.per = per

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the rows' losses."""
        outputs = net(batch.x)  # (B, T, K)
        _, real = real_steps(batch.x)
        wanted = batch.y[..., : outputs.shape[1]].transpose(1, 2)
        losses = (outputs - wanted).square().mean(dim=2)
        return {"loss": weighted_mean(row_means(losses, real, self.per), batch.weight)}


class NextStep(Objective):
    """-log p of each step, given those before it; x is the sequences themselves.

    Parameters
    ----------
    likelihood
        Of the channels of a step.
    per
        The usual number of steps of a sequence.
    """

    def __init__(self, likelihood: Likelihood, per: float) -> None:
        self.likelihood, self.per = likelihood, per

    def losses(self, net: nn.Module, x: Any) -> tuple[Tensor, Tensor]:
        """Return the loss of each step, (B, T), and which steps are real."""
        steps, real = real_steps(x)
        outputs = net(F.pad(steps, (0, 0, 1, 0))[:, :-1])  # reads zero, then all but the last
        losses = self.likelihood.rows(outputs.flatten(0, 1), steps.flatten(0, 1))
        return losses.view(real.shape), real

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the rows' losses."""
        losses, real = self.losses(net, batch.x)
        return {"loss": weighted_mean(row_means(losses, real, self.per), batch.weight)}


class NextSymbol(NextStep):
    """-log p of each symbol and of the end, given those before; the end is the last output.

    Parameters
    ----------
    per
        The usual number of symbols of a sequence.
    """

    def __init__(self, per: float) -> None:
        self.per = per

    def losses(self, net: nn.Module, x: Any) -> tuple[Tensor, Tensor]:
        """Return the loss of each symbol and of the end, (B, T + 1), and which are real."""
        steps, real = real_steps(x)
        outputs = net(F.pad(steps, (0, 0, 1, 0)))  # (B, T + 1, K)
        real = F.pad(real, (1, 0), value=True)
        count = real.sum(dim=1, keepdim=True) - 1
        place = torch.arange(real.shape[1], device=steps.device)
        codes = F.pad(steps[..., 0].long(), (0, 1))
        wanted = torch.where(place == count, outputs.shape[-1] - 1, codes)
        return token_losses(outputs, wanted), real
