"""A pytest plugin: the doctor watches the trainings of a test, which fails where one has a fault.

.. code-block:: python

    @pytest.mark.castalia(fail_on="warning", mute=["CST207"])
    def test_training(castalia_doctor):
        net, optimizer = build()
        castalia_doctor(net, optimizer)
        train(net, optimizer)

It is installed with castalia. Nothing of torch is imported until a test asks for the fixture.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from castalia import diagnose  # its names are loaded when first used

__all__ = ["TestDoctor", "castalia_doctor"]

# Pytest rewrites the asserts of every package that has a plugin: this one has none, and a thousand
# modules would be parsed for nothing.
for _finder in sys.meta_path:
    getattr(_finder, "_must_rewrite", set()).discard("castalia")

SERIOUS = {"error": ("error",), "warning": ("error", "warning")}


class TestDoctor:
    """Watches trainings of one test; call it as ``watch``.

    Parameters
    ----------
    fail_on
        ``"error"`` or ``"warning"``: the mildest severity that fails the test.
    mute
        Codes of findings that are not wanted.
    """

    __test__ = False  # no test of pytest's, whatever its name

    def __init__(self, fail_on: str = "error", mute: tuple[str, ...] = ()) -> None:
        if fail_on not in SERIOUS:
            known = " or ".join(map(repr, SERIOUS))
            raise pytest.UsageError(f"castalia: `fail_on` must be {known}; got {fail_on!r}.")
        self.fail_on, self.mute = fail_on, mute
        self.doctors: list[diagnose.Doctor] = []

    def __call__(self, module: Any, *args: Any, **kwargs: Any) -> diagnose.Doctor:
        """Watch a module; the parameters are those of ``castalia.diagnose.watch``."""
        self.doctors.append(diagnose.watch(module, *args, **kwargs))
        return self.doctors[-1]

    def diagnoses(self) -> list[diagnose.Diagnosis]:
        """Return what was found so far, of each module."""
        return [doctor.diagnosis(mute=self.mute) for doctor in self.doctors]

    def check(self) -> None:
        """Fail the test where a training has a fault; warn where nothing was watched."""
        if not self.doctors:
            words = "castalia_doctor watched nothing: call castalia_doctor(net, optimizer) first."
            warnings.warn(pytest.PytestWarning(words), stacklevel=2)
        bad = [found for found in self.diagnoses() if found.worst in SERIOUS[self.fail_on]]
        if bad:
            pytest.fail("\n\n".join(map(str, bad)), pytrace=False)

    def close(self) -> None:
        """Stop watching."""
        for doctor in self.doctors:
            doctor.close()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    words = "castalia(fail_on='error', mute=()): what the doctor of `castalia_doctor` fails on."
    config.addinivalue_line("markers", words)


@pytest.fixture
def castalia_doctor(request: pytest.FixtureRequest) -> Iterator[TestDoctor]:
    """Watch trainings in a test: ``castalia_doctor(net, optimizer)``."""
    marker = request.node.get_closest_marker("castalia")
    wishes = dict(marker.kwargs) if marker else {}
    wishes["mute"] = tuple(wishes.get("mute", ()))
    doctor = TestDoctor(**wishes)
    yield doctor
    doctor.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let the test itself fail, rather than its end."""
    result = yield
    doctor = getattr(item, "funcargs", {}).get("castalia_doctor")
    if isinstance(doctor, TestDoctor):
        doctor.check()
    return result
