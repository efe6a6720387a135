"""``castalia demo``."""

from __future__ import annotations

from typing import Annotated

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson

__all__ = ["demo"]


def demo(
    run: Annotated[
        str | None, typer.Option(help="Run folder [castalia-runs/penguins-species].")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Trainings with different seeds.")] = 3,
    quiet: options.Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit the penguins that come with Castalia; needs no network and less than a minute."""
    from castalia.cli.fit_output import fit_and_print
    from castalia.method import FitPlan

    fit_and_print(
        FitPlan(data="penguins", target="species", run=run, seeds=seeds, verbose=not quiet), as_json
    )
