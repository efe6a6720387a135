"""Peak memory of a training on a table that is streamed from disk."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import Bar, Report, main, one_thread_environment

ROWS = {"full": 20_000_000, "quick": 500_000, "tiny": 3_000}
COLUMNS = 10
SMALL = 20_000  # rows of the file on which streamed and in-memory fits are compared
PIECE = 500_000  # rows written at a time

# In a process of its own: the peak of resident memory is a figure of a process.
TRAIN = """
import json, resource, sys, time
import castalia, torch
from castalia.models.dense import MLPClassifier
from castalia.train import Training
def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before, start = peak(), time.perf_counter()
data = castalia.data.read(sys.argv[1], target="y", stream=sys.argv[2] == "stream")
model = MLPClassifier(hidden=(16,), batch_size=int(sys.argv[3]), epochs=1, random_state=0,
                      training=Training(device="cpu", verbose=False)).fit(data)
seconds = time.perf_counter() - start
weights = [p.detach().double().flatten().tolist() for p in model.module_.parameters()]
line = model.history_[-1]
found = {"seconds": seconds, "epoch": line["seconds"], "before": before, "peak": peak()}
found |= {"loss": line["loss"], "val_loss": line.get("val_loss"), "weights": weights}
print(json.dumps(found))
"""


def run(scale: str = "full", rows: int | None = None) -> Report:
    """Write a Parquet file piece by piece, train one epoch on it, and look at the peak memory."""
    rows = rows or ROWS[scale]
    home = Path(tempfile.mkdtemp(prefix="castalia-memory-"))
    try:
        need = 3 * rows * (COLUMNS + 1) * 4  # the file, the encoded matrix, and room
        free = shutil.disk_usage(home).free
        if free < need:
            free, need = free / 1e9, need / 1e9
            raise SystemExit(f"memory: needs {need:.1f} GB free at {home}; there are {free:.1f}.")
        big, small = home / "big.parquet", home / "small.parquet"
        write(big, rows)
        write(small, min(rows, SMALL))
        streamed, held = (train(small, how, 256) for how in ("stream", "memory"))
        equal = streamed["weights"] == held["weights"]
        found = train(big, "stream", 8192) if rows > SMALL else streamed
        size = big.stat().st_size
    finally:
        shutil.rmtree(home)
    found.pop("weights")
    text = "\n".join(
        [
            "| what | value |",
            "|---|---|",
            f"| file | {size / 1e9:.2f} GB |",
            f"| resident memory after the imports | {found['before'] / 1e9:.2f} GB |",
            f"| peak resident memory | {found['peak'] / 1e9:.2f} GB |",
            f"| read and fit | {found['seconds']:.1f} s, {rows / found['seconds']:,.0f} rows/s |",
            f"| of which the epoch | {found['epoch']:.1f} s |",
            f"| loss, validation loss | {found['loss']:.4f}, {found['val_loss']:.4f} |",
            f"| weights of a streamed and an in-memory fit equal (small file) | {equal} |",
        ]
    )
    bars = [
        Bar("peak resident memory", found["peak"] / 1e9, "<=", 2.0, " GB"),
        Bar("streamed fit equals in-memory fit (1 = yes)", float(equal), ">=", 1),
    ]
    setting = f"{rows:,} rows x {COLUMNS} columns, float32, MLP 16, batch 8192, 1 epoch, 1 thread."
    return Report("memory", setting, text, bars, found)


def write(path: Path, rows: int) -> None:
    """Write columns x0…x9 and a target y that depends on two of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{i}" for i in range(COLUMNS)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int64())])
    random = np.random.default_rng(0)
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for start in range(0, rows, PIECE):
            X = random.standard_normal((min(PIECE, rows - start), COLUMNS), dtype=np.float32)
            y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
            writer.write_table(pa.table([*X.T, y], schema=schema))


def train(path: Path, how: str, batch_size: int) -> dict:
    """Train in a fresh process, streamed or in memory."""
    command = [sys.executable, "-c", TRAIN, str(path), how, str(batch_size)]
    env = one_thread_environment()
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main(run, rows=int)
