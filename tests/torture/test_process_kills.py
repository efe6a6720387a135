"""A few seconds of ``make torture``: processes are killed, and nothing is lost."""

import re
from pathlib import Path

from evidence.torture import LOSSES, mutated_files
from tests.processes import run_code

ROOT = Path(__file__).parents[2]
TORTURE = """
import os, sys
os.environ |= {"CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
sys.path.insert(0, sys.argv.pop(1))
from evidence.torture.__main__ import main
sys.exit(main())
"""


def test_some_seconds_of_kills_lose_nothing(zygote, tmp_path):
    words = ["--minutes", "0.03", "--only", "process_kills"]
    done = run_code(zygote, tmp_path, TORTURE, ROOT, *words)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    counts = dict(re.findall(r"^\| (.+) \| ([\d,]+) \|$", done.stdout, re.MULTILINE))
    assert counts["lost"] == "0"
    assert int(counts["kills"].replace(",", "")) >= 1


def test_all_ends_of_the_parts_that_are_losses_are_counted():
    assert set(mutated_files.BAD) < set(LOSSES)
    assert set(LOSSES) - set(mutated_files.BAD) == {"lost", "twice", "different"}
