"""Adding over 600 steps, copying over 200, counting to 60: LSTM and Elman network, five seeds.

The tasks of `castalia lab long-memory`, at their full length. Every fit is a job; ``CASTALIA_JOBS``
run side by side. Finished ones are kept in ``long_memory.jsonl`` in the folder ``OUT`` and not
repeated; the figure is written beside it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import torch

from castalia.lab.long_memory_experiment import CELLS, TASKS, Sizes, drawn
from evidence.rows import print_table

FULL = Sizes(
    adding=600, copying=200, symbols=5, rows=5000, epochs=40, hidden=64, seeds=5, counted=150
)

# Copying wants RMSprop and 14,000 steps.
COPYING = replace(
    FULL,
    rows=20_000,
    epochs=70,
    hidden=128,
    rate=1e-3,
    loop={"optimizer": ("rmsprop", {"alpha": 0.9})},
)

QUICK = Sizes(20, 5, 2, 4, 6, 100, 1, 8, 1, 1)
Job = tuple[str, str, int]  # task, cell, seed


def run(quick: bool = False) -> None:
    """Train what is not kept yet, and draw."""
    sizes, out = QUICK if quick else FULL, Path(os.environ.get("OUT", "."))
    kept = out / f"long_memory{'-quick' if quick else ''}.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {tuple(line["job"]): line["score"] for line in lines}
    asked = [
        (n, c, k)
        for k in range(sizes.seeds)
        for n in ("copying", "adding", "counting")
        for c in CELLS
    ]
    work([job for job in asked if job not in done], done, kept, quick)
    scores = {
        (name, cell): [done[name, cell, k] for k in range(sizes.seeds) if (name, cell, k) in done]
        for name in TASKS
        for cell in CELLS
    }
    if all(scores.values()):
        found = drawn(scores, sizes)
        found.figure.savefig(out / "long-memory-600.png", dpi=110)
        print(found.said)
    rows = [[*key, ", ".join(f"{x:.3g}" for x in found)] for key, found in scores.items()]
    print_table("Long memory", ["task", "cell", "each seed"], rows)


def work(left: list[Job], done: dict[Job, float], kept: Path, quick: bool) -> None:
    """Do the jobs, and keep each as soon as it is done."""
    start, spawn = time.perf_counter(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(int(os.environ.get("CASTALIA_JOBS", 1)), mp_context=spawn) as pool:
        waiting = {pool.submit(score, job, quick): job for job in left}
        for future in as_completed(waiting):
            job = waiting[future]
            done[job] = future.result()
            print(f"{time.perf_counter() - start:.0f} s: {job} {done[job]:.4g}", flush=True)
            with kept.open("a") as file:
                file.write(json.dumps({"job": job, "score": done[job]}) + "\n")


def score(job: Job, quick: bool) -> float:
    """What one fit reaches."""
    torch.set_num_threads(1)
    name, cell, seed = job
    sizes = QUICK if quick else COPYING if name == "copying" else FULL
    return TASKS[name](cell, sizes, seed)
