"""The fit of a model that draws, on the terminal."""

from __future__ import annotations

from castalia.cli.fit_output import TerminalNarrator, print_findings, result_data, resumable
from castalia.cli.output import Output
from castalia.method import FitPlan, FitResult
from castalia.method.synthesis import synthesise
from castalia.utils.process_ranks import alone, is_first

__all__ = ["synthesise_and_print"]


def synthesise_and_print(plan: FitPlan, as_json: bool) -> None:
    """Carry out a plan with ``generate``, report its progress, and print its outcome."""
    if not is_first():  # of several processes one does it
        return
    out = Output(as_json)
    narrator = TerminalNarrator(out)
    with resumable(narrator), alone():
        result = synthesise(plan, narrator)
    _print(out, result)
    out.data(result_data(result))


def _print(out: Output, result: FitResult) -> None:
    """Write scores, verdict, advice and where things lie."""
    report = result.report
    table = report.panels[0]
    out.say()
    out.say(table["title"], "head")
    out.table(table["heads"], [[str(cell) for cell in row] for row in table["rows"]], "1234567")
    out.say()
    out.say("Verdict", "head")
    out.wrapped(report.verdict, style="bad" if result.summary["copied"] else "")
    print_findings(out, report.findings)
    out.say()
    out.say("Advice", "head")
    for line in report.advice:
        out.wrapped(line, "- ")
    ending = "grid.png" if report.unit == "image" else "rows.csv"
    out.say()
    out.say(f"Samples: {result.summary['samples']}")
    out.say(f"More:    castalia sample {result.folder} --n 1000 --out {ending}")
    out.say(f"Report:  {result.page.resolve()}", "head")
