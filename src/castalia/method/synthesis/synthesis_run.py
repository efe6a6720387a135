"""The fit of a model that draws: train, draw, compare with rows held out, report."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from castalia.base import load, save
from castalia.evaluate import SampleFidelity, sample_fidelity
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_result import MODEL, FitResult
from castalia.method.flow import finished_result
from castalia.method.narrator import Narrator
from castalia.method.problem import digest
from castalia.method.report.score_formats import duration
from castalia.method.run_context import opened_run
from castalia.method.run_stages import Stages
from castalia.method.synthesis.drawn_kinds import DrawnImages, DrawnRows, open_rows
from castalia.method.synthesis.fidelity_report import Compared, make_fidelity_report
from castalia.method.synthesis.sample_files import write_samples
from castalia.method.training_run import fit_in_run, training_facts
from castalia.train.runs import Run
from castalia.utils.text import plural

__all__ = ["synthesise"]

TRAINING = "training"
JUDGED = 2000  # drawn rows that are compared
WRITTEN = 10_000  # rows that a fit writes at most
SHOWN = 64  # images


def synthesise(plan: FitPlan, narrator: Narrator | None = None) -> FitResult:
    """Fit a model that draws rows or images, or the rest of it when it was begun before.

    Parameters
    ----------
    plan
        Settings, with ``generate=True``.
    narrator
        Receives every event.

    Returns
    -------
    FitResult
        The finished run: its folder holds the model, samples, the report and the results.
    """
    narrator = narrator or Narrator()
    rows = open_rows(plan)
    rows.build()  # a wrong setting is refused before any work
    mark = digest([plan.deciding(), rows.fingerprint()])
    with opened_run(plan.folder, mark, {"command": plan.command(), **plan.deciding()}) as record:
        narrator.started(record.folder, rows.facts())
        for note in rows.notes:
            narrator.note(note)
        finished = finished_result(record)
        if finished is not None:
            narrator.note("This run is finished; these are its results.")
            return finished
        record.resume()
        return _completed(rows, record, Stages(record.folder / "stages", mark), narrator)


def _completed(rows: DrawnRows, record: Run, stages: Stages, narrator: Narrator) -> FitResult:
    """Take every step that is not taken yet, and close the run."""
    folder = record.folder
    created = stages.do("created", lambda: datetime.now().strftime("%Y-%m-%d %H:%M"))
    facts = stages.do(TRAINING, lambda: _trained(rows, folder / TRAINING, narrator))
    narrator.trained(1, 1, f"{plural(facts['epochs'], 'epoch')} in {duration(facts['seconds'])}")
    model = load(folder / TRAINING / MODEL)
    save(model, folder / MODEL)
    drawn = draw(model, min(len(rows.X), JUDGED), rows.plan.seed)
    samples = write_samples(model, _written(rows), folder / _file(rows), rows.plan.seed)
    report, summary = make_fidelity_report(rows, model, drawn, _compared(rows, drawn), facts)
    report.created = created
    result = FitResult(folder, report, {**summary, "samples": str(samples)})
    result.save()
    record.finish("finished")
    return result


def _trained(rows: DrawnRows, run: Path, narrator: Narrator) -> dict[str, Any]:
    model = rows.build()
    words = f"{type(model).__name__} on {plural(len(rows.X), rows.unit)}"
    narrator.training(1, 1, words)
    limit, verbose = rows.plan.time_limit, rows.plan.verbose
    seconds = fit_in_run(model, (rows.X, rows.y), run=run, verbose=verbose, time_limit=limit)
    return {**training_facts(model, run), "seconds": seconds}


def draw(model: Any, n: int, seed: int) -> Any:
    """Draw rows; of a conditional model, of all classes in turn."""
    y = None
    if getattr(model, "conditional", False):
        y = model.classes_[np.arange(n) % len(model.classes_)]
    return model.sample(n, y, random_state=seed)


def _compared(rows: DrawnRows, drawn: Any) -> Compared:
    """Compare drawn rows with real ones, and what can be expected: real rows, and shuffled ones."""

    def against(some: Any) -> SampleFidelity:
        return sample_fidelity(rows.X, some, rows.held)

    return Compared(against(drawn), against(rows.held), against(rows.shuffled()))


def _file(rows: DrawnRows) -> str:
    return "samples.png" if isinstance(rows, DrawnImages) else "samples.csv"


def _written(rows: DrawnRows) -> int:
    return SHOWN if isinstance(rows, DrawnImages) else min(WRITTEN, len(rows.X) + len(rows.held))
