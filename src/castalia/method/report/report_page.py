"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from castalia import __version__
from castalia.method.report import report_figures as figures
from castalia.method.report import report_tables as views
from castalia.method.report.column_importance import importance_figures, importance_rows
from castalia.method.report.graph_figures import graph_drawings
from castalia.method.report.run_report import RunReport
from castalia.method.report.sample_figures import sample_drawings
from castalia.method.report.score_formats import duration, metric_label, value
from castalia.utils.atomic_files import atomic_write
from castalia.utils.text import plural

__all__ = ["render", "write"]


def render(report: RunReport) -> str:
    """Return the report as a page: no scripts, no network, light and dark.

    Examples
    --------
    >>> page = render(RunReport("Penguins", "classification", "species"))
    >>> page.startswith("<!doctype html>") and "Penguins" in page
    True
    """
    return _environment().get_template("page.html.jinja").render(_context(report))


def write(report: RunReport, path: str | os.PathLike[str]) -> Path:
    """Render the report into a file; an older one stays until the new one is whole."""
    return atomic_write(path, render(report))


def _resource(name: str) -> str:
    return files("castalia.method.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,  # names and values come from the user's data
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"value": value, "duration": duration, "label": metric_label}
    return environment


def _context(report: RunReport) -> dict[str, Any]:
    return {
        "report": report,
        "version": __version__,
        "style": Markup(_resource("style.css")),
        "facts": _facts(report),
        "verdict": views.verdict(report),
        "tiles": views.tiles(report),
        "comparison": figures.comparison(report),
        "scores": views.score_table(report),
        "training": views.training_rows(report),
        "curves": figures.curves(report),
        "diagnostics": figures.diagnostics(report),
        "feature_maps": figures.feature_maps(report),
        "graph": figures.learnt_graph(report),
        "network": graph_drawings(report.network),
        "importance": importance_figures(report),
        "important": importance_rows(report),
        "examples": views.example_rows(report),
        "panels": views.panels(report),
        "distributions": sample_drawings(report.samples),
        "drawn": views.drawn_images(report),
        "gallery": views.gallery(report),
        "columns": views.column_rows(report),
        "balance": views.balance_rows(report),
        "split": views.split_rows(report),
        "mistakes": views.mistake_table(report),
        "settings": views.pairs(report.settings),
        "environment": views.pairs(report.environment),
    }


def _facts(report: RunReport) -> list[str]:
    """Return the few words under the title."""
    found = [report.task.capitalize()]
    if report.data.get("rows") is not None:
        found.append(plural(int(report.data["rows"]), report.unit))
    if report.data.get("columns"):
        found.append(plural(len(report.data["columns"]), "column"))
    return found
