"""``castalia report``."""

from __future__ import annotations

from typing import Annotated

import typer

from castalia.cli.output import AsJson, Output

__all__ = ["report"]


def report(
    run: Annotated[str, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="File to write [report.html of the run].")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a finished run again."""
    from pathlib import Path

    from castalia.method import FitResult
    from castalia.method.report import write
    from castalia.utils.atomic_files import writing

    result = FitResult.load(run)
    path = result.page if out is None else Path(out)
    with writing("report", path):
        write(result.report, path)
    shown = Output(as_json)
    shown.wrapped(result.verdict)
    shown.say(f"Report: {path.resolve()}", "head")
    shown.data({"report": path, "verdict": result.verdict})
