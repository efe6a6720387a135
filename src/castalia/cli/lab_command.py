"""``castalia lab``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from castalia.cli.output import AsJson, Output

__all__ = ["lab", "write_figure"]


def lab(
    name: Annotated[str | None, typer.Argument(help="The experiment; none lists them.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to put the figure (png, svg, pdf).")
    ] = None,
    quick: Annotated[bool, typer.Option(help="A small version, in seconds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment of the course and draw its figure."""
    from castalia.lab import EXPERIMENTS, run

    output = Output(as_json)
    if name is None:
        output.table(["experiment", "what it shows"], [[n, s] for n, s in EXPERIMENTS.items()])
        output.data({"experiments": dict(EXPERIMENTS)})
        return
    found = run(name, quick=quick)
    path = out if out is not None else Path(f"{name}.png")
    write_figure(found.figure, path, "castalia lab", "--out")
    for key, value in found.numbers.items():
        output.say(f"  {key:<28} {value:.6g}")
    output.say(found.said)
    output.say(f"Figure: {path}")
    numbers = dict(found.numbers)
    output.data({"name": name, "numbers": numbers, "said": found.said, "figure": str(path)})


def write_figure(figure: object, path: Path, owner: str, option: str) -> None:
    """Write a figure in the format that a path's ending names."""
    from castalia.errors import InvalidParameter
    from castalia.utils.atomic_files import writing

    if path.suffix.lstrip(".").lower() not in ("png", "svg", "pdf"):
        raise InvalidParameter(f"{owner}: `{option}` must end in .png, .svg or .pdf; got '{path}'.")
    with writing(owner, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, facecolor="white")  # type: ignore[attr-defined]
