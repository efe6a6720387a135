"""``castalia cure``."""

from __future__ import annotations

from typing import Annotated

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson

__all__ = ["cure"]


def cure(
    run: Annotated[str, typer.Argument(help="Folder of a finished `castalia fit`.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Run folder of the cured fit [RUN-cured].")
    ] = None,
    quiet: options.Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit a finished run's data again, if remedies help on validation rows.

    Remedies are tried one at a time; the trail says what was wrong, what was changed and what it
    gained.
    """
    from castalia.cli.fit_output import fit_and_print
    from castalia.method import FitResult
    from castalia.method.cure_plan import cure_plan
    from castalia.method.flow import cure as carry_out

    plan, before = cure_plan(run, out, verbose=not quiet), FitResult.load(run)
    fit_and_print(plan, as_json, lambda plan, narrator: carry_out(plan, before, narrator), before)
