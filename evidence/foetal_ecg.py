"""The mother's heartbeat cancelled in a real recording of mother and child (DaISy, KU Leuven).

Ten seconds at 250 Hz: five abdominal leads, where both hearts are seen, and three thoracic ones,
where only the mother's is. The thoracic leads are the reference; each abdominal lead is cleaned.

Suppression: power of the lead within 60 ms of the mother's beats (found on the first thoracic lead)
over that of the residual in the same places. The child's own power there counts as if it were the
mother's, so the true suppression is larger. Beats of the child: peaks of the residual, at least
280 ms apart. Height kept: peak to trough within 32 ms of those of the child's beats that are more
than 160 ms from the mother's, after over before, the median. Settings are the same for all leads.

Data: De Moor (ed.), DaISy: Database for the Identification of Systems, Cutaneous potential
recordings of a pregnant woman. 2000, De Lathauwer, De Moor, Vandewalle, IEEE TBME 47, separated
the same recording by independent components, without a number to compare with.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.signal import find_peaks

from castalia.data import read
from castalia.models.linear import AdaptiveFilter
from evidence.rows import folder, print_table

HERTZ = 250
SETTINGS = {"taps": 32, "delay": 16, "lr": 0.1, "floor": 1.0}
PASSES = 20
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "foetal-ecg.png"
SHOWN = 1  # the second abdominal lead


def run(quick: bool = False) -> None:
    """Clean every abdominal lead, with one pass over the recording and with many."""
    abdomen, thorax = load(folder() / "foetal-ecg" / "foetal_ecg.csv.gz")
    mother = beats(thorax[:, 0], apart=0.4)
    rows = []
    for lead, signal in enumerate(abdomen.T):
        once = clean(thorax, signal, passes=1)
        cleaned = clean(thorax, signal, passes=2 if quick else PASSES)
        child = beats(cleaned, apart=0.28)
        gaps = 60 * HERTZ / np.diff(child)
        rows.append(
            [
                f"abdominal {lead + 1}",
                f"{suppression(signal, once, mother):.1f} dB",
                f"{suppression(signal, cleaned, mother):.1f} dB",
                str(len(child)),
                f"{np.median(gaps):.0f} ± {np.std(gaps):.0f}",
                f"{kept(signal, cleaned, child, mother):.2f}",
            ]
        )
        if lead == SHOWN and not quick:
            draw(signal, cleaned, mother, child)
    columns = [
        "lead",
        "suppression, first pass",
        f"after {PASSES} passes",
        "beats of the child in 10 s",
        "a minute, median ± std",
        "height kept",
    ]
    print_table("Foetal electrocardiogram", columns, rows)


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The abdominal leads (n, 5) and the thoracic ones (n, 3), each less its mean."""
    data = read(path)
    leads = np.column_stack([data.column(name) for name in data.columns if name != "sample"])
    leads = leads - leads.mean(axis=0)
    return leads[:, :5], leads[:, 5:]


def clean(thorax: np.ndarray, signal: np.ndarray, passes: int) -> np.ndarray:
    """What is left of a lead in the last pass."""
    return AdaptiveFilter(**SETTINGS, epochs=passes).fit(thorax, signal).residual_


def beats(signal: np.ndarray, apart: float) -> np.ndarray:
    """Where the peaks are, on the side where they are higher."""
    upright = signal * (1 if np.quantile(signal, 0.997) > -np.quantile(signal, 0.003) else -1)
    high = 0.45 * np.quantile(upright, 0.997)
    return find_peaks(upright, height=high, distance=int(apart * HERTZ))[0]


def suppression(before: np.ndarray, after: np.ndarray, mother: np.ndarray) -> float:
    """Decibels of power lost within 60 ms of the mother's beats."""
    near = abs(np.arange(len(before))[:, None] - mother).min(axis=1) <= 0.06 * HERTZ
    return 10 * float(np.log10(np.mean(before[near] ** 2) / np.mean(after[near] ** 2)))


def kept(before: np.ndarray, after: np.ndarray, child: np.ndarray, mother: np.ndarray) -> float:
    """Height of the child's lone beats after over before, the median."""
    alone = child[abs(child[:, None] - mother).min(axis=1) > 0.16 * HERTZ]
    reach = int(0.032 * HERTZ)
    windows = [slice(max(beat - reach, 0), beat + reach + 1) for beat in alone]
    return float(np.median([np.ptp(after[here]) / np.ptp(before[here]) for here in windows]))


def draw(before: np.ndarray, after: np.ndarray, mother: np.ndarray, child: np.ndarray) -> None:
    """The lead above, what is left of it below, on one scale."""
    from matplotlib.figure import Figure

    from castalia.utils.figure_style import COLOURS, INK, dress

    figure = Figure(figsize=(10, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, sharey=True)
    seconds = np.arange(len(before)) / HERTZ
    pairs = ((upper, before, mother, "the mother's beats"), (lower, after, child, "the child's"))
    for number, (ax, signal, marks, whose) in enumerate(pairs):
        dress(ax)
        ax.plot(seconds, signal, color=COLOURS[number], linewidth=0.9)
        ax.plot(marks / HERTZ, np.full(len(marks), 1.08 * before.max()), "v", color=INK, ms=5)
        ax.set_ylabel("potential, as recorded")
        title = f"abdominal lead {SHOWN + 1}" if number == 0 else "after adaptive cancelling"
        ax.set_title(f"{title}; marks: {whose}", loc="left")
    lower.set_xlabel("seconds")
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=120, facecolor="white")
