"""``castalia runs``."""

from __future__ import annotations

from typing import Annotated

import typer

from castalia.cli.output import AsJson, Output

__all__ = ["runs"]


def runs(
    folder: Annotated[
        str, typer.Argument(help="Folder of runs, or of one run, whose trainings are listed.")
    ] = "castalia-runs",
    as_json: AsJson = False,
) -> None:
    """List the runs kept in a folder."""
    from datetime import datetime
    from pathlib import Path

    from castalia.errors import InvalidData
    from castalia.train.runs import RunStore

    if not (Path(folder) / "castalia.db").is_file():
        raise InvalidData(
            f"runs: `{folder}` must be a folder of runs; it has no `castalia.db`. `castalia "
            "fit` makes one."
        )
    with RunStore(folder) as store:
        found = store.runs()
    out = Output(as_json)
    heads = ["run", "status", "updated", "folder"]
    lines = [
        [
            run["name"],
            run["status"],
            datetime.fromtimestamp(run["updated"]).strftime("%Y-%m-%d %H:%M"),
            str(run["folder"]),
        ]
        for run in found
    ]
    out.table(heads, lines)
    out.data({"runs": found})
