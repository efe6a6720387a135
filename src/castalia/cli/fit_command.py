"""``castalia fit``."""

from __future__ import annotations

from typing import Annotated

import typer

from castalia.cli.output import AsJson

__all__ = ["fit"]


def fit(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Table (CSV, TSV, Parquet, JSON lines), also with a column of texts; or images: "
            "a folder of class folders, a zip or NPZ file, a table of paths; or a text file, or "
            "two that are translations line by line; or a known name: penguins."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column to predict; not for images and text files."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(help="Column to read as text; none leaves texts aside [one of sentences]."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="mlp, ridge, resnet, gpt, …; `castalia models` lists them [what suits]."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of model or training: hidden=64,64 or image_size=64."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="classification or regression; told by the target.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What decides: accuracy, balanced_accuracy, r2, rmse, mae …; told by the task."
        ),
    ] = None,
    goal: Annotated[
        float | None, typer.Option(help="Value that is good enough [the best baseline's].")
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="Run folder [castalia-runs/<data>-<target>].")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Trainings with different seeds [3; 1 where they are long].")
    ] = None,
    cv: Annotated[int | None, typer.Option(help="Folds: test every row once.")] = None,
    test: Annotated[float, typer.Option(help="Share of rows in the test part.")] = 0.2,
    group: Annotated[
        str | None, typer.Option(help="Column whose values stay on one side of the split.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column to split by: the latest rows are tested.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for all trainings together.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the split and the first training.")] = 0,
    header: Annotated[bool, typer.Option(help="Whether a text file starts with names.")] = True,
    boosting_rounds: Annotated[int, typer.Option(help="Trees of the boosting baseline.")] = 100,
    preflight_seconds: Annotated[
        float, typer.Option(help="Time for checks before training; 0 for none.")
    ] = 10.0,
    doctor: Annotated[
        bool, typer.Option("--doctor", help="Try the doctor's remedies first; keep what helps.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a table, images or text: baselines, a network, and whether it is worth using.

    Run the same command again after an interruption and it goes on where it stopped.
    """
    from castalia.cli.fit_output import fit_and_tell
    from castalia.method import FitPlan
    from castalia.method.model_settings import parse_settings

    plan = FitPlan(
        data=data[0] if len(data) == 1 else tuple(data),
        target=target,
        text=text,
        model=model,
        settings=parse_settings(settings or []),
        task=task,
        metric=metric,
        goal=goal,
        run=run,
        seeds=seeds,
        cv=cv,
        test=test,
        group=group,
        time=time,
        time_limit=time_limit,
        device=device,
        seed=seed,
        header=header,
        boosting_rounds=boosting_rounds,
        preflight_seconds=preflight_seconds,
        doctor=doctor,
        verbose=not quiet,
    )
    fit_and_tell(plan, as_json)
