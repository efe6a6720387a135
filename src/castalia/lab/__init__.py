"""The course's experiments, one short file each, on the library's own code.

Every experiment is a function ``run(quick=False)`` that returns a figure, the numbers behind it and
one sentence about them; ``quick`` makes it small enough for a test.
"""

from castalia.lab.experiments import EXPERIMENTS, Outcome, run

__all__ = ["EXPERIMENTS", "Outcome", "run"]
