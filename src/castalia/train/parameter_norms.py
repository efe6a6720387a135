"""Watching every weight matrix: its norm, that of its gradient, and how far a step moves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.train.callbacks import Callback
from castalia.train.state import TrainState

__all__ = ["ParameterNorms"]


class ParameterNorms(Callback):
    """Keeps three norms of every weight matrix at some of the steps.

    As a callback it follows our loop; ``following`` follows any other. Only the sampled steps cost
    anything: a copy of the weights and three norms, which stay on the device until they are read.
    Vectors (biases, scales) are left out where there are matrices: a bias that begins at 0 has no
    relative change. A resumed training starts empty.

    Parameters
    ----------
    every
        Steps from one sample to the next; the first step is one.

    Attributes
    ----------
    names
        The matrices, in the network's order, (P,).
    steps
        Numbers of the sampled steps, from 0, (S,).

    See Also
    --------
    castalia.evaluate.GradientNorms, castalia.evaluate.UpdateRatios : draw what was kept.

    Examples
    --------
    >>> net = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(net.weight, 2.0)
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    >>> with ParameterNorms(every=1).following(net, optimizer) as kept:
    ...     net(torch.ones(1, 1)).sum().backward()
    ...     optimizer.step()
    >>> kept.names, kept.gradients, kept.weights, kept.updates
    (['weight'], array([[1.]]), array([[2.]]), array([[0.5]]))
    """

    def __init__(self, every: int = 10) -> None:
        if every < 1:
            raise InvalidParameter(f"ParameterNorms: `every` must be at least 1; got {every}.")
        self.every = every
        self.names: list[str] = []
        self.steps: list[int] = []
        self._rows: list[Tensor] = []  # (3, P) each: gradient, weight, update
        self._before: list[Tensor] | None = None
        self._gradients: Tensor | None = None

    # ---- what was kept ----

    @property
    def gradients(self) -> np.ndarray:
        """Norms of the gradients, before clipping in our loop, (S, P)."""
        return self._table(0)

    @property
    def weights(self) -> np.ndarray:
        """Norms of the weights before the step, (S, P)."""
        return self._table(1)

    @property
    def updates(self) -> np.ndarray:
        """Norms of what the step added to the weights, (S, P)."""
        return self._table(2)

    @property
    def ratios(self) -> np.ndarray:
        """Update-to-weight ratios, (S, P); NaN where a matrix was all zeros."""
        weights = self.weights
        return self.updates / np.where(weights > 0, weights, np.nan)

    def _table(self, which: int) -> np.ndarray:
        if not self._rows:
            return np.zeros((0, len(self.names)))
        found: np.ndarray = torch.stack([row[which] for row in self._rows]).cpu().double().numpy()
        return found

    # ---- our loop ----

    def on_batch_start(self, state: TrainState) -> None:
        """Copy the weights, if this step is sampled."""
        if state.total % self.every == 0:
            self._open(state.net)

    def on_gradients(self, state: TrainState) -> None:
        """Note the gradients; the last ones of a step count."""
        if self._before is not None:
            self._note(state.net)

    def on_batch_end(self, state: TrainState) -> None:
        """Keep the sampled step."""
        if self._before is not None:
            self._close(state.net, state.total - 1)

    # ---- any other ----

    @contextmanager
    def following(
        self, net: nn.Module, optimizer: torch.optim.Optimizer
    ) -> Iterator[ParameterNorms]:
        """Follow the steps of an optimizer, in any loop, until the context ends."""
        taken = 0

        def before(*_: Any) -> None:
            if taken % self.every == 0:
                self._open(net)
                self._note(net)

        def after(*_: Any) -> None:
            nonlocal taken
            if self._before is not None:
                self._close(net, taken)
            taken += 1

        handles = [
            optimizer.register_step_pre_hook(before),
            optimizer.register_step_post_hook(after),
        ]
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()

    # ---- one sampled step ----

    def _matrices(self, net: nn.Module) -> dict[str, nn.Parameter]:
        if not self.names:
            own = [(name, p) for name, p in net.named_parameters() if p.requires_grad]
            self.names = [n for n, p in own if p.ndim > 1] or [n for n, _ in own]
        parameters = dict(net.named_parameters())
        return {name: parameters[name] for name in self.names}

    def _open(self, net: nn.Module) -> None:
        self._before = [p.detach().clone() for p in self._matrices(net).values()]
        self._gradients = None

    def _note(self, net: nn.Module) -> None:
        own = self._matrices(net).values()
        self._gradients = _norms([torch.zeros_like(p) if p.grad is None else p.grad for p in own])

    def _close(self, net: nn.Module, step: int) -> None:
        before, self._before = self._before or [], None
        if not before:
            return
        moved = [p.detach() - b for p, b in zip(self._matrices(net).values(), before, strict=True)]
        gradients = torch.zeros(len(before)) if self._gradients is None else self._gradients
        weights = _norms(before)
        self._rows.append(torch.stack([gradients.to(weights), weights, _norms(moved)]))
        self.steps.append(step)


def _norms(tensors: list[Tensor]) -> Tensor:
    """Norm of each, (P,), on the device of the first."""
    found = [torch.linalg.vector_norm(t.detach().float()) for t in tensors]
    return torch.stack([_whole(norm).to(found[0].device) for norm in found])


def _whole(norm: Any) -> Tensor:
    """Gather a norm that is spread over processes."""
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # type: ignore
