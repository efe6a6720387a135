"""How good drawn rows are, in words, tables and figures: fidelity, and whether rows were copied."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from castalia.data.images import as_images
from castalia.diagnose import Diagnosis
from castalia.evaluate import SampleFidelity
from castalia.method.fit_report import environment_rows, findings_rows, shown_settings
from castalia.method.fit_result import MODEL
from castalia.method.images.thumbnails import thumbnail
from castalia.method.report import RunReport
from castalia.method.report.plain_values import plain
from castalia.method.synthesis.drawn_kinds import DrawnImages, DrawnRows

__all__ = ["Compared", "make_fidelity_report"]

ALIKE, APART = 0.6, 0.9  # AUC of a forest that hardly separates rows, and that does
FAR = 0.15  # distance of a column's distribution that is worth a word
EXAMPLES = 8  # rows and images that are shown
BINS = 24
COLUMNS = 12  # whose distributions are drawn
WORDS = 8  # commonest categories that are drawn


@dataclass(frozen=True)
class Compared:
    """How near to training rows are: drawn rows, real rows held out, rows of shuffled columns."""

    drawn: SampleFidelity
    real: SampleFidelity
    shuffled: SampleFidelity


def make_fidelity_report(
    rows: DrawnRows, model: Any, drawn: Any, found: Compared, facts: dict[str, Any]
) -> tuple[RunReport, dict[str, Any]]:
    """Return everything the page shows, and the outcome in plain values."""
    text = facts.get("diagnosis")
    sizes = {"train": facts["train"], "validation": facts["validation"], "held out": len(rows.held)}
    report = RunReport(
        title=rows.title,
        task="generation",
        target="",
        unit=rows.unit,
        data={**rows.described(), "split": sizes, "notes": rows.notes},
        verdict=_verdict(rows, found),
        advice=_advice(rows, found.drawn),
        history=facts["history"],
        recommended=type(model).__name__,
        settings=shown_settings(model),
        environment=environment_rows(facts),
        reproduce=rows.plan.command(),
        findings=[] if text is None else findings_rows(Diagnosis.from_json(text)),
        panels=[_score_panel(rows, found), *_row_panels(rows, drawn, found.drawn)],
        samples=_figures(rows, drawn, found.drawn),
    )
    return report, _summary(rows, model, report, found)


def _summary(rows: DrawnRows, model: Any, report: RunReport, found: Compared) -> dict[str, Any]:
    return {
        "task": "generation",
        "unit": rows.unit,
        "target": None,
        "rows": {"all": len(rows.X) + len(rows.held), "tested": len(rows.held)},
        "recommended": MODEL,
        "models": {MODEL: type(model).__name__},
        "verdict": report.verdict,
        "copied": found.drawn.copied,
        "fidelity": {name: asdict(each)["scores"] for name, each in vars(found).items()},
        "marginals": found.drawn.marginals,
        "advice": report.advice,
        "notes": rows.notes,
        "plan": None,
    }


def _verdict(rows: DrawnRows, found: Compared) -> str:
    """Say how well drawn rows pass for real ones, and whether they are copies."""
    auc, apart = (each.scores["detection_auc"] for each in (found.drawn, found.shuffled))
    many = f"{rows.unit}s"
    how = "hardly separates" if auc < ALIKE else "separates" if auc > APART else "partly separates"
    parts = "pixels" if rows.unit == "image" else "columns"
    return (
        f"A random forest {how} drawn {many} from real ones: AUC {auc:.2f}, where 0.5 is best and "
        f"{many} of {parts} drawn each by itself have {apart:.2f}. {_privacy(rows, found.drawn)}"
    )


def _privacy(rows: DrawnRows, drawn: SampleFidelity) -> str:
    many, s = f"{rows.unit}s", drawn.scores
    figures = (
        f"{100 * s['copies']:.1f} % of the drawn {many} are training {many} (of real {many} held "
        f"out {100 * s['real_copies']:.1f} %), and they lie {s['nearest']:.2f} times as far from "
        f"the nearest training {rows.unit} as real ones do."
    )
    if drawn.copied:
        return f"Training {many} seem to be copied: {figures} Do not pass these {many} on."
    return f"There is no sign of copied {many}: {figures}"


def _advice(rows: DrawnRows, drawn: SampleFidelity) -> list[str]:
    found = []
    if drawn.copied:
        found.append(
            "Train for fewer epochs (--set epochs=N) or with fewer weights, then look again."
        )
    if drawn.scores["detection_auc"] > APART and not drawn.copied:
        tried = rows.plan.model or rows.usual[0]
        other = "--model vae" if tried == "DiffusionModel" else "another --model"
        found.append(f"More epochs (--set epochs=N), a wider network or {other} may come nearer.")
    far = {name: gap for name, gap in drawn.marginals.items() if gap > FAR}
    if far and rows.unit == "row":
        worst = max(far, key=lambda name: far[name])
        found.append(f"Column `{worst}` is drawn worst: its distribution is {far[worst]:.2f} away.")
    found.append(
        "These figures find copies; they are no proof of privacy. Have somebody who knows the data "
        f"look at the {rows.unit}s before they are passed on."
    )
    return found


def _score_panel(rows: DrawnRows, found: Compared) -> dict[str, Any]:
    """Return the table of scores: drawn rows between real and shuffled ones."""
    parts = "Pixels" if rows.unit == "image" else "Columns"
    names = {
        f"Drawn {rows.unit}s": found.drawn,
        f"Real {rows.unit}s, held out": found.real,
        f"{parts} drawn each by itself": found.shuffled,
    }
    return {
        "title": "How near they are to real ones",
        "words": (
            "Each line is compared with the training rows. AUC: of a forest that separates them, "
            "0.5 is best. Marginals: mean distance of the columns' distributions. Pairs: mean "
            "difference of two columns' correlations. Precision: share that lies among real ones; "
            "recall: share of real ones among them. Copies: share that equals a training row. "
            "Nearest: distance to the nearest training row, over that of real ones."
        ),
        "heads": ["", "AUC", "marginals", "pairs", "precision", "recall", "copies", "nearest"],
        "rows": [[name, *_cells(each)] for name, each in names.items()],
    }


def _cells(found: SampleFidelity) -> list[float]:
    s = found.scores
    gaps = float(np.mean(list(found.marginals.values())))
    values = (s["detection_auc"], gaps, s["pairwise"], s["precision"], s["recall"], s["copies"])
    return [round(value, 3) for value in (*values, s["nearest"])]


def _row_panels(rows: DrawnRows, drawn: Any, found: SampleFidelity) -> list[dict[str, Any]]:
    """Return the columns by their distance, and some drawn rows."""
    if not isinstance(drawn, pa.Table):
        return []
    gaps = sorted(found.marginals.items(), key=lambda pair: -pair[1])
    some = drawn.slice(0, EXAMPLES).to_pylist()
    return [
        {
            "title": "Columns",
            "words": "Distance between the distributions of drawn and real values, 0 to 1.",
            "heads": ["column", "distance"],
            "rows": [[name, round(gap, 3)] for name, gap in gaps[:30]],
        },
        {
            "title": f"The first {len(some)} drawn rows",
            "words": "All of them are in samples.csv of the run's folder.",
            "heads": drawn.column_names,
            "rows": [[plain(value) for value in row.values()] for row in some],
        },
    ]


def _figures(rows: DrawnRows, drawn: Any, found: SampleFidelity) -> dict[str, Any]:
    """Return what is drawn: distributions of columns, or images beside the nearest real ones."""
    if isinstance(rows, DrawnImages):
        return _nearest(rows.X, drawn[: 2 * EXAMPLES])
    real = rows.X.table()
    return {"columns": [_shape(name, real, drawn, found) for name in drawn.column_names[:COLUMNS]]}


def _shape(name: str, real: pa.Table, drawn: pa.Table, found: SampleFidelity) -> dict[str, Any]:
    """Return the distribution of a column, real and drawn: of numbers by bins, of words."""
    both = [part[name].drop_null() for part in (real, drawn)]
    gap = {"name": name, "distance": found.marginals.get(name)}
    if pa.types.is_string(both[0].type) or pa.types.is_boolean(both[0].type):
        words = [np.array([str(v) for v in part.to_pylist()]) for part in both]
        kinds, counts = np.unique(words[0], return_counts=True)
        top = kinds[np.argsort(-counts, kind="stable")][:WORDS]
        shares = [[float(np.mean(part == word)) for word in top] for part in words]
        return {**gap, "words": top.tolist(), "real": shares[0], "drawn": shares[1]}
    numbers = [np.asarray(part.cast(_plain_type(part.type)), dtype=float) for part in both]
    edges = np.histogram_bin_edges(np.concatenate(numbers), BINS)
    shares = [(np.histogram(part, edges)[0] / max(1, len(part))).tolist() for part in numbers]
    return {**gap, "edges": edges.tolist(), "real": shares[0], "drawn": shares[1]}


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_temporal(kind) else pa.float64()


def _nearest(real: np.ndarray, drawn: np.ndarray) -> dict[str, Any]:
    """Return drawn images and, for each, the training image nearest to it."""
    flat = real.reshape(len(real), -1).astype(np.float32)
    places = [
        int(np.square(flat - image.reshape(-1)).sum(axis=1).argmin())
        for image in drawn.astype(np.float32)
    ]
    shown = [as_images(part) for part in (drawn, real[places])]
    first, second = ([thumbnail(part, i) for i in range(len(drawn))] for part in shown)
    return {"drawn": first, "nearest": second}
