"""The whole method: split, baselines, checks, training, scores, verdict, advice, report.

Every finished stage is kept in the run's folder, so an interrupted fit goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import numpy as np

from castalia import __version__
from castalia.base import check_parameters, load, save
from castalia.data.row_splits import holdout
from castalia.diagnose import Diagnosis, cure, preflight
from castalia.diagnose.estimators import DIAGNOSIS
from castalia.errors import DamagedFile, InvalidParameter
from castalia.evaluate import Interval, higher_is_better, interval
from castalia.evaluate import metric as metric_named
from castalia.method.advice import give_advice
from castalia.method.answer_scores import Answers, answers_of, joined, mean_scores, row_interval
from castalia.method.fit_plan import METRICS, FitPlan
from castalia.method.fit_report import make_report
from castalia.method.fit_result import BASELINE, RESULT, FitResult
from castalia.method.kinds import Kind, open_data
from castalia.method.model_settings import apply_settings
from castalia.method.narrator import Narrator
from castalia.method.report import Contender
from castalia.method.report.plain_values import plain
from castalia.method.report.score_formats import duration, score
from castalia.method.run_stages import Stages
from castalia.method.single_training import fit_directly, train_network
from castalia.method.table_model import VALIDATION, is_network
from castalia.method.task import Task
from castalia.method.train_test_split import Part
from castalia.method.verdict import Verdict, best_baseline, compare
from castalia.train import check_training
from castalia.train.runs import Run, RunStore
from castalia.utils.atomic_files import atomic_write
from castalia.utils.text import listing, plural

__all__ = ["Fit", "fit", "run"]


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

    Parameters
    ----------
    plan
        What to do.
    narrator
        Who is told about it.

    Returns
    -------
    FitResult
        The finished run: its folder holds the model, the report and the results.
    """
    narrator = narrator or Narrator()
    work = Fit(open_data(plan, narrator), narrator)
    folder = plan.folder
    with RunStore(folder.parent) as store:
        record = store.open_run(folder.name, work.fingerprint, _config(plan))
        try:
            return work.go_on(record)
        except BaseException as error:
            record.finish("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
            raise


def _config(plan: FitPlan) -> dict[str, Any]:
    return {"command": plan.command(), **plan.deciding()}


class Fit:
    """One fit on its way: the data, and what each stage found."""

    def __init__(self, kind: Kind, narrator: Narrator) -> None:
        self.kind, self.plan, self.narrator = kind, kind.plan, narrator
        self.task: Task = kind.task
        self.metric = _metric(self.plan, self.task)
        self.parts, self.notes = kind.parts, list(kind.notes)
        self.tested = np.concatenate([part.test for part in self.parts])
        model = kind.build(len(kind))  # now, so that a wrong setting is told before any work
        check_parameters(model)
        self.network = is_network(model)
        if self.network and model.training is not None:
            check_training(model.training)
        self.began = time.monotonic()
        self.cured: dict[str, Any] = {"steps": [], "changes": {}}

    @property
    def fingerprint(self) -> str:
        """What decides the result: version, settings and data."""
        text = json.dumps(
            [__version__, self.plan.deciding(), self.kind.fingerprint()],
            sort_keys=True,
            default=repr,
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def go_on(self, record: Run) -> FitResult:
        """Do what is not done yet."""
        self.announce(record)
        finished = self._finished(record)
        if finished is not None:
            return finished
        record.resume()
        return self.complete(record)

    def announce(self, record: Run) -> None:
        """Tell what is fitted, and what is to be said about its data."""
        self.narrator.started(record.folder, self._facts())
        for note in self.notes:
            self.narrator.note(note)

    def complete(self, record: Run) -> FitResult:
        """Do every stage that is not done yet, and close the run."""
        self.folder = record.folder
        self.stages = Stages(record.folder / "stages", self.fingerprint)
        result = self._do()
        record.finish("finished")
        return result

    def _finished(self, record: Run) -> FitResult | None:
        """Return the result of a run that was finished before, told once more."""
        if record.status != "finished" or not (record.folder / RESULT).is_file():
            return None
        try:
            result = FitResult.load(record.folder)
            load(result.model)
        except DamagedFile:
            return None
        self.narrator.note("This run is finished; these are its results.")
        for contender in result.report.contenders:
            if contender.role == "baseline":
                self.narrator.baseline(contender, self.metric)
        self.narrator.checked(result.report.preflight)
        return result

    def _do(self) -> FitResult:
        created = self.stages.do("created", lambda: datetime.now().strftime("%Y-%m-%d %H:%M"))
        baselines = {key: self._baseline(key) for key in self.kind.baselines}
        contenders = [self._contender(key, [found]) for key, found in baselines.items()]
        checks = self._preflight()
        self._cure()
        seeds = self._train()
        model = self._network_contender(seeds)
        contenders.append(model)
        rival = best_baseline(contenders, self.metric)
        key = next(k for k, name in self.kind.baselines.items() if name == rival.name)
        noun = "the network" if self.network else model.name
        pair, unit = (model, rival), self.task.unit
        verdict = compare(self.metric, self.truth, seeds, baselines[key], pair, noun, unit)
        verdict = self._hand_over(verdict, key)
        chosen = self._choose(seeds)
        return self._finish(created, contenders, checks, seeds, chosen, verdict)

    # -- stages --------------------------------------------------------------------------

    @property
    def truth(self) -> np.ndarray:
        """Class numbers or numbers of the tested rows, in the order of the answers."""
        return self.task.codes[self.tested]

    def _baseline(self, key: str) -> Answers:
        found = joined([self._baseline_part(key, part) for part in self.parts])
        self.narrator.baseline(self._contender(key, [found]), self.metric)
        return found

    def _baseline_part(self, key: str, part: Part) -> Answers:
        found = self.stages.do(_name(part, key), lambda: self.kind.baseline(key, part).record())
        return Answers.of(found)

    def _contender(self, key: str, answers: list[Answers]) -> Contender:
        reach = row_interval(self.metric, self.truth, answers)
        return Contender(
            self.kind.baselines[key],
            "baseline",
            mean_scores(self.task, self.truth, answers),
            [reach.low, reach.high] if reach.known else None,
            answers[0].seconds,
            self.kind.baseline_note(key),
        )

    def _preflight(self) -> list[dict[str, Any]]:
        if self.plan.preflight_seconds <= 0 or not self.network or not self.kind.checked:
            return []

        def work() -> list[dict[str, Any]]:
            rows = self.parts[0].train
            model = self.kind.build(len(rows), self.plan.seed)
            checks = preflight(model, *self.kind.rows(rows), seconds=self.plan.preflight_seconds)
            return [asdict(check) for check in checks]

        found: list[dict[str, Any]] = self.stages.do("preflight", work)
        self.narrator.checked(found)
        return found

    def _cure(self) -> None:
        """Try the doctor's remedies on validation rows cut off the training rows."""
        if not self.plan.doctor:
            return
        if not self.network:
            self.notes.append(f"{self._model_name()} is not one network: no remedies were tried.")
            self.narrator.note(self.notes[-1])
            return
        rows = self.parts[0].train
        model = self.kind.build(len(rows), self.plan.seed)
        self.cured = self.stages.do("cure", lambda: self._remedies(model, rows))
        self.narrator.cured(self.cured["steps"])
        self.notes += [
            f"Doctor: {step['name']}; {step['remedy']}; validation score {step['before']:.4g} → "
            f"{step['after']:.4g}, {'kept' if step['kept'] else 'taken back'}."
            for step in self.cured["steps"]
        ]

    def _remedies(self, model: Any, rows: np.ndarray) -> dict[str, Any]:
        kept, held = self._validation(rows, model.training.validation)
        if held is None:
            labels = self.task.codes[rows] if self.task.kind == "classification" else None
            inner, outer = holdout(len(rows), VALIDATION, seed=self.plan.seed, labels=labels)
            kept, held = rows[inner], rows[outer]
        X_val, y_val = self.kind.rows(held)
        asked, truth = self.kind.X.take(held), self.task.codes[held]

        def measure(fitted: Any) -> float:
            found = mean_scores(self.task, truth, [answers_of(fitted, asked, self.task, 0.0)])
            return found[self.metric] * (1 if higher_is_better(self.metric) else -1)

        found = cure(model, *self.kind.rows(kept), X_val, y_val, score=measure)
        return {"steps": [vars(step) for step in found.steps], "changes": found.changes}

    def _train(self) -> list[Answers]:
        """Train every seed on every part; with a time limit, at least the first seed."""
        jobs = [(seed, part) for seed in range(self.kind.seeds) for part in self.parts]
        extra = 1 if self.plan.cv else 0  # the model on all rows
        total, found = len(jobs) + extra, dict[int, list[Answers]]()
        for number, (seed, part) in enumerate(jobs, start=1):
            name = _name(part, f"seed-{seed}")
            if seed and self._late() and self.stages.done(name) is None:
                self.notes.append(f"The time limit left no time for seed {seed} and later ones.")
                self.narrator.note(self.notes[-1])
                break
            share = self._share(total - number + 1)
            found.setdefault(seed, []).append(self._job(name, seed, part, share, number, total))
        whole = [parts for parts in found.values() if len(parts) == len(self.parts)]
        if extra:
            everything = Part("", np.arange(len(self.kind)), self.parts[0].test)
            self._job("final", 0, everything, self._share(1), total, total)
        return [joined(parts) for parts in whole]

    def _job(
        self, name: str, seed: int, part: Part, share: float | None, number: int, total: int
    ) -> Answers:
        rows = len(part.train)

        def work() -> dict[str, Any]:
            model = self.kind.build(rows, self.plan.seed + seed)
            apply_settings(model, self.cured["changes"])
            self.narrator.training(number, total, self._job_words(name, model, rows))
            test = self.kind.X.take(part.test)
            if not self.network:
                known = self.kind.rows(part.train)
                place, adapter = self.folder / name, self.kind.direct
                return fit_directly(model, known, test, self.task, run=place, adapter=adapter)
            train, validation = self._validation(part.train, model.training.validation)
            return train_network(
                model,
                self.kind.rows(train),
                test,
                self.task,
                run=self.folder / name,
                verbose=self.plan.verbose,
                time_limit=share,
                validation=None if validation is None else self.kind.rows(validation),
            )

        found = Answers.of(self.stages.do(name, work))
        self.narrator.trained(number, total, _trained_words(name, found))
        return found

    def _job_words(self, name: str, model: Any, rows: int) -> str:
        return f"{type(model).__name__} on {plural(rows, self.task.unit)} ({name})"

    def _validation(self, rows: np.ndarray, share: Any) -> tuple[np.ndarray, np.ndarray | None]:
        cut = self.kind.hold_validation(rows, share)
        return (rows, None) if cut is None or not len(cut[1]) else cut

    def _share(self, left: int) -> float | None:
        """Return the seconds one of the trainings that are left may take."""
        if self.plan.time_limit is None:
            return None
        spent = time.monotonic() - self.began
        return max((self.plan.time_limit - spent) / left, 0.0)

    def _late(self) -> bool:
        limit = self.plan.time_limit
        return limit is not None and time.monotonic() - self.began > limit

    # -- results -------------------------------------------------------------------------

    def _network_contender(self, seeds: list[Answers]) -> Contender:
        reach = row_interval(self.metric, self.truth, seeds)
        over = self._over_seeds(seeds)
        note = f"{plural(over.n, 'seed')}"
        if over.known:
            note += f", mean of {', '.join(score(v, self.metric) for v in self._values(seeds))}"
        return Contender(
            self._model_name(),
            "model",
            mean_scores(self.task, self.truth, seeds),
            [reach.low, reach.high] if reach.known else None,
            float(np.mean([a.seconds for a in seeds])),
            note,
        )

    def _model_name(self) -> str:
        return self.kind.system.name

    def _values(self, seeds: list[Answers]) -> list[float]:
        return [mean_scores(self.task, self.truth, [a])[self.metric] for a in seeds]

    def _over_seeds(self, seeds: list[Answers]) -> Interval:
        found = interval(self._values(seeds))
        if metric_named(self.metric).fraction and found.known:
            low = found.low if self.metric == "r2" else max(found.low, 0.0)
            return Interval(found.mean, low, min(found.high, 1.0), found.n)
        return found

    def _choose(self, seeds: list[Answers]) -> int:
        """Pick the seed with the lowest validation loss: the test rows have no say."""
        if self.plan.cv:
            return 0
        losses = [(a.facts["best"] or {}).get("val_loss", np.inf) for a in seeds]
        return int(np.argmin(losses))

    def _hand_over(self, verdict: Verdict, key: str) -> Verdict:
        """Save the baseline that is to be used instead of the network, where it can be saved."""
        if verdict.outcome not in ("worse", "equal"):
            return verdict
        rows = np.arange(len(self.kind)) if self.plan.cv else self.parts[0].train
        model = self.kind.handed_over(key, rows)
        if model is None:
            return verdict
        save(model, self.folder / BASELINE)
        said = f"It is saved, too: give {self.folder / BASELINE} in place of {self.folder}."
        return replace(verdict, words=f"{verdict.words} {said}")

    def _finish(
        self,
        created: str,
        contenders: list[Contender],
        checks: list[dict[str, Any]],
        seeds: list[Answers],
        chosen: int,
        verdict: Verdict,
    ) -> FitResult:
        source = self.folder / ("final" if self.plan.cv else f"seed-{chosen}") / "model"
        model = load(source)
        save(model, self.folder / "model")
        over = self._over_seeds(seeds)
        advice = give_advice(
            kind=self.kind,
            verdict=verdict,
            metric=self.metric,
            seeds=over,
            facts=seeds[chosen].facts,
            checks=checks,
            model=self._model_name(),
            network=self.network,
        )
        diagnosis = self._diagnosis(seeds[chosen])
        report = make_report(
            self, created, contenders, checks, seeds[chosen], verdict, advice, model, diagnosis
        )
        summary = self._summary(contenders, over, verdict, advice)
        result = FitResult(self.folder, report, summary)
        result.save()
        return result

    def _diagnosis(self, answers: Answers) -> Diagnosis:
        """Return what the doctor found in the training of the saved model; keep it in the run."""
        text = answers.facts.get("diagnosis")
        name = self._model_name()
        unwatched = Diagnosis(notes=(f"The training of {name} was not watched.",), subject=name)
        found = unwatched if text is None else Diagnosis.from_json(text)
        atomic_write(self.folder / DIAGNOSIS, found.to_json())
        return found

    def _summary(
        self, contenders: list[Contender], over: Interval, verdict: Verdict, advice: list[str]
    ) -> dict[str, Any]:
        difference = verdict.difference
        return {
            "task": self.task.kind,
            "why": self.task.why,
            "target": self.kind.target,
            "text": self.kind.column,
            "unit": self.task.unit,
            "metric": self.metric,
            "goal": self._goal(contenders),
            "rows": {"all": len(self.kind), "tested": len(self.tested)},
            "contenders": [asdict(c) for c in contenders],
            "seeds": {"n": over.n, "mean": over.mean, "low": over.low, "high": over.high},
            "outcome": verdict.outcome,
            "difference": [difference.mean, difference.low, difference.high],
            "verdict": verdict.words,
            "advice": advice,
            "cure": self.cured["steps"],
            "plan": self._plan(),
            "notes": self.notes,
        }

    def _goal(self, contenders: list[Contender]) -> dict[str, Any]:
        """Return the value that is good enough, where it comes from, and whether it was reached."""
        rival = best_baseline(contenders[:-1], self.metric)
        given = self.plan.goal is not None
        value = float(self.plan.goal if given else rival.scores[self.metric])  # type: ignore[arg-type]
        ours = contenders[-1].scores[self.metric]
        reached = ours >= value if higher_is_better(self.metric) else ours <= value
        return {
            "value": value,
            "from": "the plan" if given else rival.name,
            "reached": bool(reached),
        }

    def _plan(self) -> dict[str, Any] | None:
        """Return the plan in plain values, where the data can be read again."""
        if not self.plan.of_files:
            return None
        found: dict[str, Any] = plain({"data": self.plan.data, **self.plan.deciding()})
        return found

    def _facts(self) -> dict[str, Any]:
        return {
            **self.kind.facts(),
            "rows": len(self.kind),
            "unit": self.task.unit,
            "target": self.kind.target,
            "task": self.task.kind,
            "why": self.task.why,
            "classes": len(self.task.classes),
            "metric": self.metric,
            "tested": len(self.tested),
            "split": self.kind.split_words(),
        }


def _metric(plan: FitPlan, task: Task) -> str:
    allowed = METRICS[task.kind]
    if plan.metric is not None and plan.metric not in allowed:
        raise InvalidParameter(
            f"fit: `metric` must be {listing(allowed)} for {_a(task.kind)}; got {plan.metric!r}."
        )
    return plan.metric or allowed[0]


def _a(kind: str) -> str:
    return kind if kind == "language modelling" else f"a {kind}"


def _name(part: Part, stage: str) -> str:
    return f"{part.name}-{stage}" if part.name else stage


def _trained_words(name: str, found: Answers) -> str:
    why = f", {found.facts['stopped']}" if found.facts.get("stopped") else ""
    epochs = found.facts["epochs"]
    did = "fitted" if epochs is None else plural(epochs, "epoch")
    return f"{name}: {did} in {duration(found.seconds)}{why}"
