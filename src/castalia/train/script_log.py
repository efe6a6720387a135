"""``castalia.log``: the numbers of any loop as a run, seen in the studio while the loop goes on."""

from __future__ import annotations

import atexit
import os
import shlex
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from castalia.errors import InvalidParameter
from castalia.train.runs import Run, RunStore

__all__ = ["FOLDER", "ScriptLog", "log", "open_log"]

FOLDER = "castalia-runs"
SHOWN = 1.0  # seconds after which numbers are there for others to read
_UNNAMED = {"": "python", "-c": "python", "-m": "python", "ipykernel_launcher": "notebook"}


class ScriptLog:
    """A run that a script writes, from its first number to the end of its process.

    Parameters
    ----------
    path
        Folder of the run; a name that is taken gets a number.
    settings
        What to show beside its curves, such as the learning rate.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path, self.process = path, os.getpid()
        self.store = RunStore(path.parent)
        self.run: Run = self.store.open_run(path.name, uuid.uuid4().hex, settings)
        self.run.resume()
        self.step = -1
        self._spent, self._last, self._shown = 0.0, time.monotonic(), 0.0
        self._lock = threading.Lock()
        atexit.register(self.close)

    def write(
        self, numbers: Mapping[str, float], step: int | None = None, epoch: int | None = None
    ) -> None:
        """Note numbers at a step; without one, at the next."""
        if os.getpid() != self.process:  # a worker that was forked
            return
        with self._lock:
            before, self.step = self.step, self.step + 1 if step is None else int(step)
            now = time.monotonic()
            self._spent = now - self._last + (self._spent if before == self.step else 0.0)
            self._last = now
            self.run.log(self.step, int(epoch or 0), {**numbers, "seconds": self._spent})
            if now - self._shown >= SHOWN:
                self.run.flush()
                self._shown = now

    def close(self, status: str | None = None) -> None:
        """Write what is held back and say how the script ended: failed, by an error of its own."""
        if os.getpid() != self.process:
            return
        atexit.unregister(self.close)
        with self._lock:
            self.run.finish(status or _ending())
            self.store.close()


_open: ScriptLog | None = None


def open_log(path: str | os.PathLike[str] | None = None, settings: Any = None) -> ScriptLog:
    """Return the log of this process; another path closes the one before.

    Parameters
    ----------
    path
        Folder of the run; None: the one that is open, or ``castalia-runs/<name of the script>``.
    settings
        A mapping to show beside the curves of a new run.
    """
    global _open
    asked = None if path is None else Path(path).absolute()
    if _open is not None and _open.process == os.getpid() and asked in (None, _open.path):
        return _open
    if _open is not None:
        _open.close()
    facts = {"command": _command(), **dict(settings or {})}
    _open = ScriptLog(asked or Path(FOLDER).absolute() / _script_name(), facts)
    return _open


def log(
    values: Mapping[str, Any] | None = None,
    /,
    *,
    step: int | None = None,
    epoch: int | None = None,
    run: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    **named: Any,
) -> None:
    """Log numbers of any training loop; ``castalia studio`` shows them while it runs.

    The first call makes a run; it ends with the process. Of several processes that train together
    only the first one writes.

    Parameters
    ----------
    values
        Numbers by name, for names that are no keywords, such as ``"val/loss"``.
    step, epoch
        Where they belong; without a step, each call is one further.
    run
        Folder of the run, by default ``castalia-runs/<name of the script>``; another one than
        before begins a new run.
    settings
        Of a new run, such as ``{"lr": 0.1}``; runs are compared by them.
    **named
        Numbers by name.

    Examples
    --------
    >>> import castalia, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for loss in (0.9, 0.5):
    ...     castalia.log(loss=loss, run=f"{folder}/first", settings={"lr": 0.1})
    >>> open_log().run.metric("loss")
    ([0, 1], [0.9, 0.5])
    """
    given = {**(values or {}), **named}
    numbers = {str(key): _number(key, value) for key, value in given.items()}
    if os.environ.get("RANK", "0") == "0":
        open_log(run, settings).write(numbers, step, epoch)


def _number(key: Any, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidParameter(
            f"castalia.log: `{key}` must be one number; got {type(value).__name__}."
        ) from None


def _script_name() -> str:
    path = Path(sys.argv[0] if sys.argv else "")
    name = path.resolve().parent.name if path.stem == "__main__" else path.stem
    return _UNNAMED.get(name, name.lstrip(".") or "python")


def _command() -> str:
    return shlex.join([Path(sys.executable).name, *sys.argv]) if sys.argv else ""


def _ending() -> str:
    """Return how the process ends: Python keeps the error that nothing has caught."""
    error = getattr(sys, "last_value", None)
    if error is None or hasattr(sys, "ps1"):
        return "finished"
    return "failed" if isinstance(error, Exception) else "interrupted"
