"""Public names and parameters stay, or are deprecated for two minor versions first.

``tests/golden/public_names.json`` has what the last release offered. Write it again at a release:
``python -m tests.test_deprecation``.
"""

import inspect
import json
import re
from pathlib import Path

import pytest

import castalia
from castalia.catalog import SYSTEMS
from castalia.catalog.old_names import OLD_NAMES, OldName, new_name

FILE = Path(__file__).parent / "golden" / "public_names.json"


def offered():
    """Return the names of the root; of classes and functions, their parameters."""
    found = {}
    for name in castalia.__all__:
        thing = getattr(castalia, name)
        found[name] = sorted(inspect.signature(thing).parameters) if callable(thing) else []
    return found


def minor(version):
    return tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", version).groups())


def test_what_the_last_release_offered_is_still_there():
    now, before = offered(), json.loads(FILE.read_text())
    lost = [name for name in before if name not in now and name not in OLD_NAMES]
    assert not lost, f"add to castalia.catalog.old_names before taking away: {lost}"
    parameters = {
        name: sorted(set(kept) - set(now[name]))
        for name, kept in before.items()
        if name in now and set(kept) - set(now[name])
    }
    assert not parameters, f"parameters must stay for two minor versions: {parameters}"


def test_old_names_last_two_minor_versions_and_no_longer():
    for name, old in OLD_NAMES.items():
        assert name not in SYSTEMS
        assert hasattr(castalia, old.new)
        since, gone = minor(old.since), minor(old.gone)
        assert gone >= (since[0], since[1] + 2) or gone[0] > since[0], f"{name} goes too early"
        assert minor(castalia.__version__) < gone, f"remove {name} now"
        assert f"`{name}`" in (Path(__file__).parents[1] / "CHANGELOG.md").read_text(
            encoding="utf-8"
        )


def test_an_old_name_works_and_warns(monkeypatch):
    names = {"PerceptronClassifier": OldName("Perceptron", "0.4", "0.6")}
    with pytest.warns(FutureWarning, match="called castalia.Perceptron since 0.4; .* in 0.6"):
        assert new_name("PerceptronClassifier", names) == "Perceptron"
    monkeypatch.setattr("castalia.new_name", lambda name: new_name(name, names))
    with pytest.warns(FutureWarning, match="the old name is removed"):
        assert castalia.PerceptronClassifier is castalia.Perceptron


if __name__ == "__main__":
    FILE.write_text(json.dumps(offered(), indent=0) + "\n")
