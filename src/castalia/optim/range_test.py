"""Learning-rate range test: the loss while the rate grows from far too small to far too large.

The rate of step k is low (high / low)^(k / (steps - 1)). Where the loss falls most steeply over log
rate is a good constant rate; a tenth of the rate where it blows up is a safe one.
Reference: 2017, Smith, Cyclical learning rates for training neural networks, arXiv 1506.01186.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.errors import InvalidData, InvalidParameter
from castalia.optim.build import build_optimizer
from castalia.optim.dynamo import without_dynamo
from castalia.optim.rate_sweep import sweep_estimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LRRangeTest", "lr_range_test"]

SMOOTHING = 0.8  # of the running mean by which divergence is judged
RISE = 3.0  # first losses by which that mean may rise above its lowest


@dataclass(frozen=True)
class LRRangeTest:
    """What a range test saw.

    Attributes
    ----------
    rates
        Learning rates tried, ascending.
    losses
        Loss of the batch at each of them, before its step.
    diverged
        Rate at which the loss blew up, or None when it never did.
    """

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    diverged: float | None = None

    @property
    def smoothed(self) -> tuple[float, ...]:
        """Mean of the losses of a twentieth of the sweep on either side of each rate."""
        half = max(2, len(self.losses) // 20)
        return tuple(
            float(np.mean(self.losses[max(0, i - half) : i + half + 1]))
            for i in range(len(self.losses))
        )

    @property
    def steepest(self) -> float:
        """Rate around which the loss falls most steeply over log rate, before its lowest point.

        The slope is that of a line fitted to a tenth of the sweep on either side: batches differ,
        and a difference of neighbours would mostly show that.
        """
        end = int(np.argmin(self.smoothed)) + 1
        half = min(max(2, len(self.losses) // 10), (end - 1) // 2)
        # Only whole windows: the slope of a short one at an end is mostly noise.
        slopes = [_slope(self.losses[i - half : i + half + 1]) for i in range(half, end - half)]
        return self.rates[half + int(np.argmin(slopes))]

    @property
    def suggestion(self) -> float:
        """The steepest point, but at most a tenth of the rate of divergence."""
        return min(self.steepest, math.inf if self.diverged is None else self.diverged / 10)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw loss against rate with the suggestion; return the axes."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(layout="constrained").add_subplot()
        ax.plot(self.rates, self.losses, ".", alpha=0.4, label="loss")
        ax.plot(self.rates, self.smoothed, label="smoothed")
        ax.axvline(self.suggestion, linestyle="--", label=f"suggestion {self.suggestion:.2g}")
        ax.set(xscale="log", xlabel="learning rate", ylabel="loss")
        ax.legend()
        return ax


def lr_range_test(
    net: Any,
    loss: Any,
    batches: Any = None,
    *,
    low: float = 1e-7,
    high: float = 10.0,
    steps: int = 100,
    optimizer: Any = None,
) -> LRRangeTest:
    """Train for a few steps at exponentially growing rates and see where the loss falls and breaks.

    Stops when the loss is not finite or has risen far above its lowest. Network, optimizer and
    random states are then what they were before, bit for bit; also after an error. Of an
    estimator, ``lr_range_test(estimator, X, y)``, a copy is fitted, on its own batches and by its
    own optimizer.

    Parameters
    ----------
    net
        Any module, in the mode (training or evaluation) and on the device it is to be tried in; or
        an estimator.
    loss
        From the network and a batch to a scalar loss; X of an estimator.
    batches
        What ``loss`` is given; walked through again when it ends; y of an estimator, if it needs
        one.
    low, high
        First and last rate.
    steps
        Number of rates.
    optimizer
        As in ``Training``, or an optimizer of this network; None: ``"adam"``, an estimator's own.

    Examples
    --------
    >>> x = torch.linspace(-1, 1, 32)[:, None]
    >>> loss = lambda net, batch: (net(batch[0]) - batch[1]).square().mean()
    >>> net = nn.Linear(1, 1)
    >>> start = nn.init.zeros_(net.weight), nn.init.zeros_(net.bias)
    >>> found = lr_range_test(net, loss, [(x, 2 * x)], high=100.0, optimizer="sgd")
    >>> 0.01 < found.suggestion < found.diverged
    True
    """
    _check(low, high, steps)
    rates = np.geomspace(low, high, steps).tolist()
    if not isinstance(net, nn.Module):
        data = (loss,) if batches is None else (loss, batches)
        return _seen(rates, sweep_estimator(net, data, rates, optimizer, _diverges))
    parameters = [p for p in net.parameters() if p.requires_grad]
    if not isinstance(optimizer, Optimizer):
        optimizer = build_optimizer(optimizer or "adam", parameters, lr=low)
    if getattr(type(optimizer), "finds_length", False):
        raise InvalidParameter(
            "lr_range_test: `optimizer` must be one whose steps the rate scales; got "
            f"{type(optimizer).__name__}, which finds their length itself."
        )
    with _untouched(net, optimizer), torch.enable_grad():
        losses = list(_sweep(net, loss, batches, optimizer, rates))
    if not losses:
        raise InvalidData("lr_range_test: `batches` must hold at least one batch; it is empty.")
    return _seen(rates, losses)


def _seen(rates: list[float], losses: list[float]) -> LRRangeTest:
    """Return what was found, without the losses that are no numbers."""
    diverged = rates[len(losses) - 1] if _diverges(losses) else None
    losses = [value for value in losses if math.isfinite(value)]
    if len(losses) < 2:
        raise InvalidData(
            f"lr_range_test: the loss must be a finite number at the smallest rates; it was not at "
            f"lr={rates[0]:g}. Check the data, or lower `low`."
        )
    return LRRangeTest(tuple(rates[: len(losses)]), tuple(losses), diverged)


def _slope(values: Sequence[float]) -> float:
    """Slope of the line through equidistant values; 0 for fewer than three."""
    return float(np.polyfit(range(len(values)), values, 1)[0]) if len(values) > 2 else 0.0


def _check(low: float, high: float, steps: int) -> None:
    if not 0 < low < high:
        raise InvalidParameter(
            f"lr_range_test: `low` must be positive and below `high`; got {low!r} and {high!r}."
        )
    if steps < 2:
        raise InvalidParameter(f"lr_range_test: `steps` must be at least 2; got {steps!r}.")


def _sweep(
    net: nn.Module,
    loss: Callable[[nn.Module, Any], Tensor],
    batches: Iterable[Any],
    optimizer: Optimizer,
    rates: Sequence[float],
) -> Iterator[float]:
    """Yield the loss before each step, until it diverges."""
    losses: list[float] = []
    for rate, batch in zip(rates, _again_and_again(batches), strict=False):
        for group in optimizer.param_groups:
            old = group["lr"]
            group["lr"] = torch.full_like(old, rate) if isinstance(old, Tensor) else rate
        losses.append(_step(net, loss, batch, optimizer))
        yield losses[-1]
        if _diverges(losses):
            return


def _step(
    net: nn.Module, loss: Callable[[nn.Module, Any], Tensor], batch: Any, optimizer: Optimizer
) -> float:
    """Take a step and return the loss before it; some optimizers look more than once."""
    seen: list[float] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(net, batch)
        if not isinstance(value, Tensor) or value.numel() != 1:
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InvalidData(
                f"lr_range_test: `loss(net, batch)` must return a tensor of one number; got {got}."
            )
        value.backward()  # type: ignore[no-untyped-call]
        seen.append(float(value.detach()))
        return value

    optimizer.step(closure)  # type: ignore[arg-type]
    return seen[0]


def _again_and_again(batches: Iterable[Any]) -> Iterator[Any]:
    """Walk through the batches until they give nothing more, as a generator does at last."""
    found = True
    while found:
        found = False
        for batch in batches:
            found = True
            yield batch


def _diverges(losses: Sequence[float]) -> bool:
    """Whether the last loss is not finite, or the running mean is far above its lowest."""
    if not math.isfinite(losses[-1]):
        return True
    mean = lowest = losses[0]
    for value in losses[1:]:
        mean = SMOOTHING * mean + (1 - SMOOTHING) * value
        lowest = min(lowest, mean)
    return mean > lowest + RISE * abs(losses[0])


@contextmanager
def _untouched(net: nn.Module, optimizer: Optimizer) -> Iterator[None]:
    """Put network, optimizer and random states back at the end, whatever happens inside."""
    tensors = [*net.parameters(), *net.buffers()]
    values = [t.detach().clone() for t in tensors]
    gradients = [t.grad for t in tensors]
    for tensor in tensors:  # so that clearing gradients cannot change these
        tensor.grad = None
    with without_dynamo():
        state = copy.deepcopy(optimizer.state_dict())
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = {t.device for t in tensors if t.device.type == "cuda"}
    try:
        with torch.random.fork_rng(devices=list(devices)):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        with torch.no_grad(), without_dynamo():
            for tensor, value, gradient in zip(tensors, values, gradients, strict=True):
                tensor.copy_(value)
                tensor.grad = gradient
            optimizer.load_state_dict(state)
