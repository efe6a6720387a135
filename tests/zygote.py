"""Forks processes that have torch imported already, so that many scripts can be run quickly.

Reads a line of JSON from standard input for each run, and answers with its exit code: words of the
command line, or ``-c``, Python code and its arguments.
"""

import atexit
import gc
import json
import os
import signal
import sys
import threading

# What nearly every child needs is loaded once.
import pydantic.type_adapter  # noqa: F401 - typer's
import torch._dynamo  # noqa: F401 - torch's optimizers load it, in two seconds

from castalia import MLPClassifier, MLPRegressor  # noqa: F401
from castalia.cli import main
from castalia.diagnose.script import Session  # noqa: F401

MINUTES = 4  # before a script that hangs is ended


def run(words, folder, out, err):
    os.setsid()
    os.chdir(folder)
    for target, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
    sys.stdout, sys.stderr = (open(i, "w", encoding="utf-8", closefd=False) for i in (1, 2))  # noqa: SIM115
    if words[0] == "-c":
        signal.alarm(60 * MINUTES)
        sys.argv = ["-c", *words[2:]]
        exec(words[1], {"__name__": "__main__"})
        sys.exit()
    sys.argv = ["castalia", *words]
    main()


def leave(code):
    """End as Python does, but without freeing all that is imported, which takes half a second."""
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    gc.freeze()  # what is loaded by now: no child looks for garbage in it when it ends
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                run(*json.loads(line))
            except SystemExit as end:
                leave(end.code)
            os._exit(99)  # the command line always ends by an exit
        status = os.waitpid(child, 0)[1]
        sys.__stdout__.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.__stdout__.flush()
