"""A pytest plugin: whether the tests of a row of the course enter the code of the row's object.

The suite runs anyway; this watches it. A test that a row names is traced until it has entered
what its rows name, no longer, so most tests run at full speed. When all tests of a row have passed
in the session and none of them has entered the row's object, the session fails.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from tools.course_code import functions_of, parents_of, resolve

from castalia.catalog.course import CourseRow, load_course

__all__ = ["Reach", "Target", "watched"]

ROOT = Path(__file__).parents[1]


# Their tests read one run of an experiment that is made once a process, by whichever test comes
# first: that test enters the object, the others read what it left. `make proof` attacks them alone.
SHARED_RUNS = {
    "ATT-05",
    "ATT-38",
    "PAR-25",
    "PRE-09",
    "PRE-13",
    "PRE-25",
    "PRE-26",
    "PRE-27",
    "SEQ-18",
}


class Target:
    """The code of an object, and that which it inherits.

    Inherited code counts only while it works on an instance of the class. A table of data has no
    code that could be entered: whether its tests read it is for ``tools/mutants.py`` to find out.
    """

    def __init__(self, path: str) -> None:
        thing = resolve(path)
        self.own = frozenset(function.__code__ for function in functions_of(thing))
        self.data = isinstance(thing, Mapping) and not self.own
        self.cls = thing if isinstance(thing, type) else None
        parents = parents_of(self.cls) if self.cls else []
        inherited = (f.__code__ for parent in parents for f in functions_of(parent))
        self.inherited = frozenset(inherited) - self.own

    @property
    def codes(self) -> frozenset[CodeType]:
        """All code that may count."""
        return self.own | self.inherited

    def entered_by(self, frame: FrameType) -> bool:
        """Whether a frame whose code is among ``codes`` belongs to the object."""
        code = frame.f_code
        if code in self.own:
            return True
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        cls = first if isinstance(first, type) else type(first)
        return self.cls is not None and issubclass(cls, self.cls)


@contextmanager
def watched(targets: Mapping[str, Target], found: set[str]) -> Iterator[None]:
    """Add to ``found`` the names of those targets that the block enters."""
    waiting = {name: target for name, target in targets.items() if name not in found}
    codes = frozenset(code for target in waiting.values() for code in target.codes)
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code in codes:
            hit = [n for n, t in waiting.items() if frame.f_code in t.codes and t.entered_by(frame)]
            found.update(hit)
            for name in hit:
                del waiting[name]
            if not waiting:
                stop()
        return before(frame, event, arg) if before else None

    def stop() -> None:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]

    if not waiting:
        yield
        return
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        yield
    finally:
        stop()


class Reach:
    """The plugin: which objects each test of the course has entered.

    Parameters
    ----------
    rows
        The rows of the course; those that another library answers are left out.
    """

    def __init__(self, rows: list[CourseRow]) -> None:
        self.rows = [row for row in rows if row.tests and not row.by]
        self.objects: dict[str, set[str]] = defaultdict(set)  # test -> objects of its rows
        for row in self.rows:
            for test in row.tests:
                self.objects[test].add(row.object)
        self.items: list[pytest.Item] = []
        self.of_fixture: dict[tuple[str, str], dict[str, Target]] = {}  # what its users name
        self.by_fixture: dict[tuple[str, str], set[str]] = defaultdict(set)  # what it has entered
        self.passed: set[str] = set()
        self.found: set[tuple[str, str]] = set()  # test, object

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember which collected tests belong to rows."""
        self.items = [item for item in session.items if self._asked(item)]

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Watch a fixture of ours for the objects of all tests that use it."""
        if not fixturedef.baseid:  # pytest's own, such as tmp_path
            return (yield)
        place = fixturedef.argname, fixturedef.baseid
        if place not in self.of_fixture:
            users = [i for i in self.items if self._uses(i, *place)]
            self.of_fixture[place] = self._targets(users)
        with watched(self.of_fixture[place], self.by_fixture[place]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Watch a test, unless its fixtures have already entered its objects."""
        if not self._asked(item):
            return (yield)
        found = {o for place, os in self.by_fixture.items() if self._uses(item, *place) for o in os}
        with watched(self._targets([item]), found):
            result = yield
        names = {name for name in self._names(item) if name in self.objects}
        self.passed |= names
        self.found |= {(n, o) for n in names for o in self.objects[n] & found}
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of xdist has found."""
        passed, found = getattr(node, "workeroutput", {}).get("reach", ((), ()))
        self.passed |= set(passed)
        self.found |= {(test, name) for test, name in found}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the session for rows whose tests never enter their object."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["reach"] = [sorted(self.passed), sorted(self.found)]
        elif self.missed() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name those rows."""
        missed = self.missed()
        if missed:
            terminalreporter.section("rows of the course whose tests never enter their object")
        for row in missed:
            terminalreporter.write_line(f"{row.id}: no test of it enters `{row.object}`")

    def missed(self) -> list[CourseRow]:
        """List the rows whose tests have all passed without entering the row's object."""
        ran = [row for row in self.rows if self.passed.issuperset(row.tests)]
        found = [row for row in ran if len(self.outside(row)) == len(row.tests)]
        return [row for row in found if row.id not in SHARED_RUNS]

    def outside(self, row: CourseRow) -> list[str]:
        """List the tests of a row that passed without entering its object."""
        if _target(row.object).data:
            return []
        passed = [test for test in row.tests if test in self.passed]
        return [test for test in passed if (test, row.object) not in self.found]

    def _asked(self, item: pytest.Item) -> bool:
        return any(name in self.objects for name in self._names(item))

    @staticmethod
    def _names(item: pytest.Item) -> tuple[str, str]:
        """Return the test's name from the root, with and without its parameters."""
        name = f"{item.location[0]}::{item.nodeid.partition('::')[2]}"
        return name, name.partition("[")[0]

    @staticmethod
    def _uses(item: pytest.Item, fixture: str, baseid: str) -> bool:
        return item.nodeid.startswith(baseid) and fixture in getattr(item, "fixturenames", ())

    def _targets(self, items: list[pytest.Item]) -> dict[str, Target]:
        names = {o for i in items for n in self._names(i) for o in self.objects.get(n, ())}
        return {name: _target(name) for name in sorted(names)}


@cache
def _target(name: str) -> Target:
    return Target(name)


def pytest_configure(config: pytest.Config) -> None:
    """Watch the session, unless a debugger already does."""
    if sys.gettrace() is None:
        config.pluginmanager.register(Reach(load_course(ROOT / "course.toml")), "castalia-reach")
