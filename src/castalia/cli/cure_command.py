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
    """Fit a finished run's data again, with the remedies that help on validation rows.

    Remedies are tried one at a time; the trail says what was wrong, what was changed and what it
    gained.
    """
    from castalia.cli.fit_output import fit_and_print
    from castalia.method.cure_plan import cure_plan

    fit_and_print(cure_plan(run, out, verbose=not quiet), as_json)
