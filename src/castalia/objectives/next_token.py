"""Predicting the next token: the objective of language models.

l_b = (1 / |C_b|) sum over t in C_b of  - log softmax(z_t)_{x_{t+1}},  C_b the counted tokens of row
b.  Shapes: B batch, T tokens, V vocabulary, S streams.
References: 2003, Bengio, Ducharme, Vincent, Jauvin, A neural probabilistic language model; 2010,
Mikolov et al., Recurrent neural network based language model (truncated back-propagation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nn.network_modes import compiled
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.vocabulary_loss import vocabulary_loss
from castalia.protocols import Batch, StepPlan
from castalia.utils.devices import has_triton

__all__ = ["CarriedLM", "CausalLM"]

LOGITS = 1 << 26  # scores held at once where no gradient is needed
LARGE = 1 << 12  # tokens of a vocabulary whose scores a GPU never holds all at once


class CausalLM(Objective):
    """-log p of each token given those before it; a mean over the counted tokens of each row.

    The network maps tokens (B, T) to logits (B, T, V) and must be causal: what it says at t may
    depend on tokens up to t only. y holds the next tokens, (B, T); where it is anything else, the
    targets are x moved by one.

    Parameters
    ----------
    ignore
        Id that is never counted as a target, such as padding; None: all count. A row of which no
        token counts costs nothing.

    Examples
    --------
    >>> uniform = lambda ids: torch.zeros(*ids.shape, 7)
    >>> CausalLM().terms(uniform, Batch(torch.tensor([[1, 2, 3]])), "train")["loss"].exp()
    tensor(7.0000)
    """

    def __init__(self, *, ignore: int | None = None) -> None:
        self.ignore = ignore
        self.plan = StepPlan()

    def prepare(self, plan: StepPlan) -> None:
        """Keep how steps are taken: a loss differentiated once needs no logits held."""
        self.plan = plan

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows; the perplexity is exp of it where rows are of one length."""
        x, y = batch.x, batch.y
        if y is None or y.shape != x.shape:
            x, y = x[:, :-1], x[:, 1:]
        whole = getattr(net, "_compiled_call_impl", None) is not None  # with the loss in one piece
        mode = self.plan.compile
        if not self.plan.second_order and torch.is_grad_enabled() and _has_large_table(net):
            h = compiled(_features, mode)(net, x) if whole else net.features(x)
            share = _shares(y, batch.weight, self.ignore)
            known = y.flatten().long().clamp_min(0)  # what is ignored may be no token
            loss = vocabulary_loss(h.flatten(0, 1), net.table, known, share.flatten())
            return {"loss": loss}
        if whole:
            losses = compiled(_network_losses, mode)(net, x, y, self.ignore)
        elif torch.is_grad_enabled():
            losses = row_losses(net(x), y, self.ignore)
        else:  # some rows at a time, for logits are large
            step = max(1, LOGITS // (x.shape[1] * getattr(net, "vocabulary", 1)))
            parts = zip(x.split(step), y.split(step), strict=True)
            found = [row_losses(net(some), wanted, self.ignore) for some, wanted in parts]
            losses = torch.cat(found)
        return {"loss": weighted_mean(losses, batch.weight)}


def row_losses(logits: Tensor, targets: Tensor, ignore: int | None) -> Tensor:
    """Return the mean of -log p over the counted tokens of each row, (B,)."""
    losses = F.cross_entropy(
        logits.flatten(0, 1).to(torch.promote_types(logits.dtype, torch.float32)),
        targets.flatten().long(),
        ignore_index=-100 if ignore is None else ignore,
        reduction="none",
    ).view_as(targets)  # (B, T), 0 where ignored
    if ignore is None:
        return losses.mean(dim=1)
    return losses.sum(dim=1) / (targets != ignore).sum(dim=1).clamp_min(1)


def _shares(targets: Tensor, weight: Tensor | None, ignore: int | None) -> Tensor:
    """Return by what the losses of tokens are multiplied in the mean over rows, (B, T)."""
    counted = torch.ones_like(targets, dtype=torch.float32)
    if ignore is not None:
        counted = (targets != ignore).float()
    counted = counted / counted.sum(dim=1, keepdim=True).clamp_min(1)
    if weight is None:
        return counted / len(targets)
    return counted * (weight / weight.sum().clamp_min(torch.finfo(weight.dtype).tiny))[:, None]


def _has_large_table(net: Any) -> bool:
    """Say whether scores are products with a large table on a GPU, and nobody waits for them."""
    if not isinstance(net, nn.Module) or net._forward_hooks or net._forward_pre_hooks:
        return False
    table: Any = getattr(net, "table", None)
    plain = type(table) in (Tensor, nn.Parameter)  # not a share of it, as of distributed networks
    return plain and len(table) >= LARGE and has_triton(table.device)


def _features(net: Any, x: Tensor) -> Tensor:
    return net.features(x)  # type: ignore[no-any-return]


def _network_losses(net: Any, x: Tensor, targets: Tensor, ignore: int | None) -> Tensor:
    return row_losses(net.forward(x), targets, ignore)


class CarriedLM(CausalLM):
    """The same for a recurrent network, whose state goes on from a block to the next of its stream.

    Gradients end at the beginning of a block: truncated back-propagation through time. y is
    (B, T + 2): the next tokens, the number of the row's stream, and 1 where the row begins it, at
    the state zero; where it is (B, 2), these two only, the targets are x moved by one. Rows must
    come in the order of their streams. Where no gradient is needed, as
    in a validation, each row begins at zero and leaves the carried state alone.

    Parameters
    ----------
    streams
        Number of streams S.
    ignore
        As for ``CausalLM``.
    """

    def __init__(self, streams: int, *, ignore: int | None = None) -> None:
        super().__init__(ignore=ignore)
        self.streams = streams
        self.state: tuple[Tensor, ...] | None = None  # parts of (L, S, width)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state carried so far, by the number of its part."""
        return {str(i): part.clone() for i, part in enumerate(self.state or ())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Carry a state on; an empty one is zero. It is written where a recorded step reads it."""
        parts = tuple(state[str(i)] for i in range(len(state)))
        if self.state is None:
            self.state = tuple(part.clone() for part in parts) or None
            return
        for i, kept in enumerate(self.state):
            kept.copy_(parts[i] if parts else torch.zeros_like(kept))

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows."""
        x, targets, stream, begins = batch.x, batch.y[:, :-2], batch.y[:, -2].long(), batch.y[:, -1]
        if not torch.is_grad_enabled():
            return super().terms(net, batch._replace(y=targets), phase)
        if targets.shape != x.shape:
            x, targets = x[:, :-1], x[:, 1:]
        if self.state is None:
            self.state = net.start(self.streams)
        going = (1 - begins)[None, :, None]
        state = tuple(part.index_select(1, stream) * going for part in self.state)
        logits, last = net.carry(x, state)
        for kept, part in zip(self.state, last, strict=True):
            kept.index_copy_(1, stream, part.detach().to(kept.dtype))
        losses = row_losses(logits, targets, self.ignore)
        return {"loss": weighted_mean(losses, batch.weight)}
