"""``castalia fit`` ended from outside: a sentence, an exit code, and no run left running."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import castalia
from castalia.train import RunStore

SOURCE = str(Path(castalia.__file__).parents[1])


@pytest.mark.parametrize("number, times", [(signal.SIGTERM, 1), (signal.SIGINT, 2)])
def test_a_fit_that_is_ended_leaves_no_running_run(tmp_path, number, times):
    random = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}" for a, b in random.normal(size=(400, 2))]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,target", *rows]))
    words = ["fit", "table.csv", "--target", "target", "--set", "epochs=100000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "castalia", *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE},
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("castalia-runs/*/.lock")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    for _ in range(times):
        process.send_signal(number)
        time.sleep(0.02)
    _, words = process.communicate(timeout=30)
    # 75 asks a scheduler to start it again; a second Ctrl-C may hit the very end.
    assert process.returncode in ((75,) if number == signal.SIGTERM else (2, -number)), words
    assert "Interrupted" in words
    with closing(sqlite3.connect(tmp_path / "castalia-runs" / "castalia.db")) as connection:
        assert connection.execute("SELECT status FROM runs").fetchall() == [("interrupted",)]
    with RunStore(tmp_path / "castalia-runs") as store:
        assert [run["status"] for run in store.runs()] == ["interrupted"]
