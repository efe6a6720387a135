"""The report of a fit, from what its steps found."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from castalia import __version__
from castalia.diagnose import Diagnosis, Finding
from castalia.evaluate import worst_mistakes
from castalia.method.answer_scores import Answers
from castalia.method.fit_outcome import FitOutcome
from castalia.method.fit_plan import TASKS
from castalia.method.problem import Problem
from castalia.method.report import RunReport
from castalia.method.table_model import is_network
from castalia.utils.text import listing

__all__ = ["environment_rows", "findings_rows", "make_report", "shown_settings"]

MOST_ROWS = 20_000  # answers kept for the figures


def make_report(problem: Problem, outcome: FitOutcome, model: Any, used: Any) -> RunReport:
    """Return everything the page shows about a fit: its network, and the recommended model."""
    kind, task, facts = problem.kind, problem.task, outcome.trainings.facts
    answers = outcome.trainings.entry.answers
    return RunReport(
        title=kind.title,
        task=task.kind,
        target=kind.target,
        unit=task.unit,
        created=outcome.created,
        data={
            "rows": len(kind),
            **kind.described(),
            "balance": task.counts,
            "split": kind.split_sizes(facts),
            "notes": [f"Taken as {task.kind}: {task.why}.", *outcome.notes(problem)],
        },
        contenders=outcome.contenders,
        metric=problem.metric,
        interval_note=f"95 % intervals over test {task.unit}s, splits and seeds",
        verdict=outcome.verdict.words,
        outcome=outcome.verdict.outcome,
        advice=outcome.advice,
        preflight=outcome.checks,
        history=facts["history"],
        recommended=outcome.recommended.shown.name,
        **_answers(problem, outcome.recommended.answers),
        settings=shown_settings(model),
        environment=environment_rows(facts),
        reproduce=problem.plan.command(),
        findings=findings_rows(outcome.diagnosis),
        explained=_explained(problem, outcome),
        graph=getattr(model, "parents_", {}),
        **kind.sections(used if kind.shows_used else model, problem.tested, answers),
    )


def _explained(problem: Problem, outcome: FitOutcome) -> str:
    """Return the name of the model whose use of columns is shown: the recommended one."""
    guess = outcome.verdict.outcome == "none"
    return problem.model_name if guess else outcome.recommended.shown.name


def _answers(problem: Problem, answers: Answers) -> dict[str, Any]:
    """Return the fields about single answers, where these are labels or numbers."""
    task, shown, probability = problem.task, slice(MOST_ROWS), answers.probability
    classes = task.classes.tolist() if len(task.classes) else None
    found = {
        "classes": classes,
        "probability": None if probability is None else probability[shown],
    }
    if task.kind not in TASKS:
        return found
    said = task.classes[answers.prediction] if classes else answers.prediction
    return found | {
        "y_true": task.y[problem.tested][shown],
        "y_pred": said[shown],
        "mistakes": _mistakes(problem, answers),
    }


def findings_rows(diagnosis: Diagnosis) -> list[dict[str, str]]:
    """Return the findings as the report shows them; what follows from one is named under it."""
    return [
        {
            "code": found.code,
            "name": found.name,
            "severity": found.severity,
            "message": f"{found.summary}{_explains(found)}",
            "remedy": str(found.remedy),
        }
        for found in diagnosis
    ]


def _explains(found: Finding) -> str:
    names = [symptom.name for symptom in found.symptoms]
    return f" It explains {listing(names, 'and')}." if names else ""


def _mistakes(problem: Problem, answers: Answers) -> list[dict[str, Any]]:
    truth, said = problem.truth, answers.prediction
    if answers.probability is None:
        wrong = (truth != said).astype(float)
        loss, confidence = wrong if len(problem.task.classes) else np.square(truth - said), None
    else:
        chosen = answers.probability[np.arange(len(truth)), truth]
        loss, confidence = -np.log(np.maximum(chosen, 1e-12)), answers.probability.max(axis=1)
    worst = worst_mistakes(truth, said, loss, most=problem.kind.mistakes, confidence=confidence)
    if not worst:
        return []
    rows = problem.tested[[m.index for m in worst]]
    names, found = problem.task.classes.tolist(), []
    for mistake, row, shown in zip(worst, rows, problem.kind.shown(rows), strict=True):
        mistake = replace(mistake, index=int(row))
        if names:
            mistake = replace(
                mistake, truth=names[mistake.truth], prediction=names[mistake.prediction]
            )
        found.append({**vars(mistake), **shown})
    return found


def shown_settings(model: Any) -> dict[str, Any]:
    """Return the settings of a model and of its training."""
    own = model.get_params(deep=False)
    training = own.pop("training", None)
    found = {"model": type(model).__name__, **own}
    if training is not None:
        hidden = ("run", "callbacks", "verbose", "watch", "checkpoint_every")
        loop = {k: v for k, v in training.get_params().items() if k not in hidden}
        found["training"] = loop
    if is_network(model):
        found["weights"] = sum(p.numel() for p in model.module_.parameters())
    return found


def environment_rows(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return versions, and what the training was resolved to."""
    import sklearn
    import torch

    return {
        "castalia": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        **facts["resolved"],
    }
