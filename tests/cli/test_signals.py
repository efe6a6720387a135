"""``castalia fit`` ended from outside: a sentence, an exit code, and no run left running."""

import signal
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from tests.processes import run_code

from castalia.train import RunStore

# A process fits and another one ends it; the exit code is that of the fit.
ENDED = """
import os, sys, time
from pathlib import Path
number, times = map(int, sys.argv[1:3])
child = os.fork()
if child == 0:
    from castalia.cli import main
    sys.argv = ["castalia", *sys.argv[3:]]
    main()
deadline = time.monotonic() + 60
while not list(Path().glob("castalia-runs/*/.lock")) and time.monotonic() < deadline:
    time.sleep(0.05)
time.sleep(0.5)
for _ in range(times):
    os.kill(child, number)
    time.sleep(0.02)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
"""


@pytest.mark.parametrize("number, times", [(signal.SIGTERM, 1), (signal.SIGINT, 2)])
def test_a_fit_that_is_ended_leaves_no_running_run(zygote, tmp_path, number, times):
    random = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}" for a, b in random.normal(size=(400, 2))]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,target", *rows]))
    words = ["fit", "table.csv", "--target", "target", "--set", "epochs=100000"]
    done = run_code(zygote, tmp_path, ENDED, int(number), times, *words)
    # 75 asks a scheduler to start it again; a second Ctrl-C may hit the very end.
    codes = (75,) if number == signal.SIGTERM else (2, 256 - number)
    assert done.returncode in codes, done.stderr
    assert "Interrupted" in done.stderr
    with closing(sqlite3.connect(tmp_path / "castalia-runs" / "castalia.db")) as connection:
        assert connection.execute("SELECT status FROM runs").fetchall() == [("interrupted",)]
    with RunStore(tmp_path / "castalia-runs") as store:
        assert [run["status"] for run in store.runs()] == ["interrupted"]
