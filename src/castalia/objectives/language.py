"""Predicting the next token: the objective of language models.

l_b = (1 / |C_b|) sum over t in C_b of  - log softmax(z_t)_{x_{t+1}},  C_b the counted tokens of row
b.  Shapes: B batch, T tokens, V vocabulary, S streams.
References: 2003, Bengio, Ducharme, Vincent, Jauvin, A neural probabilistic language model; 2010,
Mikolov et al., Recurrent neural network based language model (truncated back-propagation).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.objectives.base import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["CarriedLM", "CausalLM"]

LOGITS = 1 << 26  # scores held at once where no gradient is needed


class CausalLM(Objective):
    """-log p of each token given those before it; a mean over the counted tokens of each row.

    A row x is (T + 1,): the network reads the first T tokens and is held against the last T. It
    must be causal: what it says at t may depend on tokens up to t only.

    Parameters
    ----------
    ignore
        Id that is never counted as a target, such as padding; None: all count. A row of which no
        token counts costs nothing.

    Examples
    --------
    >>> uniform = lambda ids: torch.zeros(*ids.shape, 7)
    >>> CausalLM().rows(uniform, torch.tensor([[1, 2, 3]])).exp()
    tensor([7.])
    """

    def __init__(self, *, ignore: int | None = None) -> None:
        self.ignore = ignore

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows; without gradients some rows at a time, for logits are large.

        The perplexity is exp of it where all rows have as many tokens.
        """
        if torch.is_grad_enabled():
            losses = self.rows(net, batch.x)
        else:
            step = max(1, LOGITS // (batch.x[0].numel() * getattr(net, "vocabulary", 1)))
            losses = torch.cat([self.rows(net, part) for part in batch.x.split(step)])
        return {"loss": weighted_mean(losses, batch.weight)}

    def rows(self, net: Any, x: Tensor) -> Tensor:  # (B, T + 1)
        """Return the loss of each row, (B,)."""
        return self.compare(net, net(x[:, :-1]), x[:, 1:])

    def compare(self, net: Any, logits: Tensor, targets: Tensor) -> Tensor:  # (B, T, V), (B, T)
        """Return the loss of each row, (B,), by a compiled function where the network is one."""
        compiled = getattr(net, "_compiled_call_impl", None) is not None
        return (_compiled() if compiled else row_losses)(logits, targets, self.ignore)


def row_losses(logits: Tensor, targets: Tensor, ignore: int | None) -> Tensor:
    """Return the mean of -log p over the counted tokens of each row, (B,)."""
    losses = F.cross_entropy(
        logits.flatten(0, 1).to(torch.promote_types(logits.dtype, torch.float32)),
        targets.flatten(),
        ignore_index=-100 if ignore is None else ignore,
        reduction="none",
    ).view_as(targets)  # (B, T), 0 where ignored
    if ignore is None:
        return losses.mean(dim=1)
    return losses.sum(dim=1) / (targets != ignore).sum(dim=1).clamp_min(1)


@cache
def _compiled() -> Any:
    return torch.compile(row_losses)


class CarriedLM(CausalLM):
    """The same for a recurrent network, whose state goes on from a block to the next of its stream.

    Gradients end at the beginning of a block: truncated back-propagation through time. y says of
    each row which stream it belongs to and whether it begins that stream, (B, 2); there the state
    is zero. Rows must come in the order of their streams. Where no gradient is needed, as in a
    validation, each row begins at zero and leaves the carried state alone.

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

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows."""
        if not torch.is_grad_enabled():
            return super().terms(net, batch, phase)
        stream, begins = batch.y[:, 0], batch.y[:, 1]
        if self.state is None:
            self.state = net.start(self.streams)
        going = (1 - begins)[None, :, None]
        state = tuple(part.index_select(1, stream) * going for part in self.state)
        logits, last = net.carry(batch.x[:, :-1], state)
        for kept, part in zip(self.state, last, strict=True):
            kept.index_copy_(1, stream, part.detach().to(kept.dtype))
        losses = self.compare(net, logits, batch.x[:, 1:])
        return {"loss": weighted_mean(losses, batch.weight)}
