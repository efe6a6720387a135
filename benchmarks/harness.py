"""What the benchmarks share: interleaved timing, bars, one table, one JSON file.

Contenders take turns in every round, in an order that rotates, so that a slow minute of the
machine hits all of them. Ratios are taken inside a round and summed up by their median, smallest
and largest value.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "out"
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "LOKY_MAX_CPU_COUNT",
    ),
    "1",
)


def one_thread_environment() -> dict[str, str]:
    """The environment for a measured process: one thread, no network, quiet peers."""
    return {**os.environ, **ONE_THREAD, "KERAS_BACKEND": "torch"}


def free_threads_environment() -> dict[str, str]:
    """The environment of somebody who set nothing: libraries choose their threads."""
    return {k: v for k, v in os.environ.items() if k not in ONE_THREAD}


def installed(package: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(package) is not None


@dataclass(frozen=True)
class Contender:
    """Something to time; ``run`` may return a function that scores it, which is not timed."""

    name: str
    run: Callable[[], Callable[[], float] | None]


@dataclass
class Result:
    """Seconds of every round."""

    name: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    score: float | None = None


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of several measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def __format__(self, spec: str) -> str:
        return f"{self.median:{spec}} ({self.low:{spec}}–{self.high:{spec}})"


@dataclass(frozen=True)
class Bar:
    """A promised figure: the value must be at most, or at least, the bound."""

    what: str
    value: float
    rule: str  # "<=" or ">="
    bound: float
    unit: str = ""

    @property
    def held(self) -> bool:
        return self.value <= self.bound if self.rule == "<=" else self.value >= self.bound

    def __str__(self) -> str:
        mark = "held  " if self.held else "MISSED"
        bar = f"(bar {self.rule} {self.bound:g}{self.unit})"
        return f"{mark}  {self.what}: {self.value:.3g}{self.unit} {bar}"


def race(contenders: Sequence[Contender], rounds: int, warm_up: int = 1) -> dict[str, Result]:
    """Time the contenders in turns; the warm-up rounds are thrown away."""
    results = {c.name: Result(c.name) for c in contenders}
    for number in range(-warm_up, rounds):
        turn = number % len(contenders)
        for contender in [*contenders[turn:], *contenders[:turn]]:
            wall, cpu = time.perf_counter(), time.process_time()
            score = contender.run()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            result = results[contender.name]
            if number >= 0:
                result.wall.append(wall)
                result.cpu.append(cpu)
            if number == rounds - 1 and score is not None:
                result.score = score()
    return results


def ratio(of: Result, over: Result, clock: str = "cpu") -> Spread:
    """Time of one contender over that of another, round by round."""
    pairs = zip(getattr(of, clock), getattr(over, clock), strict=True)
    return Spread.of([a / b for a, b in pairs])


def table(results: dict[str, Result], base: str, score: str = "accuracy") -> str:
    """Markdown: seconds, and times over ``base``, of every contender."""
    lines = [
        "| contender | CPU s, median (min–max) | wall s "
        f"| CPU time over {base} | wall over {base} | {score} |",
        "|---|---|---|---|---|---|",
    ]
    for result in results.values():
        cells = [
            result.name,
            f"{Spread.of(result.cpu):.3f}",
            f"{Spread.of(result.wall):.3f}",
            f"{ratio(result, results[base]):.2f}",
            f"{ratio(result, results[base], 'wall'):.2f}",
            "" if result.score is None else f"{result.score:.4f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@dataclass
class Report:
    """What a benchmark found."""

    name: str
    setting: str
    text: str
    bars: list[Bar] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = (f"## {self.name}", self.setting, self.text, "\n".join(map(str, self.bars)))
        return "\n\n".join(part for part in parts if part)

    def save(self) -> Path:
        """Write ``out/NAME.json``."""
        OUT.mkdir(exist_ok=True)
        path = OUT / f"{self.name}.json"
        found = {**asdict(self), "machine": machine(), "date": _now()}
        path.write_text(json.dumps(found, indent=2) + "\n")
        return path


def machine() -> dict[str, Any]:
    """What the figures were obtained on."""
    found: dict[str, Any] = {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg(),
    }
    for package in ("torch", "numpy", "sklearn", "skorch", "lightning", "keras", "torchdiffeq"):
        if installed(package):
            name = {"sklearn": "scikit-learn"}.get(package, package)
            found[package] = importlib.metadata.version(name)
    return found


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def main(run: Callable[..., Report], **options: Any) -> None:
    """Run a benchmark from the command line, print its report and save it."""
    parser = argparse.ArgumentParser(description=run.__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: to try the script out")
    for name, kind in options.items():
        parser.add_argument(f"--{name}", type=kind)
    asked = vars(parser.parse_args())
    scale = "quick" if asked.pop("quick") else "full"
    report = run(scale, **{name: value for name, value in asked.items() if value is not None})
    print(report, f"\n[{report.save()}, {_now()}]\n", flush=True)
