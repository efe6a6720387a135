"""Steps on the parts of a batch: accumulation, several processes, and memory that runs out.

The gradient of a mean over rows is the weighted mean of the gradients of its parts, so the step is
that of the whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.protocols import Phase
from castalia.train.step import PlainStep, Terms
from castalia.train.window import Draw

__all__ = ["MicroBatchStep"]


class MicroBatchStep(PlainStep):
    """Adds up the gradients of micro-batches; when memory runs out, halves them."""

    name = "micro-batches"

    def gradients(self, draw: Draw, phase: Phase) -> Terms:
        """Compute the gradients of the whole batch, in as many parts as memory asks for."""
        parts = self.parts
        while True:
            try:
                if parts.micro == 1 and parts.strategy.world == 1:
                    return self.undivided(draw, phase)
                return self.divided(draw, phase)
            except torch.OutOfMemoryError as error:
                self._halve(len(draw.rows), error)
            except RuntimeError as error:
                if "mixed torch.Tensor and DTensor" not in str(error):
                    raise
                name = type(parts.net).__name__.removeprefix("FSDP")
                raise InvalidParameter(
                    f"Training: `strategy='fsdp'` cannot divide the weights of a {name}, which "
                    "uses them outside the modules that hold them. Use 'ddp'."
                ) from error

    def undivided(self, draw: Draw, phase: Phase) -> Terms:
        """Compute the gradients of a batch in one piece."""
        return super().gradients(draw, phase)

    def divided(self, draw: Draw, phase: Phase) -> Terms:
        """Compute the gradients of this process's share of a batch, part by part."""
        parts, strategy = self.parts, self.parts.strategy
        for parameter in parts.parameters:
            parameter.grad = None
        whole, mine = draw.weight(), strategy.share(draw.rows)
        # Every process takes as many parts as the largest share has: sharded networks meet in each
        # of them.
        number = min(parts.micro, -(-len(draw.rows) // strategy.world))
        total: Terms = {}
        begun = strategy.clock()
        shares = mine.tensor_split(number) if number > 1 else (mine,)
        for place, index in enumerate(shares):
            # Fewer rows than processes: join in with weight 0.
            idle = strategy.idle = len(index) == 0
            part = draw.part(draw.rows[:1] if idle else index)
            with parts.precision.autocast(parts.device):
                terms = parts.objective.terms(parts.net, part.batch(), phase.name)
            scale = strategy.scale(0.0 if idle else part.weight(), whole)
            if place == len(shares) - 1:
                strategy.last_part(phase.parameters)
            self.backward(terms["loss"] * scale)
            share = scale / strategy.scale(1.0, 1.0)
            for name, value in terms.items():
                total[name] = total.get(name, 0.0) + value.detach() * share
        strategy.worked += strategy.clock() - begun
        strategy.sync(phase.parameters)
        return total

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of a loss."""
        loss.backward()

    def _halve(self, rows: int, error: torch.OutOfMemoryError) -> None:
        parts = self.parts
        # the others already wait in the next exchange
        if parts.strategy.name == "fsdp" or parts.strategy.under_way:
            raise InvalidParameter(
                f"Training: a micro-batch does not fit into the memory of {parts.device}. "
                f"Set Training(accumulate={2 * parts.micro})."
            ) from error
        if parts.micro >= rows:
            raise InvalidParameter(
                f"Training: one row does not fit into the memory of {parts.device}. "
                "Use a smaller network or another device."
            ) from error
        parts.micro = min(2 * parts.micro, rows)
        if parts.device.type == "cuda":
            torch.cuda.empty_cache()
