"""``castalia tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from castalia.cli.output import AsJson, Output

if TYPE_CHECKING:
    from castalia.method import TunePlan, TuneResult

__all__ = ["tune"]


def tune(
    data: Annotated[
        str,
        typer.Argument(help="Table, or images, as `castalia fit` takes them."),
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column to predict; not for folders of pictures."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="mlp, ridge, resnet, …; `castalia models` lists them [what suits]."),
    ] = None,
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
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting that stays fixed: epochs=50 or optimizer=sgd."),
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds of the training rows that judge.")] = 3,
    task: Annotated[
        str | None, typer.Option(help="classification or regression; told by the target.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="What decides: accuracy, balanced_accuracy, r2, rmse or mae."),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="Run folder [castalia-runs/<data>-<target>-tuned].")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Trainings of the best settings.")] = 1,
    test: Annotated[float, typer.Option(help="Share of rows in the test part.")] = 0.2,
    group: Annotated[
        str | None, typer.Option(help="Column whose values stay on one side of the split.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column to split by: the latest rows are tested.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    seed: Annotated[int, typer.Option(help="Seed of splits, proposals and trainings.")] = 0,
    header: Annotated[bool, typer.Option(help="Whether a text file starts with names.")] = True,
    boosting_rounds: Annotated[int, typer.Option(help="Trees of the boosting baseline.")] = 100,
    preflight_seconds: Annotated[
        float, typer.Option(help="Time for checks before the last training; 0 for none.")
    ] = 10.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search the settings of a model, then fit the best of them as `fit` does.

    Settings are judged on the training rows only. Run the same command again after an interruption,
    or with more --trials, and it goes on where it stopped.
    """
    from dataclasses import replace

    from castalia.method import FitPlan, TunePlan
    from castalia.method.model_settings import parse_settings
    from castalia.method.settings_search import parse_space

    fit = FitPlan(
        data=data,
        target=target,
        model=model,
        settings=parse_settings(settings or []),
        task=task,
        metric=metric,
        run=run,
        seeds=seeds,
        test=test,
        group=group,
        time=time,
        device=device,
        seed=seed,
        header=header,
        boosting_rounds=boosting_rounds,
        preflight_seconds=preflight_seconds,
        verbose=not quiet,
    )
    fit = fit if run is not None else replace(fit, run=f"{fit.folder}-tuned")
    space = parse_space(tried or [])
    plan = TunePlan(
        fit=fit, search=search, trials=trials, seconds=seconds, folds=folds, space=space
    )
    _tune_and_tell(plan, quiet, as_json)


def _tune_and_tell(plan: TunePlan, quiet: bool, as_json: bool) -> None:
    from castalia.cli.error_exit import Interrupted
    from castalia.cli.fit_output import Teller, tell_result
    from castalia.method import tune as carry_out

    out = Output(as_json)
    teller = Teller(out, trials=not quiet)
    try:
        result = carry_out(plan, teller)
    except KeyboardInterrupt:
        where = f" (run folder {teller.folder})" if teller.folder else ""
        raise Interrupted(f"Interrupted; run the same command to continue{where}.") from None
    _tell_search(out, result)
    tell_result(out, result.fit)
    fitted = result.fit
    out.data(
        {
            "run": fitted.folder,
            "model": fitted.model,
            "report": fitted.page,
            "best": result.best,
            "best_score": result.score,
            "trials": result.trials,
            "counts": result.counts,
            "importances": result.importances,
            **fitted.summary,
        }
    )


def _tell_search(out: Output, result: TuneResult) -> None:
    """Write the best trials, and which setting mattered."""
    from castalia.method.report.score_formats import metric_label, score
    from castalia.method.settings_search import settings_words, short_name
    from castalia.utils.text import plural

    counts = result.counts
    ends = [f"{counts['pruned']:,} given up early"] if counts["pruned"] else []
    ends += [f"{counts['fail']:,} failed"] if counts["fail"] else []
    out.say()
    told = plural(sum(counts.values()), "trial") + "".join(f", {end}" for end in ends)
    out.say(
        f"Best settings ({told}; {metric_label(result.metric)} on held-out training rows)", "head"
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
