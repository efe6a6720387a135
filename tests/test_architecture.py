"""What ARCHITECTURE.md claims, read from it and checked."""

import dataclasses
import importlib
import inspect
import re

import pytest
from tests.documents import NUMBERS, SOURCE, document, missing_files, quoted, sentence
from tests.test_house import FLOORS, GROUND, USE_OTHER_FAMILIES, loaded_by

import castalia
from castalia import protocols
from castalia.base import DirectEstimator, Estimator
from castalia.catalog import SYSTEMS
from castalia.data.images import ImageAdapter
from castalia.train import Callback, Training

TEXT = document("ARCHITECTURE.md")


def test_every_file_and_folder_that_is_named_is_there():
    assert missing_files(TEXT) == []


def test_the_names_of_the_library_that_are_quoted_resolve():
    names = [w for w in quoted(TEXT) if re.fullmatch(r"castalia(\.\w+)+(:\w+)?", w)]
    assert names
    for name in names:
        module, _, attribute = name.partition(":")
        if module == "castalia.__version__":
            module, attribute = "castalia", "__version__"
        found = importlib.import_module(module)
        assert not attribute or hasattr(found, attribute)


def test_the_floors_are_those_of_the_house():
    block = re.search(r"```\n(\d.*?)```", TEXT, re.S)[1]
    lines = [line.split(maxsplit=1) for line in block.splitlines()]
    shown = {
        package: float(floor)
        for floor, rest in lines
        for package in re.split(r"\s{3,}", rest)[0].split()
    }
    assert shown == {name: floor for name, floor in FLOORS.items() if name.strip("_") == name != ""}


def test_the_exceptions_on_the_ground_and_among_families_are_those_of_the_house():
    said = sentence(TEXT, r"On floor 0, `utils` imports only `(\w+)`, and `catalog` only ([^.]+)\.")
    assert {said.group(1)} == GROUND["utils"]
    assert set(quoted(said.group(2))) == GROUND["catalog"]
    said = sentence(TEXT, r"a family uses no other family; ([^.]+), which wrap other models, may")
    assert set(quoted(said.group(1))) == USE_OTHER_FAMILIES


def test_importing_castalia_loads_no_torch():
    package = sentence(TEXT, r"`import castalia` loads no (\w+)").group(1)
    assert loaded_by("import castalia", [package]) == []


def test_a_callback_has_the_events_that_are_listed():
    said = sentence(TEXT, r"\*\*Callback\.\*\* (\w+) events: ([^.]+)\.")
    events = [name for name in vars(Callback) if name.startswith("on_")]
    assert quoted(said.group(2)) == events
    assert NUMBERS[said.group(1).lower()] == len(events)


def test_an_estimator_has_the_fields_and_hooks_that_are_listed():
    said = sentence(TEXT, r"(\w+) fields are shared by all \(([^)]+)\)")
    fields = [field.name for field in dataclasses.fields(Estimator)]
    assert quoted(said.group(2)) == fields
    assert NUMBERS[said.group(1).lower()] == len(fields)
    said = sentence(
        TEXT, r"Two\s+hooks, `(\w+)` and `(\w+)`, and two class attributes, `(\w+)` and `(\w+)`"
    )
    assert said.groups() == ("_network", "_objective", "adapter", "codec")
    assert all(hasattr(castalia.MLPClassifier, name) for name in said.groups())
    solve = sentence(TEXT, r"A direct estimator has `(\w+)` instead").group(1)
    assert hasattr(DirectEstimator, solve)
    assert not hasattr(Estimator, solve)


def test_concrete_classes_are_not_subclassed():
    sentence(TEXT, r"Concrete classes are not subclassed")
    classes = {getattr(castalia, name) for name in SYSTEMS}
    assert [(a, b) for a in classes for b in classes if a is not b and issubclass(a, b)] == []


def test_the_protocols_that_are_named_exist():
    said = sentence(TEXT, r"small protocols of `castalia/protocols\.py` \(([^)]+)\)")
    assert all(hasattr(protocols, name) for name in quoted(said.group(1)))
    said = sentence(TEXT, r"\*\*Objective\.\*\* `terms\(([^)]+)\)`").group(1)
    wanted = [name.strip() for name in said.split(",")]
    assert list(inspect.signature(protocols.Objective.terms).parameters)[1:] == wanted


def test_an_adapter_has_the_methods_that_are_named():
    part = TEXT.split("**Adapter.**")[1].split("\n\n")[0]
    named = {word.partition("(")[0] for word in quoted(part)} - {"Spec"}
    assert {"check", "fit", "rows", "blocks", "state"} <= named
    assert [name for name in named if not hasattr(ImageAdapter(), name)] == []


def test_a_training_can_be_searched_by_its_name():
    said = sentence(TEXT, r"with `(\w+)` and `(\w+)`, so `training__(\w+)` can be searched")
    assert hasattr(Training, said.group(1))
    assert hasattr(Training, said.group(2))
    assert said.group(3) in Training().get_params()


def test_a_record_of_the_catalogue_points_at_a_package():
    sentence(TEXT, r"A record points at a package \([^)]+\), never at a file")
    for record in SYSTEMS.values():
        folder = SOURCE.joinpath(*record.path.split(":")[0].split(".")[1:])
        assert (folder / "__init__.py").is_file(), record.path


@pytest.mark.parametrize("step", ["read", "split", "baselines", "network", "doctor", "verdict"])
def test_the_flow_of_the_method_has_the_steps_that_are_named(step):
    said = sentence(TEXT, r"runs one flow \(`([\w/.]+)`\) for every kind of data: ([^.]+)\.")
    assert step in said.group(2)
    assert step in (SOURCE / said.group(1)).read_text(encoding="utf-8")
