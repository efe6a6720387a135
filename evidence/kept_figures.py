"""Figures that are kept in a file as they are found, so that a script goes on where it stopped."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Kept:
    """Figures by name, in one JSON file under OUT (here, where that is not set).

    Parameters
    ----------
    name
        Of the file, without its ending.
    """

    def __init__(self, name: str) -> None:
        self.path = Path(os.environ.get("OUT", ".")) / f"{name}.json"
        self.figures: dict[str, Any] = (
            json.loads(self.path.read_text()) if self.path.is_file() else {}
        )

    def find(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return figures, from the file or by working them out now."""
        if name not in self.figures:
            start = time.perf_counter()
            found = work()
            self.figures[name] = {**found, "seconds": round(time.perf_counter() - start, 1)}
            self.path.write_text(json.dumps(self.figures, indent=1))
            print(f"{name}: {json.dumps(self.figures[name])}", flush=True)
        result: dict[str, Any] = self.figures[name]
        return result


def fit_within(
    seconds: float, make: Callable[[int], Any], X: Any, y: Any = None, share: float = 0.1
) -> Any:
    """Return a model fitted for as many epochs as the time allows, by trial on some of the rows.

    Parameters
    ----------
    seconds
        For the fit.
    make
        Makes an unfitted model for a number of epochs.
    X, y
        What it is fitted to.
    share
        Of the rows, for the trial.
    """
    some = slice(max(100, int(share * len(X))))
    trial = make(2).fit(X[some], None if y is None else y[some])
    epoch = max(trial.history_[-1]["seconds"] * len(X) / some.stop, 1e-3)
    epochs = max(2, int(seconds / epoch))
    print(f"{type(trial).__name__}: {epoch:.2f} s an epoch, {epochs} epochs", flush=True)
    return make(epochs).fit(X, y)
