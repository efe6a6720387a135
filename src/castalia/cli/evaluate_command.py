"""``castalia evaluate``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output

__all__ = ["evaluate"]


def evaluate(
    model: options.ModelFolder,
    data: Annotated[
        list[str],
        typer.Argument(
            help="Table, or folder of images, whose target is known; a text, or two parallel."
        ),
    ],
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column with the truth [the run's].")
    ] = None,
    name: options.ContenderName = None,
    text: options.TextColumn = None,
    header: options.Header = True,
    encoding: options.Encoding = None,
    drop_missing: options.DropMissing = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which columns the model uses on these rows.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score a saved model on new rows, images or texts."""
    from castalia.method import evaluate as evaluate_rows
    from castalia.method.report.plain_values import plain
    from castalia.method.report.score_formats import metric_label, score, score_range
    from castalia.utils.text import plural

    several = data[0] if len(data) == 1 else tuple(data)
    found = evaluate_rows(
        model,
        several,
        name=name,
        target=target,
        text=text,
        header=header,
        encoding=encoding,
        drop_missing=drop_missing,
        explain=explain,
    )
    out = Output(as_json)
    for note in found.notes:
        typer.echo(f"Note: {note}", err=True)
    out.say(f"{found.target} ({found.task}) of {plural(found.rows, found.unit)}", "head")
    rows = [
        [
            metric_label(name),
            score(value, name),
            score_range(found.interval, name) if name == found.metric else "",
        ]
        for name, value in found.scores.items()
    ]
    out.table(["measure", "score", "95 % interval"], rows, right="12")
    if found.importance:
        _show_columns(found.importance, out)
    out.data(plain(vars(found)))


def _show_columns(found: dict[str, Any], out: Output) -> None:
    """Print what the score loses when a column is shuffled, the most first."""
    from castalia.method.report.score_formats import metric_label, score

    name = found["metric"]
    out.say(f"Columns by what {metric_label(name)} loses when they are shuffled", "head")
    rows = [
        [column, score(value, name), f"{score(low, name)} to {score(high, name)}"]
        for column, value, (low, high) in zip(
            found["columns"], found["values"], found["intervals"], strict=True
        )
    ]
    out.table(["column", "loss", "95 % interval"], rows, right="12")
