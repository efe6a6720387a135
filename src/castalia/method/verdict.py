"""What to use here: the answer of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from castalia.evaluate import Interval

__all__ = ["Verdict"]


@dataclass(frozen=True)
class Verdict:
    """What to use.

    Attributes
    ----------
    outcome
        The model beside the best baseline: ``"better"``, ``"equal"`` or ``"worse"``; ``"none"``
        when nothing beats guessing or copying.
    words
        The same for people.
    rival
        Name of the best baseline.
    difference
        Gain of the model over that baseline, above 0 when the model is better.
    recommended
        Key of the contender to use.
    """

    outcome: str
    words: str
    rival: str
    difference: Interval
    recommended: str = "model"
