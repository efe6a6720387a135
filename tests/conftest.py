"""How many threads a test has, what it draws, which are the tiny ones, and which need a GPU."""

import gc
import logging
import os
import random
import signal
import sys
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores: threads of one would wait
    os.environ.setdefault("OMP_NUM_THREADS", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs behind them
    signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402
from tests.processes import zygote  # noqa: E402

pytest_plugins = ["tools.reach"]  # rows of the course whose tests never enter their object
HERE = Path(__file__).parent
os.fsync = lambda handle: None  # no test cuts the power; waiting for the disk proves nothing
STATES = {}  # generators that modules of tests share, as they are after the import
gc.disable()  # until everything is imported
TINY = {
    "utils",
    "nn",
    "autodiff",
    "nets",
    "objectives",
    "worked",
    "evaluate",
    "test_course.py",
    "test_house.py",
}


def pytest_ignore_collect(collection_path, config):
    """Of ``-m gpu`` only files that have such tests are imported: others may need more packages."""
    if config.getoption("markexpr") == "gpu" and collection_path.name.startswith("test_"):
        return "mark.gpu" not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_collection_modifyitems(items):
    without_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(without_gpu)
        place = item.path.relative_to(HERE).parts[0]
        if place in TINY and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.tiny)


def pytest_collection_finish():
    """What is imported by now stays: no collection of garbage need look at it again."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # a 40th of the time was spent looking for garbage
    gc.enable()
    # pytest gives its handlers to every logger that keeps its messages, thrice in each test: torch
    # has fifty such.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("torch")]:
        logging.getLogger(name).propagate = True
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "tests":
            for value in vars(module).values():
                if isinstance(value, np.random.Generator):
                    STATES[id(value)] = value.bit_generator, value.bit_generator.state
                elif isinstance(value, torch.Generator):
                    STATES[id(value)] = value, value.get_state()


def pytest_runtest_setup():
    """A test draws the same numbers whichever tests ran before it."""
    random.seed(0)
    np.random.seed(0)
    torch.default_generator.manual_seed(0)  # the other way formats tracebacks
    for generator, state in STATES.values():
        if isinstance(generator, torch.Generator):
            generator.set_state(state)
        else:
            generator.state = state


@pytest.fixture(scope="session", name="zygote")
def _zygote():
    with zygote() as run:
        yield run


# Slow machines are no failure; the same examples every time, so that a failure can be repeated.
settings.register_profile("castalia", deadline=None, derandomize=True)
settings.load_profile("castalia")
