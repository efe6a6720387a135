"""The network against guessing, a linear model and boosting."""

from __future__ import annotations

import numpy as np

from castalia.diagnose.examination.baseline_errors import Baselines, baselines
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import difference, standard_error
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["baseline_probe"]

NAME = "baseline-test"


def baseline_probe(subject: Subject) -> Outcome:
    """Compare errors on the validation rows, and the training error with the best baseline."""
    if subject.held is None:
        return skipped(NAME, "without validation data, baselines (CST403) cannot be compared.")
    if not subject.trainable and not subject.trained:
        return skipped(NAME, "the module cannot be run or has nothing to train.")
    known: Baselines | None = subject.once(baselines)
    if known is None:
        return skipped(NAME, f"no baseline for the task {subject.task}, or too few rows.")
    learned = subject.learned
    mine = subject.errors(learned.copy, subject.vx, subject.vy)
    fitted = subject.errors(learned.copy, subject.x, subject.y)
    if mine is None or fitted is None:
        return skipped(NAME, "the outputs cannot be read as predictions.")
    numbers = {name: float(errors.mean()) for name, errors in known.errors.items()}
    numbers |= {"network": float(mine.mean()), "network on training rows": float(fitted.mean())}
    if not np.isfinite(mine).all():
        return saw(NAME, numbers)
    found = _underfit(subject, fitted, known) or _no_better(subject, mine, known)
    if found is not None and not learned.settled:
        note = f"{NAME}: a copy was still learning after {len(learned.losses)} steps; no verdict."
        return Outcome(NAME, numbers, notes=(note,), ran=False)
    return saw(NAME, numbers, [found])


def _word(subject: Subject) -> str:
    return "unexplained variance" if subject.task == "regression" else "error rate"


def _who(subject: Subject) -> str:
    return "The network" if subject.learned.own else "A copy of the network, shortly trained,"


def _underfit(subject: Subject, fitted: np.ndarray, known: Baselines) -> Finding | None:
    """Find a training error above what a baseline reaches on rows it has not seen."""
    best = known.best
    bar, own = float(known.errors[best].mean()), float(fitted.mean())
    doubt = (standard_error(fitted) ** 2 + standard_error(known.errors[best]) ** 2) ** 0.5
    high = own > limit("examine.underfit") * bar and own - bar > max(
        limit("examine.underfit_by"), limit("examine.sure") * doubt
    )
    if best == "guess" or not high:
        return None
    return finding(
        "CST402",
        "warning",
        0.85 if subject.learned.own else 0.7,
        f"{_who(subject)} does worse on its own training rows than the {best} model does on rows "
        f"it has not seen ({_word(subject)} {number(own, 2)} against {number(bar, 2)}).",
        "Train longer or at another rate, widen the network, weaken its penalties, check the "
        "scale of the inputs.",
        Evidence(f"training {_word(subject)}", own, limit("examine.underfit") * bar),
        Evidence(f"validation {_word(subject)} of the {best} model", bar),
    )


def _no_better(subject: Subject, mine: np.ndarray, known: Baselines) -> Finding | None:
    guess = known.errors["guess"]
    gap, sure = difference(guess, mine)
    little = gap < limit("examine.no_better") * float(guess.mean())
    if known.best != "guess" and known.signal and sure < 2 and little:
        return _worse(subject, mine, guess, "guess", "guessing", 0.85)
    best = known.best
    gap, sure = difference(mine, known.errors[best])
    bar = float(known.errors[best].mean())
    clear = bar < limit("examine.better") * float(mine.mean()) and gap > limit("examine.better_by")
    if best == "guess" or not clear or sure < limit("examine.sure"):
        return _tie(subject, mine, known)
    return _worse(subject, mine, known.errors[best], best, f"the {best} model", 0.75)


def _worse(
    subject: Subject, mine: np.ndarray, other: np.ndarray, name: str, words: str, sure: float
) -> Finding:
    cure = "See the other findings first" if name == "guess" else f"Use the {name} model"
    return finding(
        "CST403",
        "warning",
        sure if subject.learned.own else sure - 0.1,
        f"{_who(subject)} does no better on validation rows than {words} ({_word(subject)} "
        f"{number(float(mine.mean()), 2)} against {number(float(other.mean()), 2)}).",
        f"{cure}, or mend the network until it beats {number(float(other.mean()), 2)}.",
        Evidence(f"validation {_word(subject)} of the network", float(mine.mean())),
        Evidence(f"validation {_word(subject)} of {words}", float(other.mean())),
    )


def _tie(subject: Subject, mine: np.ndarray, known: Baselines) -> Finding | None:
    """Mention a simpler model that does as well."""
    own = float(mine.mean())
    if not subject.learned.own or own < float(known.errors[known.best].mean()):
        return None
    bar = float(known.errors[known.best].mean())
    words = "guessing" if known.best == "guess" else f"the {known.best} model"
    return finding(
        "CST403",
        "info",
        0.5,
        f"{words.capitalize()} does as well on validation rows ({_word(subject)} "
        f"{number(bar, 2)} against {number(own, 2)}).",
        f"Consider {words}: it is simpler.",
        Evidence(f"validation {_word(subject)} of the network", own),
        Evidence(f"validation {_word(subject)} of {words}", bar),
    )
