"""One threshold and its origin."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ORIGINS", "Limit"]

ORIGINS = {
    "corpus": "set on the trainings of evidence/corpus, between the healthy and the faulty ones",
    "tests": "set on the trainings of tests/diagnose/examination: quiet is the largest value over "
    "healthy ones, planted the smallest over faulty ones",
    "published": "a convention of the literature, or a usual setting",
    "definition": "follows from what is measured, or from the rounding of floats",
    "chosen": "nobody measured it",
}


@dataclass(frozen=True)
class Limit:
    """A threshold.

    Attributes
    ----------
    value
        The number.
    origin
        A key of ``ORIGINS``.
    why
        What is compared with it, and the figures that set it where they are known.
    """

    value: float
    origin: str
    why: str
