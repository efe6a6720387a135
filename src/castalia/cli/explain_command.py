"""``castalia explain``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output

if TYPE_CHECKING:
    from castalia.method.explanations import Explanation

__all__ = ["explain"]

CODE = re.compile(r"CST\d+", re.IGNORECASE)


def explain(
    model: Annotated[
        str, typer.Argument(help="Folder of a run or a saved model; or a finding such as CST103.")
    ],
    data: Annotated[str | None, typer.Argument(help="Table with the rows to explain.")] = None,
    background: Annotated[
        str | None,
        typer.Option(help="Table to compare the rows with [what the run was trained on]."),
    ] = None,
    first: Annotated[int, typer.Option(min=1, help="How many rows to explain.")] = 10,
    most: Annotated[int, typer.Option(min=1, help="How many columns to show of a row.")] = 8,
    output: Annotated[
        str | None, typer.Option(help="Class whose probability is explained [the predicted one].")
    ] = None,
    method: Annotated[
        str, typer.Option(help="shapley, for any model, or gradients, for a network.")
    ] = "shapley",
    rounds: Annotated[
        int, typer.Option(min=2, help="Rounds of sampling, for more than ten columns.")
    ] = 10,
    plot: Annotated[
        Path | None, typer.Option(help="Figure of the first rows to write (png, svg, pdf).")
    ] = None,
    name: options.ContenderName = None,
    header: options.Header = True,
    as_json: AsJson = False,
) -> None:
    """Explain the predictions for single rows, or a finding of the doctor."""
    if data is None and CODE.fullmatch(model):
        _print_page(model, as_json)
        return
    from castalia.errors import InvalidParameter
    from castalia.method.explanations import explain as explain_rows

    if data is None:
        raise InvalidParameter(
            f"explain: `data` must name a table with rows to explain, as in castalia explain "
            f"{model} rows.csv; got none."
        )
    found = explain_rows(
        model,
        data,
        name=name,
        background=background,
        first=first,
        output=output,
        method=method,
        rounds=rounds,
        header=header,
    )
    _show(found, Output(as_json), most)
    if plot is not None:
        from castalia.cli.lab_command import write_figure

        write_figure(found.figure(), plot, "castalia explain", "--plot")
    if as_json:
        _print_json(found, plot)
    elif plot is not None:
        typer.echo(f"Figure: {plot}")


def _print_page(code: str, as_json: bool) -> None:
    from castalia.diagnose.finding_pages import finding_page

    text = finding_page(code)
    if as_json:
        Output(True).data({"code": code.upper(), "page": text})
    else:
        typer.echo(text, nl=False)


def _show(found: Explanation, out: Output, most: int) -> None:
    for note in found.notes:
        typer.echo(f"Note: {note}", err=True)
    sampled = not found.attributions.exact
    heads = ["column", "value", "moves it by", *(["95 % interval"] if sampled else [])]
    out.say(f"Compared with {found.background}, by {found.attributions.method}.")
    for row in found.rows():
        out.say(_headline(found.target, row), "head")
        lines = [_line(column, sampled) for column in row["columns"][:most]]
        rest = row["columns"][most:]
        if rest:
            left = sum(column["effect"] for column in rest)
            lines.append([f"{len(rest)} others", "", f"{left:+.4g}", *([""] if sampled else [])])
        out.table(heads, lines, right="23")


def _headline(target: str, row: dict[str, Any]) -> str:
    what = target or "prediction"
    usual = f"{row['background']:.4g} on average"
    if row["class"] == "":
        return f"row {row['row']}: {what} {row['output']:.4g} ({usual})"
    said = f"probability {row['output']:.4g}"
    return f"row {row['row']}: {what} {row['class']}, {said} ({usual})"


def _line(column: dict[str, Any], sampled: bool) -> list[str]:
    from castalia.method.report.score_formats import value

    found = [column["column"], value(column["value"], 24), f"{column['effect']:+.4g}"]
    return [*found, *([f"{column['low']:+.4g} to {column['high']:+.4g}"] if sampled else [])]


def _print_json(found: Explanation, plot: Path | None) -> None:
    from castalia.method.report.plain_values import plain

    content = {
        "target": found.target,
        "method": found.attributions.method,
        "background": found.background,
        "gap": found.attributions.gap,
        "rows": plain(found.rows()),
        "notes": found.notes,
    }
    Output(True).data(content | ({"figure": str(plot)} if plot else {}))
