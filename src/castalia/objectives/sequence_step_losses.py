"""Losses at the steps of sequences: classes or numbers for each, or the step that comes next.

Only real steps count. Every step counts the same, whether its sequence is short or long: a row's
sum is divided by the usual length.
Shapes: B batch, T time, C channels, K outputs.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.objectives.forecast_loss import ForecastLoss
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
    "ValueLosses",
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


class ValueLosses(Objective):
    """Losses of numbers about which the network says more than a mean.

    y is (B, K), or (B, K, T) where each step has a target; outputs hold P numbers for each value.

    Parameters
    ----------
    loss
        Of a value.
    per
        The usual number of steps of a sequence; None: a target a sequence.

    Examples
    --------
    >>> from castalia.objectives import ForecastLikelihood, GaussianLikelihood
    >>> loss = ValueLosses(ForecastLikelihood(GaussianLikelihood()))
    >>> batch = Batch(torch.zeros(1, 2), torch.zeros(1, 1))
    >>> loss.terms(nn.Identity(), batch, "train")["loss"]
    tensor(0.5526)
    """

    def __init__(self, loss: ForecastLoss, per: float | None = None) -> None:
        self.loss, self.per = loss, per

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the rows' losses."""
        outputs = net(batch.x)
        y = batch.y if self.per is None else batch.y[..., : outputs.shape[1]].transpose(1, 2)
        values = outputs.unflatten(-1, (-1, self.loss.values()))
        own_units = SimpleNamespace(values=values, shift=y.new_zeros(()), scale=y.new_ones(()))
        losses = self.loss.each(own_units, y).mean(dim=-1)  # (B,) or (B, T)
        if self.per is not None:
            losses = row_means(losses, real_steps(batch.x)[1], self.per)
        return {"loss": weighted_mean(losses, batch.weight)}


class NextStep(Objective):
    """-log p of each step, given those before it; x is the sequences themselves.

    Parameters
    ----------
    likelihood
        Of the channels of a step.
    per
        The usual number of steps of a sequence.
    conditional
        Whether y is a condition (B, D), which the network reads before each step.
    """

    def __init__(self, likelihood: Likelihood, per: float, conditional: bool = False) -> None:
        self.likelihood, self.per, self.conditional = likelihood, per, conditional

    def losses(self, net: nn.Module, x: Any, y: Any = None) -> tuple[Tensor, Tensor]:
        """Return the loss of each step, (B, T), and which steps are real."""
        steps, real = real_steps(x)
        before = F.pad(steps, (0, 0, 1, 0))[:, :-1]  # zero, then all but the last
        outputs = net(self.inputs(before, y))
        losses = self.likelihood.rows(outputs.flatten(0, 1), steps.flatten(0, 1))
        return losses.view(real.shape), real

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the rows' losses."""
        losses, real = self.losses(net, batch.x, batch.y)
        return {"loss": weighted_mean(row_means(losses, real, self.per), batch.weight)}

    def inputs(self, steps: Tensor, y: Any) -> Tensor:
        """Return what the network reads: the condition, if there is one, and the step."""
        if not self.conditional:
            return steps
        return torch.cat([y.to(steps.dtype)[:, None].expand(-1, steps.shape[1], -1), steps], dim=2)


class NextSymbol(NextStep):
    """-log p of each symbol and of the end, given those before; the end is the last output.

    Parameters
    ----------
    per
        The usual number of symbols of a sequence.
    conditional
        Whether y is a condition (B, D), which the network reads before each step.
    """

    def __init__(self, per: float, conditional: bool = False) -> None:
        self.per, self.conditional = per, conditional

    def losses(self, net: nn.Module, x: Any, y: Any = None) -> tuple[Tensor, Tensor]:
        """Return the loss of each symbol and of the end, (B, T + 1), and which are real."""
        steps, real = real_steps(x)
        outputs = net(self.inputs(F.pad(steps, (0, 0, 1, 0)), y))  # (B, T + 1, K)
        real = F.pad(real, (1, 0), value=True)
        count = real.sum(dim=1, keepdim=True) - 1
        place = torch.arange(real.shape[1], device=steps.device)
        codes = F.pad(steps[..., 0].long(), (0, 1))
        wanted = torch.where(place == count, outputs.shape[-1] - 1, codes)
        return token_losses(outputs, wanted), real
