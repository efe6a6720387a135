"""Adding over 600 steps, copying over 200, counting to 60: LSTM and Elman network, five seeds.

The tasks of `castalia lab long-memory`, at their full length. The figure is written under $OUT.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from castalia.lab.long_memory_experiment import Sizes, compare
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


def run(quick: bool = False) -> None:
    """Train and draw."""
    sizes = Sizes(20, 5, 2, 4, 6, 100, 1, 8, 1, 1) if quick else FULL
    found = compare(sizes) if quick else compare(sizes, copying=COPYING)
    path = Path(os.environ.get("OUT", ".")) / "long-memory-600.png"
    found.figure.savefig(path, dpi=110)
    rows = [[name, f"{value:.4g}"] for name, value in found.numbers.items()]
    print_table("Long memory", ["task and cell", "median of the seeds"], rows)
    print(found.said)
