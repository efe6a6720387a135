"""A fit on the terminal: its progress, line by line, and its outcome at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from castalia.cli.error_exit import USER, Interrupted
from castalia.cli.output import Output
from castalia.method import FitPlan, FitResult, Narrator, run
from castalia.method.report import Contender
from castalia.method.report.score_formats import duration, metric_label, score, score_range
from castalia.utils.process_ranks import is_first
from castalia.utils.text import plural

__all__ = [
    "TerminalNarrator",
    "fit_and_print",
    "print_findings",
    "print_result",
    "resumable",
    "result_data",
]


def fit_and_print(
    plan: FitPlan,
    as_json: bool,
    carry_out: Callable[[FitPlan, Narrator], FitResult] = run,
    known: FitResult | None = None,
) -> None:
    """Carry out a plan, report its progress, and print its outcome, unless that is known."""
    out = Output(as_json)
    narrator = TerminalNarrator(out)
    with resumable(narrator):
        result = carry_out(plan, narrator)
    if not is_first():  # the first process prints
        return
    if result is not known:
        print_result(out, result)
    out.data(result_data(result))


@contextmanager
def resumable(narrator: TerminalNarrator) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a sentence that says how to continue."""
    try:
        yield
    except KeyboardInterrupt as stop:
        where = f" (run folder {narrator.folder})" if narrator.folder else ""
        words = f"Interrupted; run the same command to continue{where}."
        raise Interrupted(words, getattr(stop, "code", USER)) from None


def result_data(result: FitResult, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a result as ``--json`` prints it."""
    paths = {"run": result.folder, "model": result.recommended, "report": result.page}
    return {**paths, **(more or {}), **result.summary}


class TerminalNarrator(Narrator):
    """Writes every event of a fit as a line or two."""

    def __init__(self, out: Output, *, trials: bool = True) -> None:
        self.out, self.folder = out, None  # type: Output, Path | None
        self.trials = trials
        self._section, self.unit = "", "row"

    def _head(self, words: str) -> None:
        if words != self._section:
            self.out.say()
            self.out.say(words, "head")
            self._section = words

    def reading(self, name: str) -> None:
        """Say that the data is being read."""
        self.out.say(f"Reading {name} …")

    def started(self, folder: Path, facts: dict[str, Any]) -> None:
        """Say what is fitted, and where the run lies."""
        self.folder = folder
        self.out.say(f"{facts['source']}", "head")
        self.unit = facts["unit"]
        self.out.wrapped(facts["what"])
        if "target" in facts:
            classes = f", {facts['classes']} classes" if facts["classes"] else ""
            what = f"{facts['task']}{classes}"
            self.out.wrapped(f"Target: {facts['target']} ({what}), because {facts['why']}")
        self.out.say(f"  Split: {facts['split']} ({facts['tested']:,})")
        self.out.say(f"  Run folder: {folder}")

    def warning(self, words: str) -> None:
        """Say what must be known before anything else."""
        self.out.wrapped(words, "WARNING: ", "bad")

    def note(self, words: str) -> None:
        """Say a remark."""
        self.out.wrapped(words, "Note: ")

    def baseline(self, contender: Contender, metric: str) -> None:
        """Say what a baseline scored."""
        self._head(f"Baselines ({metric_label(metric)} on the test {self.unit}s, 95 % interval)")
        reach = score_range(contender.interval, metric)
        self.out.say(
            f"  {contender.name:<36}{score(contender.scores[metric], metric):>8}   {reach:<18}"
            f"{duration(contender.seconds):>8}"
        )

    def checked(self, checks: Sequence[dict[str, Any]]) -> None:
        """Say what the preflight checks found."""
        if not checks:
            return
        passed = sum(bool(c["passed"]) for c in checks)
        self._head(f"Preflight checks: {passed} of {len(checks)} passed")
        for check in checks:
            word, style = ("ok    ", "") if check["passed"] else ("FAILED", "bad")
            self.out.wrapped(f"{check['message']}", f"{word}  {check['name']:<16}", style)

    def trial(self, number: int, of: int, words: str) -> None:
        """Say what a trial of a search scored."""
        if self.trials:
            self._head("Search")
            self.out.say(f"  {number}/{of}  {words}")

    def cured(self, steps: Sequence[dict[str, Any]]) -> None:
        """Say what was wrong, what was changed and what it gained."""
        self._head("The doctor's remedies (scores on validation rows)")
        if not steps:
            self.out.say("  Nothing to cure was found.")
        for step in steps:
            fate, style = ("kept", "good") if step["kept"] else ("taken back", "")
            self.out.wrapped(f"{step['summary']}", f"{step['code']}  ")
            gain = f"{step['before']:.4g} → {step['after']:.4g}, {fate}"
            self.out.wrapped(f"{step['remedy']}: {gain}", "→ ", style)

    def training(self, number: int, of: int, words: str) -> None:
        """Say that a training begins."""
        self._head("Training")
        self.out.say(f"  {number}/{of}  {words}")

    def trained(self, number: int, of: int, words: str) -> None:
        """Say how it went."""
        self._head("Training")
        self.out.say(f"  {number}/{of}  {words}")


def print_result(out: Output, result: FitResult) -> None:
    """Write scores, verdict, advice and where things lie."""
    report, summary = result.report, result.summary
    out.say()
    tested, unit = summary["rows"]["tested"], report.unit
    out.say(f"Scores on the {plural(tested, f'test {unit}')}", "head")
    _score_table(out, report.contenders, report.metric)
    out.say()
    out.say("Verdict", "head")
    out.wrapped(report.verdict)
    goal = summary["goal"] or {}
    if goal.get("from") == "the plan":
        word = "reached" if goal["reached"] else "not reached"
        value = score(goal["value"], report.metric)
        out.say(f"  Goal: {metric_label(report.metric)} {value}: {word}")
    print_findings(out, report.findings)
    if report.advice:
        out.say()
        out.say("Advice", "head")
        for line in report.advice:
            out.wrapped(line, "- ")
    out.say()
    out.say(f"Model:  {result.recommended} (what `castalia predict {result.folder} …` uses)")
    out.say(f"Report: {result.page.resolve()}", "head")


def print_findings(out: Output, findings: Sequence[dict[str, Any]]) -> None:
    """Write what the doctor found, with remedies."""
    if not findings:
        return
    out.say()
    out.say("Findings", "head")
    for found in findings:
        style = "bad" if found["severity"] == "error" else ""
        out.wrapped(
            f"{found['name']} ({found['severity']}): {found['message']}",
            f"{found['code']}  ",
            style,
        )
        out.wrapped(found["remedy"], "→ ")
    out.say("  `castalia cure RUN` tries the remedies and keeps what helps.")


def _score_table(out: Output, contenders: Sequence[Contender], metric: str) -> None:
    names = [metric, *(m for m in contenders[-1].scores if m != metric)][:4]
    heads = [
        "",
        metric_label(metric),
        "95 % interval",
        *(metric_label(m) for m in names[1:]),
        "time",
    ]
    rows = [
        [
            c.name,
            score(c.scores.get(metric), metric),
            score_range(c.interval, metric),
            *(score(c.scores.get(m), m) for m in names[1:]),
            duration(c.seconds),
        ]
        for c in contenders
    ]
    out.table(heads, rows, right="1234567")
