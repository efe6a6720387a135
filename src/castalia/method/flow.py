"""The practical method: read, split, baselines, the network, doctor, verdict, report.

Each step is a function from records to a record. What a step finds is kept in the run's folder, so
an interrupted fit continues where it stopped.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from castalia.base import load, save
from castalia.errors import DamagedFile, InvalidParameter
from castalia.method.advice import give_advice
from castalia.method.baseline_scores import fit_baselines
from castalia.method.blend_entry import blend_entries
from castalia.method.doctor_steps import run_checks, save_diagnosis, try_remedies
from castalia.method.fit_outcome import FitOutcome, summarise
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_report import make_report
from castalia.method.fit_result import CONTENDERS, MODEL, RESULT, FitResult
from castalia.method.fit_verdict import decide
from castalia.method.kinds import open_data
from castalia.method.narrator import Narrator
from castalia.method.problem import Problem, pose_problem
from castalia.method.run_context import RunContext, opened_run
from castalia.method.run_stages import Stages
from castalia.method.saved_contender import load_contender
from castalia.method.trainings import train_parts
from castalia.train.runs import Run
from castalia.train.strategy import from_first, join_processes
from castalia.utils.devices import resolve_device
from castalia.utils.process_ranks import is_first, rank_and_world

__all__ = ["announce", "complete", "contest", "cure", "finished_result", "fit", "run"]


def fit(data: Any, target: str | None = None, *, plan: FitPlan | None = None) -> FitResult:
    """Fit a table, images or text with the default plan, or with another one's settings.

    Parameters
    ----------
    data
        What ``castalia.read`` takes: a table, or a folder of class folders with images; or the
        path of a text file, or of two parallel ones.
    target
        The column to predict; None for images and text files.
    plan
        Further settings; its data and target are not used.
    """
    base = plan if plan is not None else FitPlan(data=data, target=target)
    return run(replace(base, data=data, target=target))


def run(plan: FitPlan, narrator: Narrator | None = None) -> FitResult:
    """Carry out a plan, or the rest of it when it was begun before.

    Returns
    -------
    FitResult
        The finished run: its folder holds the model, the report and the results.
    """
    narrator = narrator or Narrator()
    if rank_and_world()[1] > 1:
        _check_alike(plan)
        join_processes(resolve_device(plan.device))
    if not is_first():
        return _join(plan)
    problem = pose_problem(open_data(plan, narrator))
    config = {"command": plan.command(), **plan.deciding()}
    with opened_run(plan.folder, problem.fingerprint, config) as record:
        announce(problem, record.folder, narrator)
        finished = finished_result(record)
        from_first(str(record.folder) if finished is None else None)
        if finished is not None:
            _report_again(finished, problem.metric, narrator)
            return finished
        record.resume()
        return complete(problem, record, narrator)


def _check_alike(plan: FitPlan) -> None:
    """Refuse what several processes would decide differently."""
    if plan.time_limit is not None:
        raise InvalidParameter(
            "fit: --time-limit runs in one process only; leave it out under torchrun."
        )


def _join(plan: FitPlan) -> Any:
    """Take part in the trainings of the first process, which does everything else; no result."""
    problem = pose_problem(open_data(plan))
    folder = from_first(None)
    if folder is not None:
        context = RunContext(Path(folder), Stages(Path(folder), problem.fingerprint), Narrator())
        _steps(problem, context)
    return None


def cure(plan: FitPlan, before: FitResult, narrator: Narrator | None = None) -> FitResult:
    """Fit again with the doctor's remedies that help; where none does, the run stays as it is."""
    narrator = narrator or Narrator()
    problem = pose_problem(open_data(plan))
    with opened_run(plan.folder, problem.fingerprint, plan.deciding()) as record:
        record.resume()
        stages = Stages(record.folder / "stages", problem.fingerprint)
        found = try_remedies(problem, RunContext(record.folder, stages, Narrator()))
        if found.changes:
            announce(problem, record.folder, narrator)
            return complete(problem, record, narrator)
        record.finish("finished")
    narrator.cured(found.steps)
    narrator.note(f"No remedy helps on validation rows, so {before.folder} stays as it is.")
    return before


def complete(problem: Problem, record: Run, narrator: Narrator) -> FitResult:
    """Take every step that is not taken yet, and close the run."""
    folder = record.folder
    stages = Stages(folder / "stages", problem.fingerprint)
    outcome = contest(problem, RunContext(folder, stages, narrator, problem.plan.time_limit))
    model = load(folder / outcome.trainings.stage / MODEL)
    save(model, folder / MODEL)
    report = make_report(problem, outcome, model, _used(outcome, folder, model))
    result = FitResult(folder, report, summarise(problem, outcome))
    result.save()
    record.finish("finished")
    return result


def contest(problem: Problem, context: RunContext) -> FitOutcome:
    """Let the contenders answer the same test rows, and decide between them."""
    created, baselines, checks, remedies, trainings = _steps(problem, context)
    diagnosis = save_diagnosis(problem, context, trainings.facts)
    entries = [*baselines, trainings.entry]
    blend = blend_entries(problem, entries, context)
    verdict = decide(problem, baselines, trainings.entry, blend)
    advice = give_advice(problem, verdict, trainings, checks)
    entries += [blend] if blend else []
    return FitOutcome(created, entries, checks, remedies, trainings, diagnosis, verdict, advice)


def _steps(problem: Problem, context: RunContext) -> tuple[Any, ...]:
    """Take the steps whose results are kept, up to the trainings; several processes take them."""
    created = context.stages.do("created", lambda: datetime.now().strftime("%Y-%m-%d %H:%M"))
    baselines = fit_baselines(problem, context)
    checks = run_checks(problem, context)
    remedies = try_remedies(problem, context)
    return created, baselines, checks, remedies, train_parts(problem, remedies.changes, context)


def _used(outcome: FitOutcome, folder: Path, model: Any) -> Any:
    """Return the recommended model; the network where that is only a guess."""
    key = outcome.verdict.recommended
    guess = outcome.verdict.outcome == "none"
    return model if key == MODEL or guess else load_contender(folder / CONTENDERS / key)


def announce(problem: Problem, folder: Path, narrator: Narrator) -> None:
    """Report what is fitted, and the remarks on its data."""
    narrator.started(folder, problem.facts())
    for warning in problem.kind.warnings:
        narrator.warning(warning)
    for note in problem.kind.notes:
        narrator.note(note)


def finished_result(record: Run) -> FitResult | None:
    """Return the result of a run that was finished before, unless its files are damaged."""
    if record.status != "finished" or not (record.folder / RESULT).is_file():
        return None
    try:
        result = FitResult.load(record.folder)
        load(result.model)
    except DamagedFile:
        return None
    return result


def _report_again(result: FitResult, metric: str, narrator: Narrator) -> None:
    narrator.note("This run is finished; these are its results.")
    for contender in result.report.contenders:
        if contender.role == "baseline":
            narrator.baseline(contender, metric)
    narrator.checked(result.report.preflight)
