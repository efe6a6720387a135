"""The door for optional packages."""

import math

import pytest

from castalia.errors import MissingPackage
from castalia.utils.imports import require


def test_a_package_that_is_there_is_returned():
    assert require("math", caller="test") is math


def test_a_missing_package_says_who_needs_it_and_how_to_get_it():
    with pytest.raises(MissingPackage) as caught:
        require("no_such_package.inner", caller="Search", extra="tune")
    assert str(caught.value) == (
        "Search: needs the package `no_such_package.inner`; install it with "
        "`pip install 'castalia[tune]'`."
    )


def test_without_an_extra_the_package_itself_is_named():
    with pytest.raises(MissingPackage, match="`pip install no_such_package`"):
        require("no_such_package.inner", caller="read")


def test_callers_may_catch_the_usual_import_error():
    with pytest.raises(ImportError):
        require("no_such_package", caller="read")
