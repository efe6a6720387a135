"""Filling the report of a fit."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia import __version__
from castalia.data import Dataset
from castalia.data.schema import Column
from castalia.diagnose import Diagnosis, Finding
from castalia.evaluate import worst_mistakes
from castalia.method.compare import Verdict
from castalia.method.model import is_network
from castalia.method.report import Contender, RunReport
from castalia.method.scores import Answers
from castalia.utils.text import listing, plural

if TYPE_CHECKING:
    from castalia.method.fitting import Fit

__all__ = ["findings_rows", "make_report"]

MOST_ROWS = 20_000  # answers kept for the figures
MISTAKES = 10


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
    said: Any = answers.prediction
    probability: Any = answers.probability
    return RunReport(
        title=f"{fit.plan.target} from {fit.plan.name}",
        task=task.kind,
        target=fit.plan.target,
        created=created,
        data={
            "rows": len(fit.data),
            "columns": [_column(c) for c in fit.data.schema],
            "balance": task.counts,
            "split": _split(fit, answers),
            "notes": [f"Taken as {task.kind}: {task.why}.", *fit.notes],
        },
        contenders=contenders,
        metric=fit.metric,
        interval_note=f"95 % intervals from 500 resamples of {plural(len(fit.tested), 'test row')}",
        verdict=verdict.words,
        outcome=verdict.outcome,
        advice=advice,
        preflight=checks,
        history=answers.facts["history"],
        y_true=task.y[fit.tested][shown],
        y_pred=(task.classes[said] if classes else said)[shown],
        probability=None if probability is None else probability[shown],
        classes=classes,
        mistakes=_mistakes(fit, answers),
        settings=_settings(model),
        environment=_environment(answers),
        reproduce=fit.plan.command(),
        findings=findings_rows(diagnosis),
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


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind,
        "missing": column.missing,
        "unique": column.unique,
        "detail": column.values(),
        "note": column.note,
    }


def _split(fit: Fit, answers: Answers) -> dict[str, int]:
    if fit.plan.cv:
        return {f"each of {fit.plan.cv} folds tested": len(fit.tested) // fit.plan.cv}
    facts = answers.facts
    return {"train": facts["train"], "validation": facts["validation"], "test": len(fit.tested)}


def _mistakes(fit: Fit, answers: Answers) -> list[dict[str, Any]]:
    truth, said = fit.truth, answers.prediction
    if answers.probability is None:
        wrong = (truth != said).astype(float)
        loss, confidence = wrong if len(fit.task.classes) else np.square(truth - said), None
    else:
        chosen = answers.probability[np.arange(len(truth)), truth]
        loss, confidence = -np.log(np.maximum(chosen, 1e-12)), answers.probability.max(axis=1)
    worst = worst_mistakes(truth, said, loss, most=MISTAKES, confidence=confidence)
    rows = fit.data.take(fit.tested[[m.index for m in worst]]) if worst else None
    found = []
    for i, mistake in enumerate(worst):
        mistake = replace(mistake, index=int(fit.tested[mistake.index]), row=_row(rows, fit, i))
        if len(fit.task.classes):
            names = fit.task.classes.tolist()
            mistake = replace(
                mistake, truth=names[mistake.truth], prediction=names[mistake.prediction]
            )
        found.append(vars(mistake))
    return found


def _row(rows: Dataset | None, fit: Fit, i: int) -> dict[str, Any]:
    if rows is None:
        return {}
    values = {name: rows.column(name)[i] for name in rows.columns if name != fit.plan.target}
    return {name: None if v is None or v != v else v for name, v in values.items()}


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
