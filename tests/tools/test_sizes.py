"""The size report counts what it says it counts."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def sizes():
    file = Path(__file__).parents[2] / "tools" / "sizes.py"
    spec = importlib.util.spec_from_file_location("sizes_under_test", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


SOURCE = '''"""A file."""

@decorated
def f(a):
    """Two

    lines."""
    # a comment
    b = a

    return b

@dataclass(kw_only=True)
class C(Base):
    adapter: ClassVar[type] = None
    one: int = 1
    two: int = 2

class D:
    def __init__(self, a, *, b=1): ...

class E: ...
'''


def test_a_file_is_measured_line_by_line(sizes):
    file = sizes.measure("src/castalia/nets/a.py", SOURCE)
    assert file.lines == 22
    assert sorted(file.function) == [1, 9]  # the constructor; f from its decorator to its return
    assert sorted(file.code) == [1, 3]  # def, assignment, return
    assert sorted(file.classes) == [1, 2, 5]
    assert sorted(file.fields) == [0, 2, 2]


def test_packages_are_told_apart(sizes):
    assert sizes.measure("src/castalia/nets/deep/a.py", "").package == "nets"
    assert sizes.measure("src/castalia/errors.py", "").package == "(root)"


def test_percentiles_are_values_that_occur(sizes):
    assert sizes.percentiles([3, 1, 2]) == {"p50": 2, "p90": 3, "max": 3}
    assert sizes.percentiles([]) == {"p50": 0, "p90": 0, "max": 0}
    assert sizes.percentiles(range(100)) == {"p50": 49, "p90": 89, "max": 99}


def test_the_summary_has_a_total_and_every_package(sizes):
    files = [
        sizes.measure(f"src/castalia/{name}/a.py", "X = 1\n" * 3) for name in ("nets", "train")
    ]
    found = sizes.summary(files)
    assert list(found) == ["total", "nets", "train"]
    assert found["total"]["all"] == {"files": 2, "lines": 6, "functions": 0}
    assert found["nets"]["file"] == {"p50": 3, "p90": 3, "max": 3}


def test_the_comparison_names_only_what_moved(sizes):
    def one(text):
        return sizes.summary([sizes.measure("src/castalia/nets/a.py", text)])

    assert sizes.compare(one("X = 1"), one("Y = 1")) == []
    moved = sizes.compare(one("X = 1\nY = 2"), one("X = 1"))
    assert [line.split() for line in moved[:2]] == [
        ["total", "all", "lines", "1", "->", "2"],
        ["total", "file", "p50", "1", "->", "2"],
    ]
    assert {line.split()[0] for line in moved} == {"total", "nets"}


def test_a_package_that_is_new_or_gone_is_compared_with_nothing(sizes):
    here = sizes.summary([sizes.measure("src/castalia/nets/a.py", "X = 1")])
    lines = sizes.compare(here, {}) + sizes.compare({}, here)
    assert ["nets", "all", "files", "0", "->", "1"] in [line.split() for line in lines]
    assert ["nets", "all", "files", "1", "->", "0"] in [line.split() for line in lines]


@pytest.fixture
def repository(tmp_path, sizes, monkeypatch):
    """A repository whose committed file has one line, and whose working file has two."""
    file = tmp_path / "src" / "castalia" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text("X = 1\n")
    name = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*name, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    file.write_text("X = 1\nY = 2\n")
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    return tmp_path


def test_the_report_compares_the_working_tree_with_a_commit(sizes, repository, capsys):
    assert sizes.main(["--compare", "HEAD"]) == 0
    told = capsys.readouterr().out
    assert "     2  src/castalia/a.py" in told
    assert "since HEAD:" in told
    assert "1 -> 2" in told


def test_the_json_holds_the_same_numbers(sizes, repository, capsys):
    sizes.main(["--json", "--compare", "HEAD"])
    told = json.loads(capsys.readouterr().out)
    assert told["longest"] == {"src/castalia/a.py": 2}
    assert told["sizes"]["total"]["all"]["lines"] == 2
    assert told["compared"]["total"]["all"]["lines"] == 1


def test_an_unknown_commit_is_named(sizes, repository):
    with pytest.raises(SystemExit, match="git could not read"):
        sizes.main(["--compare", "no-such-commit"])
