"""A few seconds of ``make torture``: processes are killed, and nothing is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

from evidence.torture import LOSSES, mutated_files

ROOT = Path(__file__).parents[2]


def test_some_seconds_of_kills_lose_nothing():
    words = ["-m", "evidence.torture", "--minutes", "0.05", "--only", "process_kills"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    counts = dict(re.findall(r"^\| (.+) \| ([\d,]+) \|$", done.stdout, re.MULTILINE))
    assert counts["lost"] == "0"
    assert int(counts["kills"].replace(",", "")) >= 1


def test_all_ends_of_the_parts_that_are_losses_are_counted():
    assert set(mutated_files.BAD) < set(LOSSES)
    assert set(LOSSES) - set(mutated_files.BAD) == {"lost", "twice", "different"}
