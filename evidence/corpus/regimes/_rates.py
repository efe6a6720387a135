"""One training, several rates: as it should be, and times or over some factors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import torch

from castalia.diagnose import Diagnosis
from castalia.diagnose.script import Session
from evidence.corpus.cases import case

__all__ = ["SCORES", "regime"]

Program = Callable[[int, float], float]  # seed and factor of the rate; score on rows held out
SCORES: list[float] = []


def regime(
    *,
    high: Iterable[float] = (),
    low: Iterable[float] = (),
    harmless: Iterable[float] = (),
    data: str = "digits",
    net: str = "mlp",
) -> Callable[[Program], Program]:
    """Put a training into the corpus at its own rate and at others.

    Parameters
    ----------
    high, low
        Factors of the rate, above and below 1, that cost a twentieth of the score and more.
    harmless
        Factors that cost less than a fiftieth: then it is healthy all the same. What costs
        something in between is neither.
    data, net
        As in ``case``.
    """

    def register(program: Program) -> Program:
        for factor in (1.0, *harmless):
            case(None, data=data, net=net)(_watched(program, factor))
        for code, factors in (("CST101", high), ("CST102", low)):
            for factor in factors:
                dose = "severe" if max(factor, 1 / factor) > 50 else "mild"
                case(code, dose=dose, data=data, net=net)(_watched(program, factor))
        return program

    return register


def _watched(program: Program, factor: float) -> Callable[[int], Diagnosis]:
    @functools.wraps(program)
    def run(seed: int) -> Diagnosis:
        torch.manual_seed(seed)
        session = Session()
        session.start()
        try:
            SCORES.append(float(program(seed, factor)))
        finally:
            session.stop()
        return session.diagnosis()

    run.__name__ += _suffix(factor)
    return run


def _suffix(factor: float) -> str:
    if factor == 1.0:
        return ""
    return f"_times_{factor:g}" if factor > 1 else f"_over_{1 / factor:g}"
