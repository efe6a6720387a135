"""What watching costs: a bare loop with and without the doctor, in turn, on CPU and GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.harness import Bar, Report, main

ROUNDS = {"full": 9, "quick": 3, "tiny": 1}
STEPS = {"mlp": 1500, "cells": 60, "lbfgs": 12, "resnet18": 600, "gpt124m": 300}
ON_CPU = ("mlp", "cells", "lbfgs")

Loop = tuple[nn.Module, Callable[[], Tensor]]


def mlp(device: torch.device) -> Loop:
    """MLP 64-64 on 64 columns, batches of 128."""
    net = nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    ).to(device)
    X, y = torch.randn(4096, 64, device=device), torch.randint(0, 10, (4096,), device=device)

    def loss() -> Tensor:
        index = torch.randint(0, 4096, (128,), device=device)
        return F.cross_entropy(net(X[index]), y[index])

    return net, loss


class Cells(nn.Module):
    """Two LSTM cells over the numbers of a row: thousands of small operations a step."""

    def __init__(self, hidden: int = 51) -> None:
        super().__init__()
        self.first, self.second = nn.LSTMCell(1, hidden), nn.LSTMCell(hidden, hidden)
        self.out, self.hidden = nn.Linear(hidden, 1), hidden

    def forward(self, x: Tensor) -> Tensor:
        h = c = h2 = c2 = x.new_zeros(len(x), self.hidden)
        found = []
        for value in x.split(1, dim=1):
            h, c = self.first(value, (h, c))
            h2, c2 = self.second(h, (h2, c2))
            found.append(self.out(h2))
        return torch.cat(found, dim=1)


def cells(device: torch.device, length: int = 200) -> Loop:
    """LSTM cells on 64 sine waves of 200 steps."""
    net, times = Cells().to(device), torch.arange(length + 1, device=device)
    waves = torch.sin(times * 0.3 + 3 * torch.randn(64, 1).to(device))
    return net, lambda: F.mse_loss(net(waves[:, :-1]), waves[:, 1:])


def lbfgs(device: torch.device, length: int = 200) -> Loop:
    """LSTM cells on 64 sine waves of 200 steps, L-BFGS of five iterations."""
    return cells(device, length)


def resnet18(device: torch.device) -> Loop:
    """ResNet-18 on 128 images of 3 x 224 x 224, in bfloat16."""
    from torchvision.models import resnet18 as build

    net = build().to(device)
    X = torch.randn(128, 3, 224, 224, device=device)
    y = torch.randint(0, 1000, (128,), device=device)

    def loss() -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return F.cross_entropy(net(X), y)

    return net, loss


def gpt124m(device: torch.device) -> Loop:
    """GPT-2 of 124 million parameters on 8 rows of 1,024 tokens, in bfloat16."""
    from transformers import GPT2Config, GPT2LMHeadModel

    net = GPT2LMHeadModel(GPT2Config(attn_implementation="sdpa")).to(device)
    tokens = torch.randint(0, 50257, (8, 1025), device=device)

    def loss() -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            logits = net(tokens[:, :-1]).logits
            return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    return net, loss


def train(make: Callable[..., Loop], steps: int, watched: bool, **size: int) -> tuple[float, float]:
    """Return the seconds of a training and its peak memory; the first steps are not counted."""
    from castalia.diagnose import watch

    device = torch.device("cpu" if make.__name__ in ON_CPU else "cuda")
    torch.manual_seed(0)
    net, loss = make(device, **size)
    optimizer: torch.optim.Optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    if make is lbfgs:
        optimizer = torch.optim.LBFGS(net.parameters(), lr=0.8, max_iter=5)
    doctor = watch(net, optimizer) if watched else None
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    started = clock()

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(steps):
        if make is lbfgs:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    seconds = clock() - started
    if doctor is not None:
        doctor.close()
    return seconds, torch.cuda.max_memory_allocated() if device.type == "cuda" else 0.0


def compare(name: str, rounds: int, steps: int, **size: int) -> tuple[list[float], float, float]:
    """Return the time ratio of each round, the memory ratio, and seconds of a step unwatched."""
    loops = (mlp, cells, lbfgs, resnet18, gpt124m)
    make = {one.__name__: one for one in loops}[name]
    train(make, max(steps // 10, 1), True, **size)  # warm up
    ratios, memory, each = [], 1.0, []
    for _ in range(rounds):
        bare, room = train(make, steps, False, **size)
        seen, more = train(make, steps, True, **size)
        ratios.append(seen / bare)
        memory = more / room if room else 1.0
        each.append(bare / steps)
    return ratios, memory, median(each)


def run(scale: str = "full") -> Report:
    """Time the loops; the GPU ones only where there is a GPU."""
    names = [name for name in ON_CPU if scale != "tiny" or name != "cells"]  # L-BFGS has the same
    names += ["resnet18", "gpt124m"] if torch.cuda.is_available() else []
    lines, bars, figures = ["| loop | step | time | memory |", "|---|---|---|---|"], [], {}
    for name in names:
        rounds = ROUNDS[scale] if name == "mlp" else min(ROUNDS[scale], 3)
        steps = STEPS[name] if scale != "tiny" else max(1, STEPS[name] // 75)
        size = {"length": 10} if scale == "tiny" and name == "lbfgs" else {}
        ratios, memory, step = compare(name, rounds, steps, **size)
        middle = median(ratios)
        spread = f"{middle:.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        lines.append(f"| {name} | {1e3 * step:.2f} ms | {spread} | {memory:.3f} |")
        bars.append(
            Bar(
                f"{name}: time watched over unwatched",
                middle,
                "<=",
                1.05 if name in ON_CPU else 1.02,
            )
        )
        if name not in ON_CPU:
            bars.append(Bar(f"{name}: memory watched over unwatched", memory, "<=", 1.02))
        figures[name] = {"ratios": ratios, "memory": memory, "step": step}
    setting = "A bare loop with AdamW or L-BFGS, watched and unwatched in turn; " + ", ".join(
        f"{name} {STEPS[name]} steps" for name in names
    )
    return Report("doctor", setting + ".", "\n".join(lines), bars, figures)


if __name__ == "__main__":
    main(run)
