"""CST501 and CST502: a generator that makes few things, or gets no gradient from its judge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["collapse", "collapsed_modes", "silenced_generator"]

LEAST_ROWS = 48
MOST_ROWS = 512
NEIGHBOURS = 5
PARTS = 3  # of a training, the last of which is judged
LEAST_STEPS = 200  # before, a generator makes the same blur whatever it is given


def collapsed_modes(case: Case) -> Iterator[Finding]:
    """Samples that the data lie around, while much of the data has no sample near."""
    parts: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for made, rows in case.record.shown:
        parts[made].append(rows)
    if case.steps < LEAST_STEPS or not all(parts.values()):
        return
    width = {rows.shape[1] for _, rows in case.record.shown}
    if len(width) == 1:
        yield from collapse(np.concatenate(parts[False]), np.concatenate(parts[True]))


def collapse(real: np.ndarray, made: np.ndarray) -> Iterator[Finding]:
    """Compare samples with data.

    Parameters
    ----------
    real, made
        Rows of numbers, (n, D) and (m, D).

    Notes
    -----
    Coverage and density of Naeem et al., 2020: the share of the rows that have a sample within the
    distance of their fifth neighbour, and the share of the samples that lie within that of a row.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(400, 2))
    >>> rows[:, 0] += 5 * (np.arange(400) % 4)
    >>> [found.code for found in collapse(rows, rows[::4])], list(collapse(rows, rows + 0.01))
    (['CST501'], [])
    """
    real, made = _some(real), _some(made)
    if min(len(real), len(made)) < LEAST_ROWS:
        return
    among = np.sort(_distances(real, real), axis=1)
    radius, apart = among[:, NEIGHBOURS], float(among.mean())
    near = _distances(real, made) <= radius[:, None]
    covered, placed = float(near.any(axis=1).mean()), float(near.any(axis=0).mean())
    alike = float(_distances(made, made).mean()) / max(apart, 1e-12)
    few = covered < limit("samples.covered") and placed > limit("samples.placed")
    if few or alike < limit("samples.alike"):
        yield _collapsed(covered, placed, alike, few)


def _collapsed(covered: float, placed: float, alike: float, few: bool) -> Finding:
    what = (
        f"{number(100 * placed, 2)} % of the samples look like data, but only "
        f"{number(100 * covered, 2)} % of the data have a sample nearby"
        if few
        else f"Samples differ from each other {number(alike, 2)} times as much as data do"
    )
    return finding(
        "CST501",
        "warning",
        0.85 if few else 0.75,
        f"{what}: the generator makes the same few things again and again.",
        "Use a Wasserstein loss with gradient penalty, or show the discriminator several samples "
        "at once; lower the generator's rate.",
        Evidence("share of the data near a sample", covered, limit("samples.covered"), False)
        if few
        else Evidence(
            "distance of samples over that of data", alike, limit("samples.alike"), False
        ),
    )


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the distance of each row from each other one, (n, m)."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _some(rows: np.ndarray) -> np.ndarray:
    """Return some distinct rows, evenly taken."""
    whole = rows[np.isfinite(rows).all(axis=1)].astype(float)
    return whole[:: max(1, len(whole) // MOST_ROWS)][:MOST_ROWS]


def silenced_generator(case: Case) -> Iterator[Finding]:
    """A generator whose gradient fades to nothing while another network judges what it makes."""
    norms = case.totals[np.isfinite(case.totals)]
    if not case.record.final.get("judged") or case.broken or len(norms) < 2 * PARTS:
        return
    strong = float(np.quantile(norms, limit("case.last_quarter")))
    late = float(np.median(norms[-(len(norms) // PARTS) :]))
    bar = limit("samples.silenced")
    if strong > 0 and late < bar * strong and case.steps >= LEAST_STEPS:
        yield finding(
            "CST502",
            "error",
            0.88,
            f"The generator's gradient fell to {number(late / strong, 2)} of what it was: its "
            "judge is sure of every sample, and passes no gradient on.",
            "Let the generator maximise log D(G(z)) rather than minimise log(1 - D(G(z))); take "
            "fewer steps of the discriminator, or a lower rate.",
            Evidence("last gradient of the generator over a strong one", late / strong, bar, False),
        )
