"""Which contender to use: decided on test rows of several splits and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from castalia.evaluate import Interval, higher_is_better
from castalia.method.contest_entry import Entry
from castalia.method.fit_result import MODEL
from castalia.method.problem import Problem
from castalia.method.verdict import Verdict
from castalia.method.verdict_words import VerdictWords, predicts

__all__ = ["decide"]


def decide(
    problem: Problem, baselines: Sequence[Entry], model: Entry, blend: Entry | None = None
) -> Verdict:
    """Recommend the best contender that beats guessing by more than chance explains.

    Among baselines that do, the score decides; the model takes the place of the best one only where
    it is better beyond its interval, and so does the blend. R² below 0 recommends nothing, however
    bad guessing is.
    """
    guess, *others = baselines
    rivals = [*others, model, *([blend] if blend else [])]
    proven = [entry for entry in others if _proven(problem, entry, guess)]
    rival = _best(problem, proven) if proven else guess
    found = _gain(problem, model, rival)
    outcome = _outcome(found, bool(proven), predicts(problem, model))
    words = VerdictWords(problem, model, rival, found)
    verdict = Verdict(outcome, words.of(outcome), rival.shown.name, found)
    if outcome == "none":
        verdict = _nothing(problem, rivals, guess)
    elif outcome != "better":
        verdict = replace(verdict, recommended=rival.key)
    verdict = _blended(problem, verdict, [*baselines, model], blend)
    if problem.task.kind == "forecasting":
        verdict = _with_skill(problem, verdict, [*baselines, model])
    first = [words.replace("`", "") for words in problem.kind.warnings]
    return replace(verdict, words=" ".join([*first, verdict.words]))


def _with_skill(problem: Problem, verdict: Verdict, entries: Sequence[Entry]) -> Verdict:
    """Say how much smaller the error is than that of the first baseline, the naive forecast."""
    used = next(entry for entry in entries if entry.key == verdict.recommended)
    ours, naive = (entry.shown.scores[problem.metric] for entry in (used, entries[0]))
    if used is entries[0] or not naive > 0:
        return verdict
    skill = f"Its skill against {entries[0].name} is {100 * (1 - ours / naive):.0f} %."
    return replace(verdict, words=f"{verdict.words} {skill}")


def _gain(problem: Problem, entry: Entry, other: Entry) -> Interval:
    return problem.interval([entry.parts, other.parts])


def _proven(problem: Problem, entry: Entry, guess: Entry) -> bool:
    return _gain(problem, entry, guess).low > 0 and predicts(problem, entry)


def _best(problem: Problem, entries: Sequence[Entry]) -> Entry:
    pick = max if higher_is_better(problem.metric) else min
    return pick(entries, key=lambda entry: entry.shown.scores[problem.metric])


def _outcome(found: Interval, proven: bool, predicts: bool) -> str:
    if found.known and found.low > 0 and predicts:
        return "better"
    if not proven:
        return "none"
    return "worse" if found.known and found.high < 0 else "equal"


def _nothing(problem: Problem, rivals: Sequence[Entry], guess: Entry) -> Verdict:
    """Say that nothing predicts the target, beside the best that was tried."""
    best = _best(problem, rivals)
    found = _gain(problem, best, guess)
    words = VerdictWords(problem, best, guess, found).none(len(rivals))
    use = MODEL if guess.key == "copy" else guess.key  # nobody would copy
    return Verdict("none", words, guess.shown.name, found, use)


def _blended(
    problem: Problem, verdict: Verdict, entries: Sequence[Entry], blend: Entry | None
) -> Verdict:
    """Recommend the blend in place of the best single model, where it is better beyond chance."""
    if blend is None:
        return verdict
    single = next(entry for entry in entries if entry.key == verdict.recommended)
    found = _gain(problem, blend, single)
    if not found.known or found.low <= 0 or not predicts(problem, blend):
        return verdict
    words = VerdictWords(problem, blend, single, found).blend()
    return replace(verdict, words=words, recommended=blend.key)
