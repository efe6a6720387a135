"""What a graph leaves to its caller, as a JSON file and a script of Python's own library.

Texts of a fixed vocabulary or of hashed n-grams, and dates, have no operators in ONNX. The script,
``static/runner.py.txt``, makes the inputs of a file of them, and is checked as the file is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidData
from castalia.export.onnx_runner import OnnxModel
from castalia.utils.atomic_files import atomic_write

__all__ = ["sidecar_of", "write_sidecar"]

CUTS = {
    "WordPunctTokenizer": "words",
    "WhitespaceTokenizer": "whitespace",
    "CharTokenizer": "characters",
}
TYPES = {"double": "float64", "float": "float32", "int64": "int64", "string": "object"}


def write_sidecar(path: Path, model: OnnxModel, rows: Any) -> tuple[Path, ...]:
    """Write the JSON file and the script beside an exported file, where they have work to do.

    Parameters
    ----------
    path
        The exported file.
    model
        The same, ready to answer.
    rows
        Rows as the model takes them, on which script and model must agree; None: unchecked.
    """
    content = sidecar_of(model.facts)
    if content is None:
        return ()
    types = {p.name: TYPES[p.type[len("tensor(") : -1]] for p in model.session.get_inputs()}
    text = json.dumps({"kind": model.kind, "types": types, **content}, ensure_ascii=False)
    script = (files("castalia.export") / "static" / "runner.py.txt").read_text("utf-8")
    if rows is not None:
        _check(script, json.loads(text), _plain_rows(rows, model.kind), model.feeds(rows))
    beside = path.with_suffix(".json"), path.with_name(f"{path.stem}_run.py")
    for file, part in zip(beside, (text, script), strict=True):
        atomic_write(file, part.encode())
    return beside


def sidecar_of(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the script has to know; None where nothing is left to do, or too much for it.

    >>> sidecar_of({"kind": "table", "columns": {"sold": "date"}})
    {'columns': {'sold': 'date'}}
    """
    if "ngrams" in facts:
        return {"ngrams": _ngrams(facts["ngrams"])}
    if "tokenizer" in facts:
        return _vocabulary(facts)
    columns = facts.get("columns", {})
    return {"columns": columns} if "date" in columns.values() else None


def _ngrams(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables from hash values to the place and the rarity of an n-gram."""
    tables, first = [], 0
    for known, rarity in zip(state["known"], state["rarity"], strict=True):
        pairs = zip(known, enumerate(rarity, first), strict=True)
        tables.append({str(key): list(value) for key, value in pairs})
        first += len(known)
    low, high = state["characters"] or (1, 0)
    spans = {"words": [1, state["words"] + 1], "characters": [low, high + 1]}
    return {**spans, "buckets": state["buckets"], "tables": tables}


def _vocabulary(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a tokenizer that is a table of words; None where it is more than that."""
    state = facts["tokenizer"]
    settings, model = state["parameters"], json.loads(state["backend"])["model"]
    plain = facts["long"] == "cut" and not facts["boundaries"]
    if not plain or state["class"] not in CUTS or {*settings["normalise"]} - {"lowercase"}:
        return None
    known = model["vocab"]
    kind = {
        "cut": CUTS[state["class"]],
        "lowercase": bool(settings["normalise"]),
        "ids": {word: place for word, place in known.items() if word not in settings["special"]},
        "unknown": known[model["unk_token"]],
    }
    return {"length": facts["length"], "padding": facts["padding"], "tokenizer": kind}


def _plain_rows(rows: Any, kind: str) -> list[Any]:
    """Return texts, or the cells of a table as they would stand in a CSV file."""
    if kind != "table":
        return [str(text) for text in rows]
    table = read_table(rows)
    columns = {name: table.column(name) for name in table.columns}
    made = {name for base in columns for name in columns if name.startswith(f"{base} (")}
    cells = {name: map(_cell, values) for name, values in columns.items() if name not in made}
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


def _cell(value: Any) -> str:
    missing = value is None or value != value  # NaN and NaT differ from themselves
    return "" if missing else str(value)


def _check(
    script: str, facts: Mapping[str, Any], rows: list[Any], feeds: Mapping[str, np.ndarray]
) -> None:
    """Refuse a script that makes other inputs of rows than the model's own preparation."""
    names: dict[str, Any] = {"__name__": "runner", "__file__": "runner.py"}
    exec(compile(script, "runner.py", "exec"), names)  # a file of this package
    made = names["inputs"](rows, facts)
    for name, wanted in feeds.items():
        found = np.array(made[name], facts["types"][name])
        if found.shape != wanted.shape or not _same(found, wanted):
            raise InvalidData(
                f"export: the script beside the file must prepare rows as the model does; input "
                f"`{name}` differs. Please report this model."
            )


def _same(found: np.ndarray, wanted: np.ndarray) -> bool:
    if found.dtype.kind == "O":
        return bool((found == wanted).all())
    return bool(np.allclose(found, wanted, rtol=1e-6, equal_nan=True))
