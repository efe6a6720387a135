"""Finished stages of a run, kept as files so that nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from castalia.method.report.plain_values import from_text, plain, to_text
from castalia.train.strategy import from_first
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.process_ranks import alone, is_first
from castalia.utils.regular_files import read_regular

__all__ = ["Stages"]


class Stages:
    """Results by stage name, under one fingerprint.

    Parameters
    ----------
    folder
        Where the files lie; made when missing.
    fingerprint
        What decides the results; results with another one are not used.

    Examples
    --------
    >>> import tempfile
    >>> stages = Stages(Path(tempfile.mkdtemp()), "abc")
    >>> stages.do("sum", lambda: 1 + 1), stages.do("sum", lambda: 3 + 3)
    (2, 2)
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder, self.fingerprint = folder, fingerprint

    def done(self, name: str) -> Any:
        """Return the result of a finished stage, or None. A damaged file counts as not finished."""
        try:
            found = from_text(read_regular(self.folder / f"{name}.json"))
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict) or found.get("fingerprint") != self.fingerprint:
            return None
        return found.get("result")

    def do(self, name: str, work: Callable[[], Any], *, together: bool = False) -> Any:
        """Return the result of a stage, from its file or by doing it now.

        The result is plain data either way, so a resumed run sees what the first one saw. Of
        several processes the first does it, and hands the result to the others.

        Parameters
        ----------
        name, work
            Of the stage.
        together
            Whether all processes do it, as a training that they share.
        """
        found = from_first(self.done(name) if is_first() else None)
        if found is not None:
            return found
        first = is_first()
        with nullcontext() if together else alone():
            text = self._text(work()) if first or together else ""
        if first:
            with writing("fit", self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                atomic_write(self.folder / f"{name}.json", text)
        return from_text(from_first(text))["result"]

    def _text(self, result: Any) -> str:
        return to_text({"fingerprint": self.fingerprint, "result": plain(result)})
