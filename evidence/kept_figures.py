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
