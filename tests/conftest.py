"""Which tests are the tiny ones: the lower floors, where a whole folder takes seconds."""

from pathlib import Path

import pytest

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
