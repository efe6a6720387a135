"""A contender of a fit: its answers part by part, and its row in the table of scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from castalia.method.answer_scores import Answers, joined
from castalia.method.report import Contender

__all__ = ["Entry"]


@dataclass(frozen=True)
class Entry:
    """One contender.

    Attributes
    ----------
    key
        What it is called in files: ``"guess"``, ``"linear"``, ``"model"``.
    shown
        Its row in the table of scores.
    parts
        Its answers on the test rows of each part; a time limit may have left out the last ones.
    each
        Its score on each part.
    """

    key: str
    shown: Contender
    parts: list[Answers]
    each: list[float]

    @property
    def name(self) -> str:
        """Name for people, to be used inside a sentence."""
        name = self.shown.name
        return name if self.shown.role == "model" else name[0].lower() + name[1:]

    @cached_property
    def answers(self) -> Answers:
        """The answers of all parts, one after the other."""
        return joined(self.parts)
