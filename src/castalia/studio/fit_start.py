"""Starting a fit from the page: files to choose from, their profile, and a process of its own.

What is started is ``castalia fit`` as one would type it, in a session of its own: it goes on when
the studio is closed. Only files below the folder in which the studio was started are offered.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from castalia.errors import InvalidData, InvalidParameter
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_table import load_table
from castalia.method.kinds.table_kind import column_row
from castalia.utils.atomic_files import writing

__all__ = ["FitStart"]

ENDS = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".txt", ".xlsx", ".zip", ".npz")
TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".xlsx")
MOST_FILES = 500
PROFILED = 100_000_000  # bytes of a table that is read for its profile
LOGS = ".studio"  # in the folder of runs
TAIL = 4_000


class FitStart:
    """Starts fits and remembers those that it started.

    Parameters
    ----------
    home
        Folder whose files may be fitted.
    runs
        Folder of the runs.
    """

    def __init__(self, home: Path, runs: Path) -> None:
        self.home, self.runs = home.resolve(), runs.resolve()
        self._started: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._lock = threading.Lock()

    def _inside(self, path: str) -> Path:
        """Return a path below the studio's folder; others are refused."""
        found = (self.home / path).resolve()
        if not found.is_relative_to(self.home) or not found.exists():
            raise InvalidData(f"studio: `{path}` must be a file or folder below {self.home}.")
        return found

    def files(self, folder: str = "") -> dict[str, Any]:
        """List the folders and data files of a folder."""
        here = self._inside(folder)
        if not here.is_dir():
            raise InvalidData(f"studio: `{folder}` must be a folder.")
        entries = [each for each in os.scandir(here) if not each.name.startswith(".")]
        folders = sorted(each.name for each in entries if each.is_dir())
        files = sorted(e.name for e in entries if e.is_file() and e.name.lower().endswith(ENDS))
        where = str(here.relative_to(self.home))
        place = "" if where == "." else where
        cut = {"folders": folders[:MOST_FILES], "files": files[:MOST_FILES]}
        return {"folder": place, "home": str(self.home), **cut}

    def profile(self, path: str) -> dict[str, Any]:
        """Return the columns of a table, or that the file is something else."""
        found = self._inside(path)
        if found.suffix.lower() not in TABLES or found.stat().st_size > PROFILED:
            return {"path": path, "columns": [], "rows": None, "notes": []}
        table, notes = load_table(found)
        columns = [column_row(column) for column in table.schema]
        return {"path": path, "columns": columns, "rows": table.schema.rows, "notes": notes}

    def command(self, body: Mapping[str, Any]) -> list[str]:
        """Return the words of the command that a form asks for."""
        path, target = self._inside(str(body.get("path", ""))), str(body.get("target") or "")
        plan = FitPlan(data=str(path), target=target or None)
        words = ["fit", str(path), f"--run={self.runs / plan.folder.name}"]
        words += [f"--target={target}"] if target else []
        for name in ("seeds", "time_limit"):
            if text := str(body.get(name) or "").strip():
                words.append(f"--{name.replace('_', '-')}={_number(name, text)}")
        return words + (["--doctor"] if body.get("doctor") is True else [])

    def start(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Start a fit; return its number, under which ``state`` reports."""
        words = self.command(body)
        logs = self.runs / LOGS
        with self._lock, writing("studio", logs):
            logs.mkdir(parents=True, exist_ok=True)
            log = logs / f"fit-{os.getpid()}-{len(self._started)}.log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [sys.executable, "-m", "castalia", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    cwd=self.home,
                    start_new_session=True,
                )
            self._started.append((process, log))
            return {"number": len(self._started) - 1, "pid": process.pid}

    def state(self, number: int) -> dict[str, Any]:
        """Return whether a started fit still runs, and the end of what it said."""
        if not 0 <= number < len(self._started):
            raise InvalidParameter(f"studio: no fit was started under number {number}.")
        process, log = self._started[number]
        said = log.read_bytes()[-TAIL:].decode("utf-8", "replace")
        return {"code": process.poll(), "said": said}


def _number(name: str, text: str) -> str:
    try:
        if float(text) > 0:
            return text
    except ValueError:
        pass
    raise InvalidParameter(f"studio: `{name}` must be a number above 0; got {text!r}.")
