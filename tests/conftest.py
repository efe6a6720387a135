"""Which tests are the tiny ones (the lower floors), and which need a device that is not here."""

from pathlib import Path

import pytest
import torch
from hypothesis import settings

HERE = Path(__file__).parent
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


def pytest_collection_modifyitems(items):
    without_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(without_gpu)
        place = item.path.relative_to(HERE).parts[0]
        if place in TINY and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.tiny)


# Slow machines are no failure; the same examples every time, so that a failure can be repeated.
settings.register_profile("castalia", deadline=None, derandomize=True)
settings.load_profile("castalia")
