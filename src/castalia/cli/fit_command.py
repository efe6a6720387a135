"""``castalia fit``."""

from __future__ import annotations

from typing import Annotated

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson

__all__ = ["fit"]


def fit(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Table (CSV, TSV, Parquet, JSON lines), also with a column of texts; or images: "
            "a folder of class folders, a zip or NPZ file, a table of paths; or a text file, or "
            "two that are translations line by line; or a list of edges, with --nodes or --links; "
            "or a folder of graphs; or a known name: penguins."
        ),
    ],
    target: options.Target = None,
    generate: Annotated[
        bool,
        typer.Option(
            "--generate", help="Learn to draw rows or images like these; none is predicted."
        ),
    ] = False,
    nodes: Annotated[
        str | None,
        typer.Option(help="Table of nodes, where the data is a list of edges."),
    ] = None,
    links: Annotated[
        bool, typer.Option("--links", help="Predict the edges themselves of a list of edges.")
    ] = False,
    text: Annotated[
        str | None,
        typer.Option(help="Column to read as text; none leaves texts aside [one of sentences]."),
    ] = None,
    model: options.ModelName = None,
    settings: options.SetOptions = None,
    task: options.TaskName = None,
    metric: options.Metric = None,
    goal: Annotated[float | None, typer.Option(help="Value that is good enough.")] = None,
    run: options.RunFolder = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Trainings, each with its own split and seed [3; 1 if they are long]."),
    ] = None,
    cv: Annotated[int | None, typer.Option(help="Folds: test every row once.")] = None,
    test: options.TestShare = 0.2,
    group: options.Group = None,
    time: options.TimeColumn = None,
    horizon: options.Horizon = None,
    drop: options.Drop = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for all trainings together.")
    ] = None,
    device: options.Device = "auto",
    seed: options.Seed = 0,
    header: options.Header = True,
    encoding: options.Encoding = None,
    drop_missing: options.DropMissing = False,
    skip_broken: options.SkipBroken = False,
    boosting_rounds: options.BoostingRounds = 100,
    preflight_seconds: options.PreflightSeconds = 10.0,
    doctor: Annotated[
        bool, typer.Option("--doctor", help="Try the doctor's remedies first; keep what helps.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes of this machine that train together, as by torchrun."),
    ] = None,
    quiet: options.Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit a table, series, images, text or graphs: baselines, a network, and which of them to use.

    With --generate, fit a model that draws new rows or images, and report how good they are.

    Run the same command again after an interruption and it continues where it stopped.
    """
    from castalia.cli.fit_output import fit_and_print
    from castalia.cli.local_processes import in_processes
    from castalia.cli.synthesis_output import synthesise_and_print

    in_processes(workers)
    plan = options.make_plan(
        data,
        settings,
        quiet,
        target=target,
        generate=generate,
        nodes=nodes,
        links=links,
        text=text,
        model=model,
        task=task,
        metric=metric,
        goal=goal,
        run=run,
        seeds=seeds,
        cv=cv,
        test=test,
        group=group,
        time=time,
        horizon=horizon,
        drop=tuple(drop or ()),
        time_limit=time_limit,
        device=device,
        seed=seed,
        header=header,
        encoding=encoding,
        drop_missing=drop_missing,
        skip_broken=skip_broken,
        boosting_rounds=boosting_rounds,
        preflight_seconds=preflight_seconds,
        doctor=doctor,
    )
    (synthesise_and_print if generate else fit_and_print)(plan, as_json)
