"""The events of a fit; the command line and other front ends receive them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from castalia.method.report import Contender

__all__ = ["Narrator"]


class Narrator:
    """Receives every event of a fit; override what you want to show.

    Examples
    --------
    >>> class Quiet(Narrator):
    ...     def baseline(self, contender, metric):
    ...         self.last = contender.name
    """

    def reading(self, name: str) -> None:
        """The data is about to be read, which takes a while."""

    def started(self, folder: Path, facts: dict[str, Any]) -> None:
        """The data is read; the run lies in this folder."""

    def warning(self, words: str) -> None:
        """There is something that makes the scores worthless, unless it is meant."""

    def note(self, words: str) -> None:
        """There is a remark on the data."""

    def baseline(self, contender: Contender, metric: str) -> None:
        """A baseline is scored."""

    def checked(self, checks: Sequence[dict[str, Any]]) -> None:
        """The preflight checks are done."""

    def trial(self, number: int, of: int, words: str) -> None:
        """A trial of a search has ended."""

    def cured(self, steps: Sequence[dict[str, Any]]) -> None:
        """The doctor's remedies were tried."""

    def training(self, number: int, of: int, words: str) -> None:
        """A training begins, the first one being number 1."""

    def trained(self, number: int, of: int, words: str) -> None:
        """A training is done."""
