"""Names that moved stay importable, with a warning."""

import pytest

from castalia import base
from castalia.models.vision.detector_task import Detector
from castalia.utils.moved_names import moved_names


def test_a_moved_name_is_found_with_a_warning_that_says_where_it_is():
    find = moved_names("castalia.old", {"sqrt": "math"})
    with pytest.warns(FutureWarning, match="castalia.old.sqrt is now math.sqrt"):
        assert find("sqrt")(9) == 3


def test_other_names_are_missing_as_in_any_module():
    with pytest.raises(AttributeError, match="module 'castalia.old' has no attribute 'cbrt'"):
        moved_names("castalia.old", {})("cbrt")


def test_tasks_of_images_are_still_found_in_base():
    with pytest.warns(FutureWarning, match="castalia.base.Detector is now castalia.models.vision"):
        assert base.Detector is Detector
