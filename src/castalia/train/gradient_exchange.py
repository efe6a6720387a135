"""Gradients summed over processes, those of the last layers while others are still computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["GradientExchange"]

BUCKET = 25 * 2**20  # bytes of gradient sent at a time


class GradientExchange:
    """Sums gradients over the processes, bucket after bucket, in the same order in each of them.

    Where there are several buckets, one is sent as soon as the backward pass has filled it. They
    travel in a group of their own, so that sums inside the network (batch normalisation) cannot
    get between them.

    Parameters
    ----------
    parameters
        Whose gradients are summed; the last of them come first.
    group
        The processes.
    """

    def __init__(self, parameters: Sequence[Tensor], group: Any) -> None:
        self.group, self.buckets = group, _buckets(parameters)
        self._bucket = {id(p): i for i, bucket in enumerate(self.buckets) for p in bucket}
        self._left: list[int] = []  # gradients that are missing, by bucket; none: not begun
        self._sent: list[tuple[Any, Tensor]] = []
        self.early = 0  # buckets that were sent during the backward pass
        several = len(self.buckets) > 1
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._ready)
            for parameter in (parameters if several else ())
        ]

    @property
    def under_way(self) -> bool:
        """Whether something was sent that has not been waited for."""
        return bool(self._sent)

    def begin(self) -> None:
        """Say that the next backward pass is the last of the step."""
        self._left = [len(bucket) for bucket in self.buckets]

    def _ready(self, parameter: Tensor) -> None:
        if not self._left:
            return
        self._left[self._bucket[id(parameter)]] -= 1
        while (place := len(self._sent)) < len(self.buckets) and not self._left[place]:
            self._send()
            self.early += 1

    def _send(self) -> None:
        """Send the next bucket; a missing gradient is zero: every process must send the same."""
        gradients = []
        for parameter in self.buckets[len(self._sent)]:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad.flatten())
        flat = torch.cat(gradients)
        self._sent.append((dist.all_reduce(flat, group=self.group, async_op=True), flat))

    def finish(self) -> None:
        """Send what is left, wait for all, and put the sums in place."""
        while len(self._sent) < len(self.buckets):
            self._send()
        for (work, flat), bucket in zip(self._sent, self.buckets, strict=True):
            work.wait()
            pieces = flat.split([parameter.numel() for parameter in bucket])
            for parameter, piece in zip(bucket, pieces, strict=True):
                parameter.grad.copy_(piece.view_as(parameter))  # type: ignore[union-attr]
        self._left, self._sent = [], []

    def close(self) -> None:
        """Leave the parameters as they were."""
        for hook in self._hooks:
            hook.remove()


def _buckets(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Group parameters, the last ones first, as their gradients are computed."""
    buckets: list[list[Tensor]] = [[]]
    size = 0
    for parameter in reversed(parameters):
        if size + parameter.nbytes > BUCKET and buckets[-1]:
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += parameter.nbytes
    return buckets
