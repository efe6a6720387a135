"""The packages that tests use are here, so that none of them is skipped unseen."""

import os
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))


def absent(requirements: list[str]) -> list[str]:
    """Return the packages that are not installed."""
    names = [re.match(r"[\w.-]+", text)[0] for text in requirements]
    return [name for name in names if not _installed(name)]


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def test_every_package_of_the_test_extra_is_installed():
    missing = absent(PROJECT["project"]["optional-dependencies"]["test"])
    partial = os.environ.get("CASTALIA_TEST_EXTRAS") == "partial"
    assert not missing or partial, (
        f"not installed: {', '.join(missing)}. Tests that need them are skipped; install "
        "`castalia[test]`, or set CASTALIA_TEST_EXTRAS=partial."
    )


def test_an_absent_package_is_seen():
    assert absent(["pytest>=8.3", "no-such-package>=1"]) == ["no-such-package"]


TOP = re.compile(r"^(?:import (?=\w+(?: as \w+|[\w.]*)?$)|from (?=[\w.]+ import ))(\w+)", re.M)
NAMES = {"scikit_learn": "sklearn", "pillow": "PIL"}


def test_files_import_nothing_at_their_top_that_an_empty_environment_lacks():
    wanted = (re.match(r"[\w.-]+", text)[0] for text in PROJECT["project"]["dependencies"])
    names = {name.replace("-", "_") for name in wanted}
    known = {NAMES.get(name, name) for name in names} | set(sys.stdlib_module_names)
    # what comes with those, and pytest, which loads the plugin itself
    known |= {"castalia", "joblib", "threadpoolctl", "markupsafe", "click", "pytest"}
    source = Path(__file__).parents[1] / "src" / "castalia"
    found = {
        (str(file.relative_to(source)), name)
        for file in source.rglob("*.py")
        if not file.name.endswith("_kernels.py") and "integrations" not in file.parts
        for name in TOP.findall(file.read_text(encoding="utf-8"))
        if name not in known
    }
    assert found == set()
