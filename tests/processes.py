"""Other processes that tests start: the world they see, and a way to have torch imported once."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "OMP_NUM_THREADS": "1"}
ENVIRONMENT.pop("PYTEST_ADDOPTS", None)  # its plugins may not be there


@contextmanager
def zygote():
    """Give a function that runs words of the command line in a process with torch loaded."""
    pipe, command = subprocess.PIPE, [sys.executable, str(HERE / "zygote.py")]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=ENVIRONMENT) as process:

        def run(words, folder, out, err):
            process.stdin.write(json.dumps([words, str(folder), str(out), str(err)]) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run
        process.stdin.close()


# Runs the script that its first argument names, without other devices and other machines.
ALONE = """
import os, runpy, sys
os.environ |= {"CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_code(zygote, folder, code, *words):
    """Run Python code in a process that a zygote forks; return how it ended and what it wrote."""
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    code = zygote(["-c", code, *map(str, words)], folder, out, err)
    return subprocess.CompletedProcess(words, code, out.read_text(), err.read_text())
