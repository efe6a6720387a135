"""Counters and histograms in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

__all__ = ["Histogram", "ServerCounters", "sample"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def sample(name: str, value: float, **labels: str) -> str:
    """Return one line, its labels escaped.

    >>> sample("castalia_rows_total", 3, column="age")
    'castalia_rows_total{column="age"} 3'
    """
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{name}{{{pairs}}} {shown}" if pairs else f"{name} {shown}"


def _escaped(text: str) -> str:
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Histogram:
    """Counts of values below bounds."""

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of the histogram."""
        yield f"# TYPE {name} histogram"
        below = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            below += count
            yield sample(f"{name}_bucket", below, le=str(bound))
        yield sample(f"{name}_sum", self.total)
        yield sample(f"{name}_count", below)


class ServerCounters:
    """What a server counts."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by route and status
        self.seconds, self.batches = Histogram(SECONDS), Histogram(ROWS)
        self.reloads: Counter[tuple[str, str]] = Counter()  # by model and outcome

    def lines(self) -> Iterator[str]:
        """Yield all lines."""
        yield "# TYPE castalia_requests_total counter"
        for (route, status), count in sorted(self.requests.items()):
            yield sample("castalia_requests_total", count, route=route, status=str(status))
        yield "# TYPE castalia_reloads_total counter"
        for (model, outcome), count in sorted(self.reloads.items()):
            yield sample("castalia_reloads_total", count, model=model, outcome=outcome)
        yield from self.seconds.lines("castalia_request_seconds")
        yield from self.batches.lines("castalia_batch_rows")
