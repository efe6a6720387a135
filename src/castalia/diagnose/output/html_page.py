"""A diagnosis as HTML: a part of a notebook, or a page that needs nothing else."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from castalia import __version__
from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_codes import SEVERITIES
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.output.svg_plots import Plot, plot
from castalia.diagnose.output.verdict_text import NOTES, verdict
from castalia.utils.text import number

__all__ = ["fragment", "page"]


def fragment(diagnosis: DiagnosisRecord) -> str:
    """Return a diagnosis as one element with its own style: no scripts, light and dark.

    Examples
    --------
    >>> from castalia.diagnose import Diagnosis
    >>> "Nothing wrong was found" in fragment(Diagnosis())
    True
    """
    return _environment().get_template("fragment.html.jinja").render(_context(diagnosis))


def page(diagnosis: DiagnosisRecord) -> str:
    """Return a diagnosis as a whole page."""
    context = {"inside": Markup(fragment(diagnosis)), "version": __version__}
    context["title"] = f"Diagnosis of {diagnosis.subject}" if diagnosis.subject else "Diagnosis"
    return _environment().get_template("page.html.jinja").render(context)


def _context(diagnosis: DiagnosisRecord) -> dict[str, Any]:
    said = verdict(diagnosis)
    return {
        "diagnosis": diagnosis,
        "verdict": said[0].upper() + said[1:],
        "tone": diagnosis.worst if diagnosis else "well",
        "plots": _plots(diagnosis),
        "notes": NOTES.removesuffix(":"),
        "style": Markup(_resource("style.css")),
    }


def _plots(diagnosis: DiagnosisRecord) -> list[Plot]:
    marked = set(_places(diagnosis.findings))
    drawn = (plot(name, series, marked) for name, series in diagnosis.curves.items())
    return [each for each in drawn if each]


def _places(findings: tuple[Finding, ...]) -> list[str]:
    """Name the layers that findings of some weight point at."""
    found = []
    for each in findings:
        if each.where and each.severity != SEVERITIES[-1]:
            found.append(each.where)
        found += _places(each.symptoms)
    return found


def _code(text: object) -> Markup:
    """Escape a text and set what stands between back-ticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _number(value: float) -> str:
    return number(value, 3)


@cache
def _resource(name: str) -> str:
    return files("castalia.diagnose.output").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,  # names of layers and columns come from the user
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": _code, "number": _number}
    return environment
