"""``constraints-lowest.txt`` holds the lower bounds of pyproject.toml."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def test_every_lower_bound_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = dict(
        re.findall(r"^([\w-]+)==(.+)$", (ROOT / "constraints-lowest.txt").read_text(), re.MULTILINE)
    )
    for line in project["dependencies"]:
        wanted = Requirement(line)
        (bound,) = wanted.specifier
        found = Version(lowest[wanted.name])
        if wanted.name == "torch":  # older wheels bring the packages of CUDA along
            assert f"torch=={found}" in (ROOT / "constraints.txt").read_text().splitlines()
        else:
            least = Version(bound.version).release
            assert found.release[: len(least)] == least, line
        assert wanted.specifier.contains(found), line
