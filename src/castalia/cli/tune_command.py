"""``castalia tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output

if TYPE_CHECKING:
    from castalia.method import TunePlan, TuneResult

__all__ = ["tune"]


def tune(
    data: Annotated[
        str, typer.Argument(help="Table, series or images, as `castalia fit` takes them.")
    ],
    target: options.Target = None,
    model: options.ModelName = None,
    trials: Annotated[
        int, typer.Option(help="Settings to try, those of earlier sittings included.")
    ] = 20,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no further trial after this time.")
    ] = None,
    search: Annotated[str, typer.Option(help="bayesian, random or grid.")] = "bayesian",
    tried: Annotated[
        list[str] | None,
        typer.Option("--try", help="What to search: lr=1e-4..1e-1 or hidden=32|64,64."),
    ] = None,
    settings: options.SetOptions = None,
    folds: Annotated[int, typer.Option(help="Folds of the training rows that judge.")] = 3,
    task: options.TaskName = None,
    metric: options.Metric = None,
    run: options.RunFolder = None,
    seeds: Annotated[int, typer.Option(help="Trainings of the best settings.")] = 1,
    test: options.TestShare = 0.2,
    group: options.Group = None,
    time: options.TimeColumn = None,
    horizon: options.Horizon = None,
    drop: options.Drop = None,
    device: options.Device = "auto",
    seed: options.Seed = 0,
    header: options.Header = True,
    encoding: options.Encoding = None,
    drop_missing: options.DropMissing = False,
    boosting_rounds: options.BoostingRounds = 100,
    preflight_seconds: options.PreflightSeconds = 10.0,
    cluster: options.Cluster = None,
    quiet: options.Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search the settings of a model, then fit the best of them as `fit` does.

    Settings are judged on the training rows only; --set fixes one. Run the same command again after
    an interruption, or with more --trials, and it continues where it stopped.
    """
    from dataclasses import replace

    from castalia.method import TunePlan
    from castalia.method.tune_plan import parse_space

    fit = options.make_plan(
        [data],
        settings,
        quiet,
        target=target,
        model=model,
        task=task,
        metric=metric,
        run=run,
        seeds=seeds,
        test=test,
        group=group,
        time=time,
        horizon=horizon,
        drop=tuple(drop or ()),
        device=device,
        seed=seed,
        header=header,
        encoding=encoding,
        drop_missing=drop_missing,
        boosting_rounds=boosting_rounds,
        preflight_seconds=preflight_seconds,
    )
    fit = fit if run is not None else replace(fit, run=f"{fit.folder}-tuned")
    space = parse_space(tried or [])
    plan = TunePlan(
        fit=fit, search=search, trials=trials, seconds=seconds, folds=folds, space=space
    )
    with options.cluster_at(cluster):
        _tune_and_print(plan, quiet, as_json)


def _tune_and_print(plan: TunePlan, quiet: bool, as_json: bool) -> None:
    from castalia.cli.fit_output import TerminalNarrator, print_result, result_data, resumable
    from castalia.method import tune as carry_out
    from castalia.utils.process_ranks import alone, is_first

    if not is_first():  # of several processes one does it
        return
    out = Output(as_json)
    narrator = TerminalNarrator(out, trials=not quiet)
    with resumable(narrator), alone():
        result = carry_out(plan, narrator)
    _print_search(out, result)
    print_result(out, result.fit)
    found = {
        "best": result.best,
        "best_score": result.score,
        "trials": result.trials,
        "counts": result.counts,
        "importances": result.importances,
    }
    out.data(result_data(result.fit, found))


def _print_search(out: Output, result: TuneResult) -> None:
    """Write the best trials, and which setting mattered."""
    from castalia.method.report.score_formats import metric_label, score
    from castalia.method.tune_plan import settings_words, short_name
    from castalia.utils.text import plural

    counts = result.counts
    ends = [f"{counts['pruned']:,} given up early"] if counts["pruned"] else []
    ends += [f"{counts['fail']:,} failed"] if counts["fail"] else []
    out.say()
    ended = plural(sum(counts.values()), "trial") + "".join(f", {end}" for end in ends)
    out.say(
        f"Best settings ({ended}; {metric_label(result.metric)} on held-out training rows)", "head"
    )
    rows: list[list[Any]] = [
        [
            trial["rank"],
            score(trial["score"], result.metric),
            f"± {score(trial['spread'], result.metric)}",
            settings_words(trial["params"]),
        ]
        for trial in result.trials
    ]
    out.table(["", metric_label(result.metric), "folds", "settings"], rows, right="01")
    if result.importances:
        shares = ", ".join(
            f"{short_name(n)} {100 * v:.0f} %" for n, v in result.importances.items()
        )
        out.wrapped(f"{shares} of the differences between trials.", "What mattered: ")
    elif counts["complete"] > 1:
        out.wrapped("too few trials, or scores too much alike, to tell.", "What mattered: ")
