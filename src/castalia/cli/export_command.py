"""``castalia export``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output

__all__ = ["export"]

ENDINGS = {"onnx": ".onnx", "torch": ".pt2", "hf": "-hf"}


def export(
    model: options.ModelFolder,
    to: Annotated[str, typer.Option(help="onnx, torch (a torch.export program) or hf.")] = "onnx",
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="File, or folder of hf [named after MODEL].")
    ] = None,
    name: options.ContenderName = None,
    rows: Annotated[
        str | None,
        typer.Option(help="Rows on which file and model must agree [those the run was fitted on]."),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Write a variant with weights of 8 bits beside (onnx).")
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Write a page beside that predicts in a browser (onnx).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a saved model for ONNX Runtime, browsers, torch.export or Hugging Face, checked."""
    from castalia.errors import InvalidParameter
    from castalia.export import export_model, write_page
    from castalia.export.check_rows import check_rows
    from castalia.method.saved_model import find_formats, find_text, load_model

    if page and to != "onnx":
        raise InvalidParameter(f"export: --page must go with --to onnx; got {to}.")
    found = load_model(model, name)
    path = Path(out or f"{Path(model).resolve().name}{ENDINGS.get(to, '')}")
    about = {"formats": find_formats(model), "text": find_text(model)}
    X, source = (None, "") if to == "hf" else check_rows(model, found, rows)
    made = export_model(found, path, to=to, rows=X, about=about, int8=int8)
    screen = Output(as_json)
    for each in (made, made.int8):
        if each is not None:
            _say(screen, type(found).__name__, each, source)
    if page:
        shown = write_page(made.path, made.path.with_suffix(".html"))
        screen.say(
            f"Page in {shown}: {shown.stat().st_size / 1e6:.1f} MB; open it in a browser", "head"
        )
    screen.data(asdict(made))


def _say(screen: Output, name: str, made: Any, source: str) -> None:
    """Print what was written and how it was checked."""
    from castalia.utils.text import listing, plural

    opset = f", opset {made.opset}" if made.opset else ""
    screen.say(f"{name} in {made.path}: {made.size / 1e3:,.1f} kB{opset}", "head")
    if made.inputs:
        screen.say(f"  inputs {listing(made.inputs, 'and', 8)}; outputs {listing(made.outputs)}")
    if made.runner:
        facts, script = (file.name for file in made.runner)
        screen.say(f"  {script} prepares rows for it with Python alone, by {facts}")
    if made.rows:
        words = f"answers of {plural(made.rows, 'row')} of {source} differ by"
        screen.say(f"  checked: {words} {made.difference:.1e} at most", "good")
    elif made.form != "hf":
        screen.say("  not checked: there are no rows; name a file with --rows")
