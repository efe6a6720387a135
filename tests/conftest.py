"""Which tests are the tiny ones: the lower floors, where a whole folder takes seconds."""

from pathlib import Path

import pytest
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
    for item in items:
        place = item.path.relative_to(HERE).parts[0]
        if place in TINY and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.tiny)


# Slow machines are no failure; the same examples every time, so that a failure can be repeated.
settings.register_profile("castalia", deadline=None, derandomize=True)
settings.load_profile("castalia")
