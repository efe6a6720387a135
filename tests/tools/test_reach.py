"""A row of the course whose tests never enter its object is found."""

import threading

import pytest
import torch
from tools.course_code import functions_of, layers, resolve
from tools.reach import Reach, Target, watched

from castalia.catalog.course import CourseRow
from castalia.models.linear import Lasso, Ridge
from castalia.nn import SeparableConv2d, Sign

X = torch.ones(2)


def entered(path, act):
    found = set()
    with watched({path: Target(path)}, found):
        act()
    return path in found


def test_a_call_enters_a_function_and_an_import_does_not():
    assert entered("castalia.nn:Sign", lambda: Sign()(X))
    assert not entered("castalia.nn:Sign", lambda: Sign)


def test_a_thread_enters_what_it_calls():
    def act():
        thread = threading.Thread(target=lambda: Sign()(X))
        thread.start()
        thread.join()

    assert entered("castalia.nn:Sign", act)


def test_inherited_code_counts_only_for_instances_of_the_class():
    assert not entered("castalia.models.linear:Ridge", lambda: Lasso().get_params())
    assert entered("castalia.models.linear:Ridge", lambda: Ridge().get_params())


def test_a_class_without_code_is_entered_through_what_it_inherits():
    assert functions_of(SeparableConv2d) == []
    assert entered("castalia.nn:SeparableConv2d", lambda: SeparableConv2d(2, 2, 3))


def test_a_torch_object_has_no_code_of_ours():
    assert functions_of(resolve("castalia.nn:PReLU")) == []


def test_a_table_of_data_is_left_to_the_faults():
    test = "tests/t.py::test_x"
    reach = Reach([CourseRow("A-1", "a", "A", "castalia.tune:EFFECTS", (test,))])
    reach.passed.add(test)
    assert reach.missed() == []
    assert not Target("castalia.nn:PReLU").data


def test_layers_go_from_the_object_to_what_it_names_and_repeat_nothing():
    found = [{f.__qualname__ for f in layer} for layer in layers(Ridge)]
    assert all(name.startswith("Ridge.") for name in found[0])
    assert found[1]
    assert not found[0] & found[1]


PLANTED = """
import pytest, torch
from castalia.nn import Sign

@pytest.fixture(scope="module")
def signs():
    return Sign()(torch.ones(2))

def test_first(signs): assert signs.sum() == 2
def test_later(signs): assert signs[0] == 1
def test_direct(): assert Sign()(torch.ones(1)) == 1
@pytest.mark.parametrize("call", [False, True])
def test_one_of_two(call): assert not call or Sign()(torch.ones(1)) == 1
def test_never(): assert Sign is not None
def test_skipped(): pytest.skip("not here")
"""
# The last would collect garbage five times, in all that other tests have loaded.
OFF = ("cacheprovider", "xdist", "hypothesispytest", "unraisableexception")
NAMES = ("first", "later", "direct", "one_of_two", "never", "skipped")


@pytest.fixture
def session(tmp_path):
    (tmp_path / "test_planted.py").write_text(PLANTED)
    tests = {name: (f"test_planted.py::test_{name}",) for name in NAMES}
    tests["never, direct"] = (*tests["never"], *tests["direct"])
    reach = Reach([CourseRow(n, n, "A", "castalia.nn:Sign", t) for n, t in tests.items()])
    off = [word for name in OFF for word in ("-p", f"no:{name}")]
    code = pytest.main(["-q", f"--rootdir={tmp_path}", *off, str(tmp_path)], plugins=[reach])
    return code, reach


def test_a_row_whose_tests_pass_without_entering_its_object_fails_the_session(session):
    code, reach = session
    assert [row.id for row in reach.missed()] == ["never"]
    assert reach.outside(reach.rows[-1]) == ["test_planted.py::test_never"]
    assert code == pytest.ExitCode.TESTS_FAILED


def test_rows_of_another_library_are_not_asked():
    row = CourseRow("A-1", "a", "A", "castalia.nn:PReLU", ("test_planted.py::test_x",), by="torch")
    assert not Reach([row]).objects


class Config:
    def __init__(self, **fields):
        self.__dict__ |= fields


def test_what_workers_find_is_joined():
    tests = ("t.py::test_a", "t.py::test_b")
    rows = [CourseRow("A-1", "a", "A", "castalia.nn:Sign", tests)]
    worker, controller = Reach(rows), Reach(rows)
    worker.passed, worker.found = set(tests), {(tests[0], "castalia.nn:Sign")}
    output = {}
    worker.pytest_sessionfinish(Config(config=Config(workeroutput=output), exitstatus=0))
    controller.pytest_testnodedown(Config(workeroutput=output))
    assert controller.outside(rows[0]) == [tests[1]]
    assert controller.missed() == []
