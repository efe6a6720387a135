"""Write the golden models of this release, all or some: ``python -m tests.golden.make [names…]``.

Those of older releases are never written again.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from tests.test_golden import UNWRITTEN

import castalia
from castalia.catalog import SYSTEMS
from castalia.data import Tree
from castalia.testing.contract import make
from castalia.testing.toys import toy

HERE = Path(__file__).parent
METHODS = ("predict_proba", "predict", "transform", "score_samples", "score")
RAW = {"YOLODetector": "_outputs"}  # hardly trained, it may be sure of no box at all


def plain(values):
    """Return what JSON can hold: texts and lists of sequences are lists already."""
    if isinstance(values, float):
        return values
    if not isinstance(values, list):
        return values.tolist()
    return [each.tolist() if hasattr(each, "tolist") else _text(each) for each in values]


def _text(each):
    return str(each) if isinstance(each, Tree) else each


def main():
    """Fit the small configuration of every system, or of those named, and keep what it answers."""
    home, asked = HERE / castalia.__version__, sys.argv[1:]
    for name, record in SYSTEMS.items():
        if name in UNWRITTEN or (asked and name not in asked):
            continue
        shutil.rmtree(home / name, ignore_errors=True)
        X, y = toy(record.toy)
        quick = {"epochs": 3} if "epochs" in record.small else {}
        if record.data == "world":
            model, X = make(record, **quick).fit(X), np.arange(X.observation_space.n)
        else:
            model = make(record, **quick).fit(X[:120], None if y is None else y[:120])
        method = RAW.get(name) or next(m for m in METHODS if hasattr(model, m))
        castalia.save(model, home / name / "model")
        rows = X[:1] if record.data == "image" else X[:8]  # images are large
        answer = getattr(model, method)(rows)
        expected = {"rows": plain(rows), "method": method, "answer": plain(answer)}
        (home / name / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
