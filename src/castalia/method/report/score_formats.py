"""How numbers and values read in the report."""

from __future__ import annotations

import math
from typing import Any

from castalia.evaluate import METRICS
from castalia.utils.text import number, shorten

__all__ = ["duration", "finite", "metric_label", "score", "score_range", "value"]

_MINUS = "\N{MINUS SIGN}"
_DASH = "\N{EN DASH}"
_SPACE = "\N{NO-BREAK SPACE}"
NOTHING = "\N{EN DASH}"


def finite(found: Any) -> bool:
    """Say whether a value is an ordinary number.

    Examples
    --------
    >>> finite(1.5), finite(float("nan")), finite(None)
    (True, False, False)
    """
    return isinstance(found, int | float) and math.isfinite(found)


def score(found: Any, metric: str, sign: bool = False) -> str:
    """Format a score: three decimals for shares, four digits for quantities.

    Examples
    --------
    >>> score(0.98765, "accuracy"), score(312.3456, "rmse"), score(None, "r2")
    ('0.988', '312.3', '–')
    >>> score(-0.0001, "r2"), score(0.25, "r2", sign=True)
    ('0.000', '+0.250')
    """
    if not finite(found):
        return NOTHING
    known = METRICS.get(metric)
    decimals = 3 if known and known.fraction and abs(found) < 100 else known and known.decimals
    text = _quantity(found) if decimals is None else f"{found:.{decimals}f}"
    if sign and found > 0:
        text = f"+{text}"
    if not text.strip("-0."):
        text = text.removeprefix("-")  # what rounds to zero has no sign
    return text.replace("-", _MINUS)


def _quantity(found: float) -> str:
    """Keep trailing zeros, so that the digits of a column line up."""
    return f"{found:,.0f}" if 1e4 <= abs(found) < 1e12 else f"{found:#.4g}".rstrip(".")


def score_range(bounds: Any, metric: str) -> str:
    """Format an interval, or nothing when it is unknown.

    Examples
    --------
    >>> score_range([0.9, 0.95], "accuracy").split(), score_range(None, "accuracy")
    (['0.900', '–', '0.950'], '')
    """
    if not bounds or not all(finite(b) for b in bounds):
        return ""
    return f"{score(bounds[0], metric)}{_SPACE}{_DASH}{_SPACE}{score(bounds[1], metric)}"


def metric_label(metric: str) -> str:
    """Name a metric for people.

    Examples
    --------
    >>> metric_label("roc_auc"), metric_label("my_score")
    ('ROC AUC', 'my score')
    """
    return METRICS[metric].label if metric in METRICS else metric.replace("_", " ")


def duration(seconds: Any) -> str:
    """Format a time span in the unit that suits it.

    Examples
    --------
    >>> duration(0.0312), duration(4.26), duration(125), duration(7260)
    ('31 ms', '4.3 s', '2 min 5 s', '2 h 1 min')
    """
    if not finite(seconds):
        return NOTHING
    if seconds < 0.0005:
        return "<1 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def value(found: Any, width: int = 120) -> str:
    """Format any plain value, shortened in the middle when long.

    Examples
    --------
    >>> value(0.123456789), value(1234567), value(None), value([1, 2]), value("")
    ('0.1235', '1,234,567', '–', '1, 2', '–')
    """
    if found is None or found == "" or found == [] or found == {}:
        return NOTHING
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, float):
        return _float(found)
    if isinstance(found, int):
        # Years and codes read badly with separators.
        return (f"{found:,}" if abs(found) >= 10000 else str(found)).replace("-", _MINUS)
    if isinstance(found, dict):
        return shorten(", ".join(f"{k}: {value(v)}" for k, v in found.items()), width)
    if isinstance(found, list):
        return shorten(", ".join(value(v, 40) for v in found[:50]), width)
    return shorten(found, width)


def _float(found: float) -> str:
    if math.isnan(found):
        return "not a number"
    if found.is_integer() and abs(found) < 1e6:
        return value(int(found))
    return number(found).replace("-", _MINUS).replace("inf", "∞")
