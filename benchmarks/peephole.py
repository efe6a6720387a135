"""A peephole LSTM, forward and backward, against torch's plain one: cuDNN's on a GPU.

On a CPU the processor's time is counted, so that a busy machine changes little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from benchmarks.harness import Bar, Report, Spread, main
from castalia.nn import LSTMCell, Recurrent


@dataclass(frozen=True)
class Size:
    batch: int
    steps: int
    units: int
    rounds: int


SIZES = {"full": Size(64, 128, 512, 7), "quick": Size(16, 64, 128, 3), "tiny": Size(2, 4, 8, 1)}


def run(scale: str = "full") -> Report:
    """Take gradients of both by turns; ratios are taken inside a round."""
    size, gpu = SIZES[scale], torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    x = torch.randn(size.batch, size.steps, size.units, device=device)
    cell = partial(LSTMCell, peephole=True)
    plain = nn.LSTM(size.units, size.units, batch_first=True)
    nets: dict[str, nn.Module] = {
        "peephole": Recurrent(cell, size.units, size.units).to(device),
        "torch.nn.LSTM, plain": plain.to(device),
    }
    seconds: dict[str, list[float]] = {name: [] for name in nets}
    for number in range(-3, size.rounds):  # the first ones warm up
        for name, net in nets.items():
            found = _timed(partial(_gradients, net, x), device)
            if number >= 0:
                seconds[name].append(found)
    ours, theirs = seconds.values()
    times = Spread.of([a / b for a, b in zip(ours, theirs, strict=True)])
    lines = ["| network | ms, median (min–max) |", "|---|---|"]
    lines += [
        f"| {name} | {Spread.of([1e3 * s for s in found]):.2f} |" for name, found in seconds.items()
    ]
    lines.append(f"\nPeephole over plain: {times:.2f}.")
    setting = f"{size.batch} x {size.steps} steps x {size.units} units, float32, {device.type}"
    bar = Bar("peephole LSTM over torch's", times.median, "<=", 1.5 if gpu else 2.0)
    return Report("peephole", setting, "\n".join(lines), [bar], {"seconds": seconds})


def _gradients(net: nn.Module, x: torch.Tensor) -> None:
    net.zero_grad()
    net(x)[0].sum().backward()


def _timed(work: Callable[[], None], device: torch.device) -> float:
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    _wait(device)
    start = clock()
    work()
    _wait(device)
    return clock() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main(run)
