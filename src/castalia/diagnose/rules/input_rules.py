"""CST201, CST202 and CST203: inputs and targets on awkward scales, and columns without content."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.case_objective import REGRESSIONS
from castalia.diagnose.rules.distinct_rows import distinct_values
from castalia.diagnose.thresholds import limit
from castalia.utils.text import agreeing, number

__all__ = ["degenerate", "inputs_unscaled", "targets_unscaled"]

LEAST_ROWS = 16


def _columns(case: Case) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean and spread of each column of finite numbers."""
    x = case.inputs
    if case.judges:  # what a network made is no data
        x = np.concatenate([rows for made, rows in case.record.shown if not made])
    if x is None or len(x) < LEAST_ROWS or x.dtype.kind != "f":
        return None
    finite = np.isfinite(x)
    if finite.all():
        return x.mean(axis=0, dtype=float), x.std(axis=0, dtype=float)
    x = np.where(finite, x, np.nan).astype(float)
    with warnings.catch_warnings():  # a column without any number has neither
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(x, axis=0), np.nanstd(x, axis=0)


def inputs_unscaled(case: Case) -> Iterator[Finding]:
    """Columns far from unit size, or far apart from one another."""
    found = _columns(case)
    if found is None or case.record.data_normalised:
        return
    mean, std = found
    size = np.sqrt(mean**2 + std**2)
    size = size[np.isfinite(size)]
    varying = std[np.isfinite(std) & (std > limit("rounding.constant"))]
    if not len(varying):
        return
    largest, apart = float(size.max()), float(varying.max() / np.median(varying))
    column = int(np.nanargmax(np.sqrt(mean**2 + std**2)))
    where = f"column {column}" if case.tabular else None
    evidence = None
    if largest > limit("inputs.large"):
        evidence = Evidence("largest size of a column", largest, limit("inputs.large"))
    elif largest < limit("inputs.small"):
        evidence = Evidence("largest size of a column", largest, limit("inputs.small"), above=False)
    elif apart > limit("inputs.apart") and largest > 5 and case.tabular:
        evidence = Evidence("largest over median spread of columns", apart, limit("inputs.apart"))
    if evidence is None:
        return
    far = largest > 5 * limit("inputs.large") or largest < limit("inputs.far") * limit(
        "inputs.small"
    )
    yield finding(
        "CST201",
        "info" if case.well else "warning",
        0.92 if far and case.poor else 0.85 if far or case.poor else 0.75,
        f"Inputs are not scaled: columns have sizes of {number(float(np.median(size)), 2)} in the "
        f"middle and {number(largest, 2)} at most.",
        "Standardise each column with the mean and spread of the training rows (pixels: divide by "
        f"255{'' if evidence.above else ' once only'}).",
        evidence,
        where=where,
    )


def targets_unscaled(case: Case) -> Iterator[Finding]:
    """Regression targets far from unit size."""
    y = case.targets
    if y is None or case.head.loss not in REGRESSIONS or case.adversarial or len(y) < LEAST_ROWS:
        return
    if case.reckons:
        return  # what an agent reckons with follows from its own answers
    flat = y.reshape(len(y), -1).astype(float)
    flat = flat[np.isfinite(flat).all(axis=1)]
    if not len(flat):
        return
    size, spread = float(np.sqrt((flat**2).mean())), float(flat.std(axis=0).max())
    far_off = size > 10 * max(spread, limit("rounding.zero")) and size > 3
    evidence = None
    if size > limit("targets.large") or far_off:
        evidence = Evidence(
            "size of the targets", size, limit("targets.large") if not far_off else 10 * spread
        )
    elif spread < limit("targets.small") and spread > 0:
        evidence = Evidence("spread of the targets", spread, limit("targets.small"), above=False)
    if evidence is None:
        return
    middle = float(flat.mean())
    mean = middle if abs(middle) > limit("rounding.equal") * size else 0.0
    severe = size > 100 or far_off or spread < limit("targets.far") * limit("targets.small")
    yield finding(
        "CST202",
        "info" if case.well or _fell(case) else "warning",
        0.9 if severe else 0.8,
        f"Targets are not scaled: mean {number(mean, 3)}, spread {number(spread, 3)}.",
        "Standardise the targets with the training rows' mean and spread, and undo it after.",
        evidence,
    )


def _fell(case: Case) -> bool:
    """Whether the loss fell to next to nothing all the same."""
    return case.level(0.8, 1.0) < limit("targets.fell") * case.level(0.0, 0.1)


def degenerate(case: Case) -> Iterator[Finding]:
    """Constant, missing, identifier-like or repeated columns."""
    x, rows, found = case.inputs, case.distinct_inputs, _columns(case)
    if x is None or rows is None or found is None:
        return
    if not case.tabular or x.shape[1] < 2 or len(x) < 40:
        return
    mean, std = found
    missing = np.flatnonzero(np.isnan(x).any(axis=0))
    least = limit("rounding.constant") * np.maximum(np.abs(mean), limit("rounding.zero"))
    constant = np.flatnonzero((std <= least) | np.isnan(std))
    constant = np.asarray([c for c in constant if c not in missing or np.isnan(mean[c])])
    if _one_of_many(x):
        constant = constant[:0]  # a state or a category that was not met
    to_be_made = case.adversarial or case.copies  # columns that are the answer cannot be dropped
    serial = np.asarray([j for j in _serial(rows) if not _informative(case, j)], dtype=int)
    twins = _twins(x, std)
    if len(missing):
        share = float(np.isnan(x).mean(axis=0).max())
        yield _column(
            missing, "hold{s} missing values", "Impute or drop {them}.", share, "error", 0.9
        )
    elif len(serial):
        yield _column(serial, "number{s} the rows", "Drop {them}.", len(serial), "warning", 0.85)
    elif (
        len(constant)
        and not case.pixels
        and not (x.shape[1] >= 60 and len(constant) < limit("columns.constant_share") * x.shape[1])
        and not (x.shape[1] >= 60 and len(constant) <= limit("columns.unmet") * _unmet(rows))
    ):
        severity = "info" if to_be_made else "warning"
        sure = 0.7 + 0.2 * (len(constant) / x.shape[1] > limit("columns.many"))
        yield _column(constant, "never change{s}", "Drop {them}.", len(constant), severity, sure)
    elif len(twins) and not case.pixels and not (x.shape[1] >= 60 and len(twins) < 4):
        severity = "info" if to_be_made else "warning"
        yield _column(
            twins, "repeat{s} other columns", "Keep one of each.", len(twins), severity, 0.75
        )
    elif len(constant):
        yield _column(
            constant,
            "never change{s}",
            "Nothing, if {they} {are} the border of an image or words that are not met.",
            len(constant),
            "info",
            0.5,
        )


def _one_of_many(x: np.ndarray) -> bool:
    """Whether each row has a one in one column and zeros in the others."""
    return bool(np.isin(x, (0, 1)).all() and (x.sum(axis=1) == 1).all())


def _unmet(rows: np.ndarray) -> float:
    """How many columns that never change here do so in rows that were not kept, as rare words.

    At least as many as those that change in one row, squared, over twice those that do in two
    (Chao 1984).
    """
    changed = (rows != np.median(rows, axis=0)).sum(axis=0)
    once, twice = (int((changed == n).sum()) for n in (1, 2))
    return once**2 / max(2 * twice, 1)


def _column(
    which: np.ndarray, words: str, cure: str, value: float, severity: str, sure: float
) -> Finding:
    names = ", ".join(str(int(c)) for c in which[:5])
    more, one = f" and {len(which) - 5} more" if len(which) > 5 else "", len(which) == 1
    return finding(
        "CST203",
        severity,
        sure,
        f"Column{'' if one else 's'} {names}{more} of the inputs {agreeing(len(which), words)}.",
        agreeing(len(which), cure),
        Evidence("share missing" if "missing" in words else "columns concerned", value, 0.0),
        where=f"column {int(which[0])}",
    )


def _serial(rows: np.ndarray) -> np.ndarray:
    """Columns of whole numbers, all different, over a wide even range: identifiers."""
    if len(rows) < 40:
        return np.zeros(0, int)
    found = []
    ordered, first = distinct_values(rows)
    many = first.sum(axis=0) >= limit("columns.serial") * len(rows)
    for j in np.flatnonzero(many & np.isfinite(rows).all(axis=0)):
        values, distinct = rows[:, j], ordered[first[:, j], j]
        gaps = np.diff(distinct)
        whole = (
            np.allclose(values, np.round(values)) and values.max() - values.min() >= len(values) - 1
        )
        # Evenly spread like the numbers 1 … n, also after scaling: steps are multiples of one step.
        step = np.median(gaps[gaps > 0]) if len(gaps) else 0
        even = whole and gaps.max() < 60 * max(float(np.mean(gaps)), 1.0)
        uniform = _is_uniform(distinct)
        if (even and uniform) or (step > 0 and uniform and _on_grid(distinct)):
            found.append(j)
    return np.asarray(found, dtype=int)


def _informative(case: Case, column: int) -> bool:
    """Whether a column goes along with the target, which an identifier does not."""
    if case.pairs is None:
        return False
    x, y = case.pairs[0][:, column].astype(float), case.pairs[1].astype(float)
    zero = limit("rounding.zero")
    if y.std() < zero or x.std() < zero or not np.isfinite(y).all():
        return False
    bins = np.digitize(x, np.quantile(x, np.linspace(0, 1, 9)[1:-1]))
    means = np.asarray([y[bins == b].mean() for b in np.unique(bins)])
    return bool(means.var() > limit("columns.informative") * y.var())


def _is_uniform(distinct: np.ndarray) -> bool:
    """Whether sorted values lie near a straight line."""
    place = np.linspace(0, 1, len(distinct))
    scaled = (distinct - distinct[0]) / max(distinct[-1] - distinct[0], 1e-12)
    return bool(np.abs(place - scaled).max() < limit("columns.uniform"))


def _on_grid(distinct: np.ndarray) -> bool:
    """Whether the gaps are whole multiples of the smallest one."""
    gaps = np.diff(distinct)
    smallest = gaps.min()
    if smallest <= 0:
        return False
    multiples = gaps / smallest
    off = np.abs(multiples - np.round(multiples)).max()
    return bool(off < limit("columns.grid") and multiples.max() < 60)


def _twins(x: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Columns that equal an earlier one up to scale and offset."""
    if x.shape[1] > 256 or not np.isfinite(x).all():
        return np.zeros(0, int)
    varying = np.flatnonzero(std > limit("rounding.constant"))
    z = (x[:, varying] - x[:, varying].mean(axis=0)) / std[varying]
    correlation = np.abs(z.T @ z) / len(z)
    upper = np.triu(correlation, 1) > 1 - limit("rounding.equal")
    return varying[np.flatnonzero(upper.any(axis=0))]
