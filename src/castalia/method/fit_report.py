"""Filling the report of a fit."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia import __version__
from castalia.diagnose import Diagnosis, Finding
from castalia.evaluate import worst_mistakes
from castalia.method.answer_scores import Answers
from castalia.method.fit_plan import TASKS
from castalia.method.report import Contender, RunReport
from castalia.method.table_model import is_network
from castalia.method.verdict import Verdict
from castalia.utils.text import listing, plural

if TYPE_CHECKING:
    from castalia.method.flow import Fit

__all__ = ["findings_rows", "make_report"]

MOST_ROWS = 20_000  # answers kept for the figures


def make_report(
    fit: Fit,
    created: str,
    contenders: list[Contender],
    checks: list[dict[str, Any]],
    answers: Answers,
    verdict: Verdict,
    advice: list[str],
    model: Any,
    diagnosis: Diagnosis,
) -> RunReport:
    """Return everything the page shows about a fit."""
    task, shown = fit.task, slice(MOST_ROWS)
    classes = task.classes.tolist() if len(task.classes) else None
    probability: Any = answers.probability
    said: Any = answers.prediction
    told = task.kind in TASKS  # otherwise answers are no labels or numbers
    return RunReport(
        title=fit.kind.title,
        task=task.kind,
        target=fit.kind.target,
        unit=task.unit,
        created=created,
        data={
            "rows": len(fit.kind),
            **fit.kind.described(),
            "balance": task.counts,
            "split": fit.kind.split_sizes(answers.facts),
            "notes": [f"Taken as {task.kind}: {task.why}.", *fit.notes],
        },
        contenders=contenders,
        metric=fit.metric,
        interval_note=f"95 % intervals from 500 resamples of "
        f"{plural(len(fit.tested), f'test {task.unit}')}",
        verdict=verdict.words,
        outcome=verdict.outcome,
        advice=advice,
        preflight=checks,
        history=answers.facts["history"],
        y_true=task.y[fit.tested][shown] if told else None,
        y_pred=(task.classes[said] if classes else said)[shown] if told else None,
        probability=None if probability is None else probability[shown],
        classes=classes,
        mistakes=_mistakes(fit, answers) if told else [],
        settings=_settings(model),
        environment=_environment(answers),
        reproduce=fit.plan.command(),
        findings=findings_rows(diagnosis),
        **fit.kind.sections(model, fit.tested, answers),
    )


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


def _mistakes(fit: Fit, answers: Answers) -> list[dict[str, Any]]:
    truth, said = fit.truth, answers.prediction
    if answers.probability is None:
        wrong = (truth != said).astype(float)
        loss, confidence = wrong if len(fit.task.classes) else np.square(truth - said), None
    else:
        chosen = answers.probability[np.arange(len(truth)), truth]
        loss, confidence = -np.log(np.maximum(chosen, 1e-12)), answers.probability.max(axis=1)
    worst = worst_mistakes(truth, said, loss, most=fit.kind.mistakes, confidence=confidence)
    if not worst:
        return []
    rows = fit.tested[[m.index for m in worst]]
    names, found = fit.task.classes.tolist(), []
    for mistake, row, shown in zip(worst, rows, fit.kind.shown(rows), strict=True):
        mistake = replace(mistake, index=int(row))
        if names:
            mistake = replace(
                mistake, truth=names[mistake.truth], prediction=names[mistake.prediction]
            )
        found.append({**vars(mistake), **shown})
    return found


def _settings(model: Any) -> dict[str, Any]:
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


def _environment(answers: Answers) -> dict[str, Any]:
    import sklearn
    import torch

    return {
        "castalia": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        **answers.facts["resolved"],
    }
