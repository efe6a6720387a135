"""Where the data lie, and the Markdown that the scripts print."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch


def folder() -> Path:
    """The folder of real data, from the environment variable CASTALIA_DATA."""
    path = os.environ.get("CASTALIA_DATA")
    if not path:
        sys.exit(
            "evidence: set CASTALIA_DATA to the folder that holds tables/ and uci-regression/."
        )
    return Path(path)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation over seeds or splits."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a section with how, where and when its figures were obtained."""
    command = f"python -m evidence {' '.join(sys.argv[1:])}".strip()
    day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    print(f"\n## {title}\n")
    print(f"`{command}`, {hardware()}, {day}.\n")
    print(f"| {' | '.join(columns)} |")
    print(f"|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def keep(name: str, **figures: object) -> None:
    """Print the figures of one fit, and append them to NAME.json under $OUT where that is set."""
    line = json.dumps(figures)
    print(line, flush=True)
    if os.environ.get("OUT"):
        with (Path(os.environ["OUT"]) / f"{name}.json").open("a") as file:
            file.write(line + "\n")


def hardware() -> str:
    """The machine in a few words."""
    cores = f"{os.cpu_count()} {platform.machine()} cores"
    if torch.cuda.is_available():
        cores += f" and {torch.cuda.get_device_name()}"
    return f"{cores}, Python {platform.python_version()}, torch {torch.__version__}"
