"""Tables and headline numbers, prepared for the template."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from castalia.evaluate import METRICS
from castalia.method.report.run_report import Contender, RunReport
from castalia.method.report.score_formats import (
    NOTHING,
    duration,
    finite,
    metric_label,
    score,
    score_range,
    value,
)
from castalia.utils.text import shorten

__all__ = [
    "Tile",
    "balance_rows",
    "best_baseline",
    "column_rows",
    "drawn_images",
    "example_rows",
    "gallery",
    "mistake_table",
    "pairs",
    "panels",
    "score_table",
    "split_rows",
    "tiles",
    "training_rows",
    "verdict",
]

_MOST_CLASSES = 15
_MOST_MISTAKE_COLUMNS = 12
_LONGEST = 400  # characters of a text
_IMAGE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+")


@dataclass(frozen=True)
class Tile:
    """One headline number."""

    name: str
    value: str
    details: tuple[str, ...] = ()
    tone: str = ""  # "good", "bad" or nothing


def _higher(metric: str) -> bool:
    return METRICS[metric].higher if metric in METRICS else True


def _best(contenders: list[Contender], metric: str) -> Contender | None:
    known = [c for c in contenders if finite(c.scores.get(metric))]
    if not known:
        return None
    pick = max if _higher(metric) else min
    return pick(known, key=lambda c: c.scores[metric])


def best_baseline(report: RunReport) -> Contender | None:
    """Return the baseline with the best score on the main metric."""
    return _best([c for c in report.contenders if c.role == "baseline"], report.metric)


def verdict(report: RunReport) -> str:
    """Return the verdict, or the bare comparison where nobody wrote one."""
    if report.verdict:
        return report.verdict
    model, rival, name = report.model, best_baseline(report), metric_label(report.metric)
    if model is None or not finite(model.scores.get(report.metric)):
        return ""
    reached = f"{model.name} reaches {score(model.scores[report.metric], report.metric)} ({name})"
    if rival is None:
        return f"{reached}; there is no baseline to compare it with."
    return (
        f"{reached}; the best baseline, {rival.name}, "
        f"{score(rival.scores[report.metric], report.metric)}."
    )


def tiles(report: RunReport) -> list[Tile]:
    """Return the numbers worth knowing before anything else."""
    model, rival, metric = report.model, best_baseline(report), report.metric
    found = [_score_tile(c, metric) for c in (model, rival) if c and metric in c.scores]
    if model and rival and finite(model.scores.get(metric)):
        found.append(
            _difference(model.scores[metric] - rival.scores[metric], metric, report.outcome)
        )
    if report.preflight:
        passed = sum(bool(c.get("passed")) for c in report.preflight)
        total = len(report.preflight)
        tone = "good" if passed == total else "bad"
        found.append(Tile("Preflight checks", f"{passed} of {total}", ("passed",), tone))
    if model and model.seconds is not None:
        found.append(Tile("Training took", duration(model.seconds)))
    return found


def _score_tile(contender: Contender, metric: str) -> Tile:
    who = "Model" if contender.role == "model" else "Best baseline"
    reach = score_range(contender.interval, metric)
    details = tuple(text for text in (shorten(contender.name, 40), reach) if text)
    return Tile(f"{who}: {metric_label(metric)}", score(contender.scores[metric], metric), details)


def _difference(gap: float, metric: str, outcome: str = "") -> Tile:
    if gap == 0:
        return Tile("Difference", score(0.0, metric), ("equal",))
    if outcome in ("equal", "none"):
        return Tile("Difference", score(gap, metric, sign=True), ("may be chance",))
    better = (gap > 0) == _higher(metric)
    words = ("the model is better" if better else "the baseline is better",)
    return Tile("Difference", score(gap, metric, sign=True), words, "good" if better else "bad")


def score_table(report: RunReport) -> dict[str, Any]:
    """Return heads and rows: every contender on every metric, the best of each marked."""
    names = list(dict.fromkeys(m for c in report.contenders for m in c.scores))
    names.sort(key=lambda m: m != report.metric)  # the deciding metric first
    best = {m: _best(report.contenders, m) for m in names}
    heads = [
        {"label": metric_label(m), "better": "higher" if _higher(m) else "lower"} for m in names
    ]
    rows = [
        {
            "name": c.name,
            "model": c.role == "model",
            "recommended": bool(report.recommended) and c.name == report.recommended,
            "cells": [
                {"text": score(c.scores.get(m), m), "best": _ties(c, best[m], m)} for m in names
            ],
            "interval": score_range(c.interval, report.metric),
            "seconds": duration(c.seconds),
            "note": shorten(c.note, 160),
        }
        for c in report.contenders
    ]
    return {"heads": heads, "rows": rows, "ranges": any(r["interval"] for r in rows)}


def _ties(contender: Contender, best: Contender | None, metric: str) -> bool:
    """Say whether a score is the best or reads the same."""
    if best is None or not finite(contender.scores.get(metric)):
        return False
    return score(contender.scores[metric], metric) == score(best.scores[metric], metric)


def training_rows(report: RunReport) -> list[tuple[str, str]]:
    """Return the training in a few numbers."""
    lines = [h for h in report.history if finite(h.get("loss"))]
    if not lines:
        return []
    watched = "val_loss" if any(finite(h.get("val_loss")) for h in lines) else "loss"
    best = min((h for h in lines if finite(h.get(watched))), key=lambda h: h[watched])
    rows = [("Epochs run", value(len(report.history)))]
    if "epoch" in best:
        rows.append(("Best epoch", value(best["epoch"])))
    rows.append(("Training loss there", value(best["loss"])))
    if watched == "val_loss":
        rows.append(("Validation loss there", value(best["val_loss"])))
    if finite(lines[-1].get("lr")):
        rows.append(("Last learning rate", value(lines[-1]["lr"])))
    return rows


def column_rows(report: RunReport) -> list[dict[str, str]]:
    """Return the table of columns as text."""
    total = report.data.get("rows") or 0
    return [
        {
            "name": shorten(column.get("name", ""), 40),
            "kind": value(column.get("kind")),
            "missing": _missing(column.get("missing"), total),
            "unique": value(column.get("unique")),
            "detail": value(column.get("detail"), 90),
            "note": shorten(column.get("note") or "", 160),
        }
        for column in report.data.get("columns") or []
    ]


def _missing(count: Any, total: int) -> str:
    if not count:
        return NOTHING
    if isinstance(count, int) and total:
        share = 100 * count / total
        return f"{count:,} ({share:.0f}%)" if share >= 1 else f"{count:,} (<1%)"
    return value(count)


def balance_rows(report: RunReport) -> list[dict[str, Any]]:
    """Return classes with their counts and shares, the commonest first, the tail summed up."""
    counts = sorted((report.data.get("balance") or {}).items(), key=lambda kv: -kv[1])
    total = sum(n for _, n in counts) or 1
    shown, rest = counts[:_MOST_CLASSES], counts[_MOST_CLASSES:]
    if rest:
        shown = [*shown, (f"{len(rest):,} more classes", sum(n for _, n in rest))]
    most = max((n for _, n in counts), default=1) or 1
    return [
        {
            "name": shorten(name, 40),
            "count": f"{n:,}",
            "share": f"{100 * n / total:.1f}%",
            "width": f"{100 * n / most:.1f}" if n <= most else None,  # no bar for the tail
        }
        for name, n in shown
    ]


def split_rows(report: RunReport) -> list[dict[str, Any]]:
    """Return the parts of the split with their shares."""
    parts = {k: n for k, n in (report.data.get("split") or {}).items() if n}
    total = sum(parts.values()) or 1
    return [
        {"name": shorten(k, 30), "count": f"{n:,}", "share": f"{100 * n / total:.1f}"}
        for k, n in parts.items()
    ]


def mistake_table(report: RunReport) -> dict[str, Any]:
    """Return the worst mistakes with as many of their columns as can be read."""
    names = list(dict.fromkeys(k for m in report.mistakes for k in m.get("row") or {}))
    shown = names[:_MOST_MISTAKE_COLUMNS]
    columns = {k: [(m.get("row") or {}).get(k) for m in report.mistakes] for k in shown}
    kinds = {k: _cell_kind(cells) for k, cells in columns.items()}
    width = _LONGEST if len(shown) == 1 else 160  # one column is a text, and has the room
    rows = [
        {
            "index": value(m.get("index")),
            "truth": value(m.get("truth"), 40),
            "prediction": value(m.get("prediction"), 40),
            "sure": _percent(m.get("confidence")),
            "loss": value(m.get("loss")),
            "row": [{"text": value(columns[k][i], width), "kind": kinds[k]} for k in shown],
        }
        for i, m in enumerate(report.mistakes)
    ]
    answers = [m.get(side) for m in report.mistakes for side in ("truth", "prediction")]
    return {
        "heads": [{"text": shorten(k, 30), "kind": kinds[k]} for k in shown],
        "rows": rows,
        "hidden": len(names) - len(shown),
        "confident": any(m.get("confidence") is not None for m in report.mistakes),
        "answer": "num" if report.task == "regression" else _cell_kind(answers),
    }


def gallery(report: RunReport) -> list[dict[str, str]]:
    """Return the worst mistakes as images; nothing where rows are none."""
    return [
        {
            "image": m["image"],
            "truth": value(m.get("truth"), 40),
            "prediction": value(m.get("prediction"), 40),
            "sure": _percent(m.get("confidence")),
            "name": shorten((m.get("row") or {}).get("path", m.get("index")), 36),
        }
        for m in report.mistakes
        if _is_image(m.get("image"))
    ]


def example_rows(report: RunReport) -> list[dict[str, Any]]:
    """Return some images of each class."""
    return [
        {
            "name": shorten(row.get("name", ""), 40),
            "count": value(row.get("count")),
            "images": [uri for uri in row.get("images") or [] if _is_image(uri)],
        }
        for row in report.examples
    ]


def drawn_images(report: RunReport) -> dict[str, list[str]]:
    """Return drawn images and the training images nearest to them, by what they are."""
    named = {"drawn": "Drawn", "nearest": "Nearest in training"}
    found = {
        words: [uri for uri in report.samples.get(key) or [] if _is_image(uri)]
        for key, words in named.items()
    }
    return found if all(found.values()) else {}


def panels(report: RunReport) -> list[dict[str, Any]]:
    """Return what there is to read, long texts cut."""
    found = []
    for panel in report.panels:
        rows, heads = panel.get("rows") or [], panel.get("heads") or []
        columns = [_cell_kind([row[i] for row in rows]) for i in range(len(heads))]
        found.append(
            {
                "title": panel.get("title", ""),
                "words": panel.get("words", ""),
                "heads": list(zip(heads, columns, strict=True)),
                "rows": [
                    [(value(cell, _LONGEST), kind) for cell, kind in zip(row, columns, strict=True)]
                    for row in rows
                ],
                "samples": panel.get("samples") or [],
            }
        )
    return found


def _is_image(uri: Any) -> bool:
    """Whether a text is an image that loads nothing from elsewhere."""
    return isinstance(uri, str) and _IMAGE.fullmatch(uri) is not None


def _cell_kind(cells: list[Any]) -> str:
    """Name the style of a column: numbers, short words or running text."""
    known = [v for v in cells if v is not None]
    if known and all(isinstance(v, int | float) for v in known):
        return "num"
    return "long" if any(len(str(v)) > 24 for v in known) else "text"


def _percent(share: Any) -> str:
    return f"{100 * share:.1f}%" if finite(share) else NOTHING


def pairs(found: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Flatten nested settings into names with dots and readable values.

    >>> pairs({"lr": 0.001, "training": {"patience": 5}})
    [('lr', '0.001'), ('training.patience', '5')]
    """
    rows: list[tuple[str, str]] = []
    for key, each in found.items():
        if isinstance(each, dict) and each:
            rows += pairs(each, f"{prefix}{key}.")
        else:
            rows.append((shorten(f"{prefix}{key}", 80), value(each, 300)))
    return rows
