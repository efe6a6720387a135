"""``castalia runs``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from castalia.cli.output import AsJson, Output

__all__ = ["runs"]


def runs(
    folder: Annotated[
        str, typer.Argument(help="Folder of runs, or of one run, whose trainings are listed.")
    ] = "castalia-runs",
    as_json: AsJson = False,
) -> None:
    """List the runs kept in a folder, with the score of the model each recommends."""
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
        found = [run | {"score": _score(store, run)} for run in store.runs()]
    out = Output(as_json)
    heads = ["run", "status", "updated", "score", "by", "folder"]
    lines = [
        [
            run["name"],
            run["status"],
            datetime.fromtimestamp(run["updated"]).strftime("%Y-%m-%d %H:%M"),
            *_words(run["score"]),
            str(run["folder"]),
        ]
        for run in found
    ]
    if not as_json:
        out.table(heads, lines)
    out.data({"runs": found})


def _score(store: Any, run: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a run came to: the score of the model to use, or the last loss of a training."""
    import json

    try:
        summary = json.loads((run["folder"] / "result.json").read_bytes())["summary"]
        metric, models = summary["metric"], {m["name"]: m for m in summary["contenders"]}
        name = summary.get("models", {}).get(summary.get("recommended")) or list(models)[-1]
        value = models[name]["scores"][metric]
        return {"metric": str(metric), "value": None if value is None else float(value), "by": name}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return _last_loss(store, run)


def _last_loss(store: Any, run: dict[str, Any]) -> dict[str, Any] | None:
    from contextlib import suppress

    from castalia.errors import DamagedFile
    from castalia.train.runs import Run

    training = Run(store, run["id"], run["name"], run["config"])
    with suppress(DamagedFile):  # of points that are no numbers: the run is listed all the same
        for metric in ("val_loss", "loss"):
            _, values = training.metric(metric)
            if values:
                return {"metric": metric, "value": values[-1], "by": "the last epoch"}
    return None


def _words(score: dict[str, Any] | None) -> list[str]:
    if score is None:
        return ["", ""]
    value = "–" if score["value"] is None else f"{score['value']:.4g}"
    return [f"{score['metric'].replace('_', ' ')} {value}", str(score["by"])]
