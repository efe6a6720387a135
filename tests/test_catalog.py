"""A record for every estimator, an estimator for every record."""

import importlib
import inspect
import pkgutil
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from castalia.catalog import SYSTEMS, System, find, models_table, system
from castalia.catalog.course import load_course
from castalia.errors import InvalidParameter

KINDS = {"table", "image", "text", "sequence", "tree", "graph", "tasks", "world"}
TIERS = {"stable", "experimental", "teaching"}
FAMILIES = {
    *("linear", "dense", "vision", "sequence", "language", "graphs", "generative"),
    *("probabilistic", "kernel", "meta", "ensemble", "strategies", "control"),
}
COURSE = {row.id for row in load_course()}
RECORDS = list(SYSTEMS.values())
GOOD = System(
    name="GoodClassifier",
    path="castalia.models.dense:GoodClassifier",
    family="dense",
    tasks=("classification",),
    data="table",
    summary="A record without faults",
    reference="1958, Rosenblatt, The perceptron, Psychological Review 65",
    small={"epochs": 3},
    toy="moons",
    pass_mark=0.9,
    rows=("LIN-01",),
)


def load(record: System) -> type:
    package, attribute = record.path.split(":")
    return getattr(importlib.import_module(package), attribute)


def faults(record: System) -> list[str]:
    """List what is wrong with a record, without importing its class."""
    rules = {
        "path is `castalia.models.<family>:<name>`": record.path
        == f"castalia.models.{record.family}:{record.name}",
        "family is a folder of models": record.family in FAMILIES,
        "name is words put together": bool(re.fullmatch(r"[A-Z][A-Za-z0-9]+", record.name)),
        "tasks are named": bool(record.tasks) and all(record.tasks),
        "data is a kind of input": record.data in KINDS,
        "tier is known": record.tier in TIERS,
        "summary is one line without a full stop": bool(
            re.fullmatch(r"[^\n]+[^\n.]", record.summary)
        ),
        "reference begins with a year": bool(re.match(r"[12]\d{3}, ", record.reference)),
        "the smallest configuration is given": bool(record.small),
        "the toy problem is named": bool(record.toy),
        "the pass mark is set": record.pass_mark != 0,  # a log-likelihood may be below 0
        "rows are in the course": set(record.rows) <= COURSE,
    }
    return [rule for rule, holds in rules.items() if not holds]


def refused(cls: type, arguments: dict) -> list[str]:
    """List the arguments that a constructor does not have."""
    return [name for name in arguments if name not in inspect.signature(cls).parameters]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_the_record_is_well_formed(record):
    assert faults(record) == []


def test_names_are_unique_over_all_files_of_the_catalogue():
    files = Path(inspect.getfile(System)).parent.glob("*.py")
    stems = {file.stem for file in files} - {"__init__", "systems"}
    modules = [importlib.import_module(f"castalia.catalog.{stem}") for stem in sorted(stems)]
    groups = [g for module in modules for g in vars(module).values() if isinstance(g, tuple)]
    written = [record.name for group in groups for record in group if isinstance(record, System)]
    assert sorted(written) == sorted(SYSTEMS)


@pytest.mark.parametrize(
    "change, rule",
    [
        ({"path": "castalia.models.dense.mlp_estimators:GoodClassifier"}, "path is"),
        ({"path": "castalia.models.dense:Other"}, "path is"),
        ({"name": "good", "path": "castalia.models.dense:good"}, "name is"),
        ({"family": "misc", "path": "castalia.models.misc:GoodClassifier"}, "family is"),
        ({"tasks": ()}, "tasks are"),
        ({"data": "tables"}, "data is"),
        ({"tier": "beta"}, "tier is"),
        ({"summary": "Ends with a stop."}, "summary is"),
        ({"reference": "Rosenblatt, 1958"}, "reference begins"),
        ({"small": {}}, "smallest"),
        ({"toy": ""}, "toy"),
        ({"pass_mark": 0.0}, "pass mark"),
        ({"rows": ("LIN-99",)}, "rows are"),
    ],
)
def test_a_faulty_record_is_found(change, rule):
    assert faults(GOOD) == []
    (fault,) = faults(replace(GOOD, **change))
    assert rule in fault


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_the_class_of_the_record_is_public_in_its_package(record):
    package = importlib.import_module(record.path.split(":")[0])
    assert hasattr(package, "__path__"), "the path must name a package, not a file"
    assert record.name in package.__all__
    assert load(record).__name__ == record.name


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_the_class_accepts_the_configurations_of_its_record(record):
    cls = load(record)
    for arguments in (record.small, *record.sizes.values()):
        assert refused(cls, arguments) == []
        assert {name: getattr(cls(**arguments), name) for name in arguments} == dict(arguments)


def test_an_argument_that_a_class_does_not_have_is_found():
    class Small:
        def __init__(self, *, hidden=3): ...

    assert refused(Small, {"hidden": 2, "hiden": 2}) == ["hiden"]


def estimators(packages: list, bases: tuple) -> set[str]:
    """Return the public, concrete estimators of some packages."""
    public = {getattr(package, name) for package in packages for name in package.__all__}
    classes = {thing for thing in public if inspect.isclass(thing) and issubclass(thing, bases)}
    return {cls.__name__ for cls in classes if not inspect.isabstract(cls)}


def test_every_estimator_has_a_record_and_every_record_an_estimator():
    import castalia.models
    from castalia.base import DirectEstimator, Estimator

    names = [name for _, name, _ in pkgutil.iter_modules(castalia.models.__path__)]
    packages = [importlib.import_module(f"castalia.models.{name}") for name in names]
    assert estimators(packages, (Estimator, DirectEstimator)) == set(SYSTEMS)


def test_public_concrete_estimators_are_told_from_the_rest():
    class Base: ...

    class Model(Base): ...

    package = SimpleNamespace(__all__=["Model", "number", "Other"], number=3, Other=dict)
    package.Model, package.Hidden = Model, type("Hidden", (Base,), {})
    assert estimators([package], (Base,)) == {"Model"}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_system_is_found_at_the_root(record):
    import castalia

    assert getattr(castalia, record.name) is load(record)


def test_find_wants_every_word():
    names = {record.name for record in find("mlp REGRESS")}
    assert "MLPRegressor" in names
    assert "MLPClassifier" not in names
    assert find("mlp nothing-like-it") == []


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(InvalidParameter, match=r"Did you mean `MLPClassifier`\?"):
        system("MLPClasifier")


def test_the_table_has_a_row_of_text_for_every_system():
    table = models_table()
    assert [row["name"] for row in table] == list(SYSTEMS)
    assert all(isinstance(cell, str) and cell for row in table for cell in row.values())
