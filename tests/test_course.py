"""Every row of the course names things that exist."""

import ast
import importlib
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from castalia.catalog.course import CourseRow, course_table, load_course
from castalia.errors import DamagedFile, InvalidData

ROOT = Path(__file__).parents[1]
ROWS = load_course(ROOT / "course.toml")


@cache
def names_in(file: Path) -> frozenset[str]:
    """Return ``test_x`` and ``Class::test_x`` of a test file, without running it."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)}
    return frozenset(found)


def missing_object(path: str, library: str = "") -> str:
    """Say what is wrong with ``package:name``, or nothing."""
    module, _, attributes = path.partition(":")
    if module.split(".")[0] not in ("castalia", library) or not attributes:
        return f"`{path}` is not `castalia.package:name`"
    try:
        found = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        return f"`{path}` does not import: {error}"
    return ""


def missing_test(test: str, root: Path = ROOT) -> str:
    """Say what is wrong with ``tests/file.py::test_x[…]``, or nothing."""
    file, _, name = test.partition("::")
    name = name.split("[")[0]
    if not name.split("::")[-1].startswith("test_"):
        return f"`{test}` does not name a test"
    if not (root / file).is_file():
        return f"`{test}`: there is no file `{file}`"
    return "" if name in names_in(root / file) else f"`{test}`: there is no `{name}` in `{file}`"


def faults(row: CourseRow) -> list[str]:
    """List what is wrong with a row."""
    found = [missing_object(row.object, row.by)] if row.object else []
    if row.tests and not row.object:
        found.append("has tests but no object")
    found += [missing_test(test) for test in row.tests]
    return [f"{row.id}: {fault}" for fault in found if fault]


def test_the_course_has_694_rows_with_unique_ids():
    counts = Counter(row.id for row in ROWS)
    assert len(ROWS) == 694
    assert [tag for tag, count in counts.items() if count > 1] == []


def test_the_numbers_of_an_area_run_from_one_without_gaps():
    areas: dict[str, list[int]] = {}
    for row in ROWS:
        tag, number = row.id.rsplit("-", 1)
        areas.setdefault(tag, []).append(int(number))
    assert len(areas) == 25
    assert {tag: n for tag, n in areas.items() if n != list(range(1, len(n) + 1))} == {}


def test_every_object_and_every_test_named_by_the_course_exists():
    assert [fault for row in ROWS for fault in faults(row)] == []


ME = "tests/test_course.py::test_the_course_has_694_rows_with_unique_ids"


@pytest.mark.parametrize(
    "object, tests, said",
    [
        ("castalia.catalog:no_such_name", (ME,), "does not import"),
        ("castalia.no_such_package:name", (ME,), "does not import"),
        ("castalia.catalog", (ME,), "is not `castalia.package:name`"),
        ("os:getcwd", (ME,), "is not `castalia.package:name`"),
        ("", (ME,), "has tests but no object"),
        ("castalia.catalog:find", ("tests/test_course.py::test_nowhere",), "there is no `test_now"),
        ("castalia.catalog:find", ("tests/test_nothing.py::test_x",), "there is no file"),
        ("castalia.catalog:find", ("tests/test_course.py",), "does not name a test"),
        ("castalia.catalog:find", ("tests/test_course.py::faults",), "does not name a test"),
    ],
)
def test_a_row_that_names_what_does_not_exist_is_found(object, tests, said):
    (fault,) = faults(CourseRow("BAD-01", "bad", "Area", object, tests))
    assert said in fault


@pytest.mark.parametrize(
    "object, tests",
    [
        ("", ()),
        ("castalia.catalog:find", ()),
        ("castalia.catalog.course:CourseRow.open", (ME,)),
        ("castalia.catalog:find", (f"{ME}[LIN-01-a::b]",)),
    ],
)
def test_a_row_that_names_what_exists_passes(object, tests):
    assert faults(CourseRow("GOOD-01", "good", "Area", object, tests)) == []


def test_the_object_of_a_row_shown_by_another_library_may_be_that_library_s():
    shown = CourseRow("GOOD-02", "good", "Area", "torch.linalg:svd", (ME,), "torch")
    assert faults(shown) == []
    (fault,) = faults(replace(shown, by=""))
    assert "is not `castalia.package:name`" in fault


def test_methods_of_a_test_class_are_found(tmp_path):
    file = tmp_path / "test_it.py"
    file.write_text("class TestIt:\n    def test_a(self): ...\n    def other(self): ...\n")
    assert missing_test("test_it.py::TestIt::test_a", tmp_path) == ""
    assert "there is no" in missing_test("test_it.py::test_a", tmp_path)


def test_a_test_that_exists_only_as_text_is_not_found(tmp_path):
    (tmp_path / "test_it.py").write_text("# def test_a(): ...\nWORDS = 'def test_a(): ...'\n")
    assert "there is no `test_a`" in missing_test("test_it.py::test_a", tmp_path)


def test_the_installed_course_is_the_file_of_the_project():
    assert load_course() == ROWS


def test_the_table_counts_every_row_once():
    table = course_table(ROWS)
    assert len(table) == 25
    assert sum(area["rows"] for area in table) == 694
    assert all(a["rows"] == a["proven"] + a["shown"] + a["open"] for a in table)
    assert table[0]["area"] == "Linear models"
    assert table[0]["rows"] == 33


def test_a_row_that_shows_the_work_of_another_library_says_so_and_counts_apart():
    shown = CourseRow("A-1", "a", "Area", "castalia.nn:PReLU", (ME,), by="torch")
    assert shown.proof == "1 test of torch"
    (area,) = course_table([shown, CourseRow("A-2", "b", "Area")])
    assert area == {"area": "Area", "rows": 2, "proven": 0, "shown": 1, "open": 1}


def written(tmp_path, text):
    file = tmp_path / "course.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "text, said",
    [
        ('[rows.A-1]\nname = "a"', "`rows.A-1` of `course.toml` must have a `area`; got none"),
        ('[rows.A-1]\nname = "a"\narea = "b"\ntest = []', "got `test`. Did you mean `tests`?"),
        ('[rows.A-1]\nname = "a"\narea = "b"\ntests = "t"', "must list its `tests` as strings"),
        ('[rows.A-1]\nname = "a"\narea = "b"\nby = 3', "must name one library in `by`; got 3"),
        ("[rows]\nA-1 = 3", "`rows.A-1` of `course.toml` must be a table; got 3"),
    ],
)
def test_a_badly_written_row_is_named(tmp_path, text, said):
    with pytest.raises(InvalidData) as caught:
        load_course(written(tmp_path, text))
    assert said in str(caught.value)


def test_a_file_that_is_not_toml_is_called_damaged(tmp_path):
    with pytest.raises(DamagedFile, match=r"must be a TOML file; .*line 2"):
        load_course(written(tmp_path, "[rows.A-1]\nname =\n"))


def test_a_missing_course_file_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("castalia.catalog.course.BESIDE", tmp_path / "beside.toml")
    monkeypatch.setattr("castalia.catalog.course.AT_ROOT", tmp_path / "root.toml")
    with pytest.raises(InvalidData, match=r"beside\.toml` or .*root\.toml`; found neither"):
        load_course()
