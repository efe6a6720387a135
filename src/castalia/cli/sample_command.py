"""``castalia sample``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output
from castalia.errors import InvalidParameter

__all__ = ["sample"]


def sample(
    model: options.ModelFolder,
    n: Annotated[int, typer.Option("--n", "-n", help="How many rows or images.")] = 64,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write: rows as .csv, .parquet or .jsonl, images as .png or .npz [rows: "
            "CSV to stdout].",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Class to draw, of a conditional model [all in turn].")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draws [random].")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw rows or images with a model of `castalia fit --generate`; as many as the disk holds."""
    import secrets

    from castalia.method.synthesis import draw_samples

    if n < 1:
        raise InvalidParameter(f"sample: `n` must be a whole number from 1; got {n}.")
    if as_json and out is None:
        raise InvalidParameter("sample: --json needs --out, as rows go to standard output.")
    chosen = secrets.randbelow(2**31) if seed is None else seed
    path = draw_samples(model, n, out or sys.stdout.buffer, seed=chosen, label=label)
    if path is not None:
        shown = Output(as_json)
        shown.say(f"{n:,} drawn with seed {chosen}: {path}")
        shown.data({"n": n, "seed": chosen, "out": path})
