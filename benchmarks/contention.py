"""A fit while another process holds one of two cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ROOT, Bar, Report, Spread, free_threads_environment, main


@dataclass(frozen=True)
class Size:
    copies: int
    epochs: int
    rounds: int
    seconds: int  # of each contender, after which it is stopped
    contenders: tuple[str, ...] = ("castalia", "by hand")


SIZES = {
    "full": Size(10, 5, 5, 22),
    "quick": Size(5, 3, 2, 15),
    "tiny": Size(1, 1, 1, 30, ("castalia",)),
}

# Runs in a process of its own, in the environment of somebody who set no threads; says when a fit
# begins and when it has ended, so that one that is stopped has been measured too.
FITS = """
import json, os, signal, subprocess, sys, time
copies, epochs, rounds, seconds, who, cores = (json.loads(word) for word in sys.argv[1:7])
if cores: os.sched_setaffinity(0, cores)
import numpy as np, torch
from benchmarks import digits, peers
X, y = digits.data(copies)
X, task = X.astype(np.float32), peers.Task(epochs, batch_size=128)
fit = peers.fit_castalia if who == "castalia" else lambda *a: peers.by_hand(*a)()
model = fit(X[:256], y[:256], peers.Task(1, 128))  # imports and first-call costs
settings = getattr(model, "settings_", {"threads": torch.get_num_threads()})
say = lambda *words: print(json.dumps(words), flush=True)
signal.alarm(seconds)
say("settings", settings, time.monotonic() + seconds)
def timed(state):
    say("begin", state, time.monotonic())
    fit(X, y, task)
    say("end", state, time.monotonic())
for _ in range(rounds):
    timed("quiet")
    with subprocess.Popen([sys.executable, "-c", sys.argv[7], json.dumps(cores[-1:])]) as busy:
        try:
            time.sleep(0.3)
            timed("busy")
        finally:
            busy.kill()
"""
BUSY = """
import json, os, sys
cores, parent = json.loads(sys.argv[1]), os.getppid()
if cores: os.sched_setaffinity(0, cores)
while os.getppid() == parent: sum(range(10_000))
"""


def run(scale: str = "full") -> Report:
    """Fit on two cores, in turns quiet and beside a busy loop on one of them, for half a minute."""
    size, cores = SIZES[scale], two_cores()
    lines = ["| contender | wall s, median (min–max) | over its quiet time |", "|---|---|---|"]
    notes, ratios, figures = [], {}, {}
    for who in size.contenders:
        found, stopped, settings = fits(size, who, cores)
        figures[who] = {**found, "stopped after": stopped, "settings": settings}
        notes.append(f"{who}: {settings}")
        for state, seconds in found.items():
            pairs = zip(seconds, found["quiet"], strict=False)
            ratios[who, state] = Spread.of([a / b for a, b in pairs])
            lines.append(
                f"| {who}, {state} | {Spread.of(seconds):.3f} | {ratios[who, state]:.2f} |"
            )
        if stopped is not None:
            least = stopped / min(found.get("quiet", [float("inf")]))
            lines.append(f"| {who}, stopped | > {stopped:.1f} | > {least:.1f} |")
    held = ratios.get(("castalia", "busy"))
    bars = [Bar("busy over quiet time", held.median if held else float("inf"), "<=", 2.0)]
    setting = (
        f"Digits x {size.copies}, {size.epochs} epochs, cores {cores or 'all'}, threads as "
        f"libraries choose, at most {size.rounds} rounds and {size.seconds} s each."
    )
    return Report("contention", setting, "\n".join([*lines, "", *notes]), bars, figures)


def two_cores(topology: Path = Path("/sys/devices/system/cpu")) -> list[int]:
    """The two cores to use, or none where processes cannot be pinned.

    Threads of one core are taken where there is no other: what one does slows the other down.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    allowed, found = sorted(os.sched_getaffinity(0)), dict[str, int]()  # by the threads of a core
    for number in allowed:
        siblings = topology / f"cpu{number}" / "topology" / "thread_siblings_list"
        found.setdefault(siblings.read_text() if siblings.is_file() else str(number), number)
    return list(found.values())[:2] if len(found) > 1 else allowed[:2]


def fits(
    size: Size, who: str, cores: list[int]
) -> tuple[dict[str, list[float]], float | None, dict[str, object]]:
    """Return the seconds of each state, those of a fit that was stopped, and the settings."""
    asked = (size.copies, size.epochs, size.rounds, size.seconds, who, cores)
    command = [sys.executable, "-c", FITS, *map(json.dumps, asked), BUSY]
    env = free_threads_environment()
    done = subprocess.run(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    (_, settings, end), *said = (json.loads(line) for line in done.stdout.splitlines())
    found: dict[str, list[float]] = {}
    began = None
    for what, value, at in said:
        if what == "begin":
            began = at
        else:
            found.setdefault(value, []).append(at - began)
            began = None
    return found, None if began is None else end - began, settings


if __name__ == "__main__":
    main(run)
