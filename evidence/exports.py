"""Every exportable system as ONNX and as a program of torch: differences, sizes, latency.

Models are those of ``tests/golden``, with their own rows.
"""

import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import castalia
from castalia.catalog import SYSTEMS
from castalia.export import OnnxModel, export_model
from castalia.export.refusals import REFUSALS

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / castalia.__version__
COLUMNS = ("system", "rows", "difference", "kB", "opset", "torch, ms", "ONNX Runtime, ms")


def golden(name):
    rows = json.loads((GOLDEN / name / "expected.json").read_text())["rows"]
    kind = SYSTEMS[name].data
    X = rows if kind == "text" else np.array(rows, dtype="u1" if kind == "image" else None)
    return castalia.load(GOLDEN / name / "model"), X


def milliseconds(call, times=20):
    """Return the median time of a call."""
    call()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(1e3 * (time.perf_counter() - start))
    return float(np.median(found))


def measured(name, folder):
    model, X = golden(name)
    made = export_model(model, folder / f"{name}.onnx", rows=X)
    export_model(model, folder / f"{name}.pt2", to="torch", rows=X)
    file = OnnxModel(made.path)
    method = next(m for m in ("predict_proba", "predict", "transform") if hasattr(model, m))
    own = milliseconds(lambda: getattr(model, method)(X))
    theirs = milliseconds(lambda: file.answers(X))
    return (
        *(name, made.rows, f"{made.difference:.1e}", f"{made.size / 1e3:.1f}", made.opset),
        *(f"{own:.2f}", f"{theirs:.2f}"),
    )


def run(quick=False):
    warnings.simplefilter("ignore")
    names = [name for name in SYSTEMS if name not in REFUSALS]
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in names[:: 10 if quick else 1]:
            try:
                cells = measured(name, Path(folder))
            except Exception as error:  # the table goes on, and says so
                cells = (name, f"failed: {type(error).__name__}: {str(error)[:80]}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
