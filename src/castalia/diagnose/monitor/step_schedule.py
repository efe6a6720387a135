"""Which steps to sample: many at the start, ever fewer later."""

from __future__ import annotations

__all__ = ["GLANCE_EVERY", "StepSchedule"]

FIRST = 8  # steps that are all glanced at
GLANCE_EVERY = 32
LATER = 1024  # steps after which glances get rarer
GLANCE_LATER = 128


class StepSchedule:
    """Steps 0 to 3, then each half as far again as the one before, at most 500 apart.

    A look costs about as much as two or three small steps; a glance, which keeps a few rows, a
    fraction of one.

    Attributes
    ----------
    next
        The next step to sample.
    soon
        The next step to look or glance at.

    Parameters
    ----------
    growth
        Ratio of one looked-at step to the next.
    most_apart
        Largest distance.

    Examples
    --------
    >>> sampling = StepSchedule()
    >>> [step for step in range(60) if sampling.look(step)]
    [0, 1, 2, 3, 5, 8, 12, 18, 27, 41]
    """

    def __init__(self, growth: float = 1.5, most_apart: int = 500) -> None:
        self.growth, self.most_apart = growth, most_apart
        self.next = self.soon = 0

    def look(self, step: int) -> bool:
        """Whether to sample this step; asked in order, at steps before ``soon`` if one likes."""
        looks = step >= self.next
        if looks:
            further = min(int(step * self.growth + 0.5), step + self.most_apart)
            self.next = max(step + 1, further)
        if step >= self.soon:
            every = GLANCE_EVERY if step < LATER else GLANCE_LATER
            glance = step + 1 if step < FIRST else (step // every + 1) * every
            self.soon = min(self.next, glance)
        return looks

    def glance(self, step: int) -> bool:
        """Whether to keep some rows of this step."""
        return step % (GLANCE_EVERY if step < LATER else GLANCE_LATER) == 0 or step < FIRST

    def hasten(self) -> None:
        """Sample the next step, whichever it is: something is wrong."""
        self.next = self.soon = 0
