"""A fit while another process holds one of two cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks.harness import ROOT, Bar, Report, Spread, free_threads_environment, main


@dataclass(frozen=True)
class Size:
    copies: int
    epochs: int
    rounds: int
    by_hand: bool = True


SIZES = {"full": Size(20, 10, 5), "quick": Size(5, 3, 3), "tiny": Size(1, 1, 1, by_hand=False)}

# Runs in a process of its own, in the environment of somebody who set no threads.
FIT = """
import json, os, sys, time
copies, epochs, who, cores = (json.loads(word) for word in sys.argv[1:])
if cores: os.sched_setaffinity(0, cores)
import numpy as np, torch
from benchmarks import digits, peers
X, y = digits.data(copies)
X, task = X.astype(np.float32), peers.Task(epochs, batch_size=128)
fit = peers.fit_castalia if who == "castalia" else lambda *a: peers.by_hand(*a)()
fit(X[:256], y[:256], peers.Task(1, 128))  # imports and first-call costs
start = time.perf_counter()
model = fit(X, y, task)
seconds = time.perf_counter() - start
settings = getattr(model, "settings_", {"threads": torch.get_num_threads()})
print(json.dumps({"seconds": seconds, "settings": settings}))
"""
BUSY = """
import json, os, sys
cores = json.loads(sys.argv[1])
if cores: os.sched_setaffinity(0, cores)
while os.getppid() == int(sys.argv[2]): sum(range(10_000))
"""


def run(scale: str = "full") -> Report:
    """Fit in fresh processes on two cores, in turns quiet and beside a busy loop on one of them."""
    size, cores = SIZES[scale], two_cores()
    found: dict[str, list[float]] = {}
    settings: dict[str, object] = {}
    for _ in range(size.rounds):
        for who in ("castalia", "by hand") if size.by_hand else ("castalia",):
            for state in ("quiet", "busy"):
                answer = _fit(size, who, cores) if state == "quiet" else _beside(size, who, cores)
                found.setdefault(f"{who}, {state}", []).append(answer["seconds"])
                settings[who] = answer["settings"]
    lines = ["| contender | wall s, median (min–max) | over its quiet time |", "|---|---|---|"]
    ratios = {}
    for name, seconds in found.items():
        quiet = found[name.replace("busy", "quiet")]
        ratios[name] = Spread.of([a / b for a, b in zip(seconds, quiet, strict=True)])
        lines.append(f"| {name} | {Spread.of(seconds):.3f} | {ratios[name]:.2f} |")
    lines += ["", *(f"{who}: {resolved}" for who, resolved in settings.items())]
    bars = [Bar("busy over quiet time", ratios["castalia, busy"].median, "<=", 2.0)]
    setting = (
        f"Digits x {size.copies}, {size.epochs} epochs, cores {cores or 'all'}, "
        f"threads as libraries choose, {size.rounds} rounds."
    )
    return Report("contention", setting, "\n".join(lines), bars, found)


def two_cores() -> list[int]:
    """The two cores to use, or none where processes cannot be pinned."""
    return sorted(os.sched_getaffinity(0))[:2] if hasattr(os, "sched_getaffinity") else []


def _fit(size: Size, who: str, cores: list[int]) -> dict:
    words = [json.dumps(word) for word in (size.copies, size.epochs, who, cores)]
    command = [sys.executable, "-c", FIT, *words]
    env = free_threads_environment()
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _beside(size: Size, who: str, cores: list[int]) -> dict:
    burner = [sys.executable, "-c", BUSY, json.dumps(cores[-1:]), str(os.getpid())]
    with subprocess.Popen(burner) as busy:
        try:
            time.sleep(0.3)
            return _fit(size, who, cores)
        finally:
            busy.kill()


if __name__ == "__main__":
    main(run)
