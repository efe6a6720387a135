"""The options that several commands share, defined once, and the plan they make."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from castalia.method import FitPlan

__all__ = [
    "BoostingRounds",
    "Cluster",
    "ContenderName",
    "Device",
    "Drop",
    "DropMissing",
    "Encoding",
    "Group",
    "Header",
    "Horizon",
    "Metric",
    "ModelFolder",
    "ModelName",
    "PreflightSeconds",
    "Quiet",
    "RunFolder",
    "Seed",
    "SetOptions",
    "SkipBroken",
    "Target",
    "TaskName",
    "TestShare",
    "TextColumn",
    "TimeColumn",
    "cluster_at",
    "make_plan",
]

# What to fit, and how.
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Column to predict; not for images and text files."),
]
TaskName = Annotated[
    str | None, typer.Option(help="classification or regression [inferred from the target].")
]
ModelName = Annotated[
    str | None,
    typer.Option(help="mlp, ridge, resnet, gpt, …; `castalia models` lists them [what suits]."),
]
SetOptions = Annotated[
    list[str] | None,
    typer.Option("--set", help="Setting of model or training: hidden=64,64 or image_size=64."),
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="What decides: accuracy, roc_auc, r2, mae …, any scorer of scikit-learn [by the task]."
    ),
]
TestShare = Annotated[float, typer.Option(help="Share of rows in the test part.")]
Group = Annotated[
    str | None, typer.Option(help="Column whose values stay on one side of the split.")
]
TimeColumn = Annotated[
    str | None,
    typer.Option(help="Column to split by, later rows tested [dates, if any]; none: at random."),
]
Horizon = Annotated[
    int | None,
    typer.Option(help="Steps to forecast of the series that the target is, by --time and --group."),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", help="Column not to learn from; repeatable.")
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file: utf-8, cp1252 … [detected].")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows without a target, and say how many.")
]
SkipBroken = Annotated[
    bool, typer.Option("--skip-broken", help="Leave out damaged files of several, and say so.")
]
Header = Annotated[bool, typer.Option(help="Whether a text file starts with names.")]
BoostingRounds = Annotated[int, typer.Option(help="Trees of the boosting baseline.")]
PreflightSeconds = Annotated[
    float, typer.Option(help="Time for checks before training; 0 for none.")
]
Seed = Annotated[int, typer.Option(help="Seed of splits and trainings.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")]
RunFolder = Annotated[str | None, typer.Option(help="Run folder [one in castalia-runs].")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="Where the work runs: processes, local, auto or ray://HOST:10001 [here]."),
]

# A saved model and rows for it.
ModelFolder = Annotated[str, typer.Argument(help="Folder of a run or of a saved model.")]
ContenderName = Annotated[
    str | None,
    typer.Option("--model", help="Another of the run: boosting, linear, model … [recommended]."),
]
TextColumn = Annotated[str | None, typer.Option(help="Column with the texts [the run's].")]


def cluster_at(address: str | None) -> AbstractContextManager[Any]:
    """Return the context in which parallel work runs where ``--cluster`` says."""
    if address is None:
        return nullcontext()
    from castalia.utils.worker_cluster import cluster

    return cluster(None if address == "processes" else address)


def make_plan(
    data: Sequence[str], settings: Sequence[str] | None, quiet: bool, **options: Any
) -> FitPlan:
    """Return the plan that a command line asks for; ``options`` are fields of the plan."""
    from castalia.method import FitPlan
    from castalia.method.model_settings import parse_settings

    return FitPlan(
        data=data[0] if len(data) == 1 else tuple(data),
        settings=parse_settings(settings or []),
        verbose=not quiet,
        **options,
    )
