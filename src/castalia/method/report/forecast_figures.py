"""The figures of a forecast: the last one with its interval, and where forecasts err."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup

from castalia.evaluate import to_svg
from castalia.method.report.guarded_figure import Drawing, guarded
from castalia.utils.figure_style import COLOURS, INK, caption, label, start

__all__ = ["forecast_drawings"]


def forecast_drawings(found: Mapping[str, Any]) -> list[Drawing]:
    """Draw the last forecast, errors by the step ahead, and errors over time."""
    return [
        guarded("The last forecast", lambda: _last(found)),
        guarded("Errors by step ahead", lambda: _by_step(found)),
        guarded("Errors over time", lambda: _over_time(found)),
    ]


def _last(found: Mapping[str, Any]) -> tuple[Markup, str]:
    past, truth = np.array(found["past"]), np.array(found["truth"])
    ax, figure = start(None, (7, 3.2))
    before, after = np.arange(1 - len(past), 1), np.arange(1, len(truth) + 1)
    ax.plot(before, past, color=INK, label="known")
    ax.plot(np.r_[0, after], np.r_[past[-1], truth], color=INK, linestyle=":", label="what came")
    share = f"{100 * found['coverage']:.0f} %"
    ax.fill_between(
        after, found["low"], found["high"], color=COLOURS[0], alpha=0.2, linewidth=0, label=share
    )
    ax.plot(after, found["forecast"], color=COLOURS[0], label="forecast")
    ax.set_xlabel("steps from when the forecast was made")
    ax.set_ylabel(label(found["target"]))
    caption(ax, 4)
    inside = np.mean((truth >= found["low"]) & (truth <= found["high"]))
    words = (
        f"The band covers {share} of the test errors at each step; {100 * inside:.0f} % of these "
        "steps lie in it."
    )
    alt = f"Forecast of {found['target']} over {len(truth)} steps, with what came. {words}"
    return Markup(to_svg(figure, alt, "forecast")), words


def _by_step(found: Mapping[str, Any]) -> tuple[Markup, str]:
    errors = np.array(found["by_step"])
    ax, figure = start(None, (5, 2.8))
    ax.plot(np.arange(1, len(errors) + 1), errors, color=COLOURS[0], marker="o", markersize=3)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("steps ahead")
    ax.set_ylabel("MASE")
    words = f"From {errors[0]:.2f} one step ahead to {errors[-1]:.2f} at {len(errors)}."
    return Markup(to_svg(figure, f"MASE by the step ahead. {words}", "by-step")), words


def _over_time(found: Mapping[str, Any]) -> tuple[Markup, str]:
    errors, when = np.array(found["over_time"]), found["when"]
    ax, figure = start(None, (7, 2.8))
    ax.bar(np.arange(len(errors)), errors, color=COLOURS[0], width=0.9)
    places = np.unique(np.linspace(0, len(errors) - 1, 4).astype(int))
    ax.set_xticks(places, [label(when[i], 20) for i in places])
    ax.set_xlabel("when the forecast was made")
    ax.set_ylabel("MASE")
    worst = int(errors.argmax())
    words = f"Forecasts err most around {when[worst]} (MASE {errors[worst]:.2f})."
    return Markup(to_svg(figure, f"MASE over the tested time. {words}", "over-time")), words
