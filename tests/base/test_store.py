import base64
import builtins
import dataclasses
import errno
import json
import os
import shutil
import sys
import types
from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from castalia.base import saved_values as codec
from castalia.base import store
from castalia.base.store import load, save
from castalia.catalog import SYSTEMS, System
from castalia.errors import (
    CastaliaError,
    CastaliaWarning,
    CheckpointMismatch,
    DamagedFile,
    InvalidData,
    InvalidParameter,
    WriteFailed,
)
from castalia.protocols import Spec


@dataclasses.dataclass
class FakeTraining:
    patience: int = 3
    callbacks: tuple = ()


class Tied(torch.nn.Module):
    """Two layers that share a weight, and a batch norm with buffers."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = torch.nn.Linear(inputs, outputs)
        self.second = torch.nn.Linear(inputs, outputs)
        self.second.weight = self.first.weight
        self.norm = torch.nn.BatchNorm1d(outputs)

    def forward(self, x):
        return self.norm(self.first(x) + self.second(x))


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class FakeClassifier(BaseEstimator):
    hidden: tuple = (4,)
    lr: float = 0.1
    training: object = None
    inner: object = None
    _unsaved = ("scratch_",)

    def _network(self, spec):
        return Tied(spec.inputs, spec.outputs)

    def fit(self, dtype=torch.float32):
        self.spec_ = Spec(inputs=3, outputs=2, class_weight=(0.5, 1.5), extra={"n": 1})
        self.module_ = self._network(self.spec_).to(dtype)
        self.module_(torch.randn(5, 3, dtype=dtype))  # moves the running averages
        self.classes_ = np.array(["no", "yes"], dtype=object)
        self.means_ = np.array([0.1, np.nan])
        self.history_ = [{"loss": 0.25, "epoch": 0}, {"loss": float("inf"), "epoch": 1}]
        self.n_features_in_ = 3
        self.scratch_ = object()
        self._private_ = object()
        return self


@pytest.fixture(scope="module", autouse=True)
def fake():
    """Put a fake estimator and its training record where the catalogue and the codec find them."""
    patch = pytest.MonkeyPatch()
    package = types.ModuleType("castalia_fake_models")
    package.FakeClassifier = FakeClassifier
    patch.setitem(sys.modules, "castalia_fake_models", package)
    record = System(
        "FakeClassifier", "castalia_fake_models:FakeClassifier", "fake", ("x",), "table", "fake"
    )
    patch.setitem(SYSTEMS, "FakeClassifier", record)
    patch.setattr(codec, "_RECORDS", dict(codec._RECORDS))
    patch.setattr(codec, "_BY_CLASS", dict(codec._BY_CLASS))
    codec._RECORDS.pop("Training")  # the fake takes the place of the real one
    codec.register(FakeTraining, "Training")
    yield
    patch.undo()


def assert_same(a, b):
    assert type(a) is type(b)
    assert a.hidden == b.hidden
    assert a.training == b.training
    assert a.history_ == b.history_
    assert a.spec_ == b.spec_
    assert a.classes_.tolist() == b.classes_.tolist()
    assert a.means_.tobytes() == b.means_.tobytes()
    ours, theirs = a.module_.state_dict(), b.module_.state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert all(ours[name].dtype == theirs[name].dtype for name in ours)


@pytest.fixture
def saved(tmp_path):
    return save(FakeClassifier(training=FakeTraining(5)).fit(), tmp_path / "model")


def head_of(path):
    return json.loads((path / "model.json").read_text())


def reseal(path, head):
    """Write a model.json whose checksum is right, as a stranger could."""
    head["checksum"] = store._checksum(head)
    (path / "model.json").write_text(json.dumps(head))


def test_a_fitted_estimator_comes_back_equal(tmp_path):
    est = FakeClassifier(hidden=(8, 8), training=FakeTraining(7)).fit()
    assert save(est, tmp_path / "deep" / "model") == tmp_path / "deep" / "model"
    again = load(tmp_path / "deep" / "model")
    assert_same(again, est)
    assert not again.module_.training
    assert not hasattr(again, "scratch_")
    assert not hasattr(again, "_private_")
    assert sorted(os.listdir(tmp_path / "deep")) == ["model"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_the_networks_dtype_is_kept(tmp_path, dtype):
    est = FakeClassifier().fit(dtype)
    again = load(save(est, tmp_path / "model"))
    assert_same(again, est)
    assert again.module_.first.weight.dtype == dtype


def test_tied_weights_stay_tied(saved):
    module = load(saved).module_
    assert module.first.weight is module.second.weight
    assert module.first.weight.requires_grad


def test_an_unfitted_estimator_keeps_only_its_parameters(tmp_path):
    again = load(save(FakeClassifier(lr=float("inf")), tmp_path / "model"))
    assert again.lr == float("inf")
    assert not hasattr(again, "module_")


def test_estimators_inside_estimators_are_saved_with_their_networks(tmp_path):
    est = FakeClassifier(inner=FakeClassifier(hidden=(1,)).fit()).fit()
    again = load(save(est, tmp_path / "model"))
    assert_same(again.inner, est.inner)
    assert_same(again, est)


def test_the_folder_is_readable_and_holds_two_files(saved):
    head = head_of(saved)
    assert sorted(os.listdir(saved)) == ["model.json", "weights.safetensors"]
    assert head["class"] == "FakeClassifier"
    assert head["format"] == 1
    assert head["parameters"]["training"]["name"] == "Training"
    assert head["module_"]["first.bias"] == {"$": "tensor", "name": "module_.first.bias"}
    umask = os.umask(0)
    os.umask(umask)
    assert saved.stat().st_mode & 0o777 == 0o777 & ~umask


def test_saving_twice_gives_the_same_bytes(tmp_path):
    est = FakeClassifier().fit()
    a, b = save(est, tmp_path / "a"), save(est, tmp_path / "b")
    for name in os.listdir(a):
        assert (a / name).read_bytes() == (b / name).read_bytes()


def test_loading_leaves_the_global_random_state_alone(saved):
    before = torch.get_rng_state()
    load(saved)
    assert torch.equal(before, torch.get_rng_state())


def test_callbacks_are_left_out_with_a_warning(tmp_path):
    class Bell:
        pass

    training = FakeTraining(2, (Bell(),))
    with pytest.warns(CastaliaWarning, match="left out of the saved model: `Bell`"):
        path = save(FakeClassifier(training=training), tmp_path / "model")
    assert load(path).training == FakeTraining(2)
    assert len(training.callbacks) == 1


def test_a_saved_model_is_replaced_and_a_link_stays_a_link(saved, tmp_path):
    (tmp_path / "latest").symlink_to(saved)
    save(FakeClassifier(hidden=(9,)), tmp_path / "latest")
    assert load(saved).hidden == (9,)
    assert (tmp_path / "latest").is_symlink()


def test_a_folder_that_is_not_a_model_is_refused(saved, tmp_path):
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(InvalidData, match=r"a folder with `model\.json`, `notes\.txt`"):
        save(FakeClassifier(), saved)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidData, match="a file"):
        save(FakeClassifier(), tmp_path / "file")
    (tmp_path / "xgboost").mkdir()
    (tmp_path / "xgboost" / "model.json").write_text('{"learner": 1}')
    with pytest.raises(InvalidData, match="Choose another path"):
        save(FakeClassifier(), tmp_path / "xgboost")
    (tmp_path / "empty").mkdir()
    save(FakeClassifier(), tmp_path / "empty")


def test_a_full_disk_leaves_the_older_model(saved, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    old = load(saved)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteFailed, match=r"No space left.*untouched"):
        save(FakeClassifier().fit(), saved)
    monkeypatch.undo()
    assert_same(load(saved), old)
    assert os.listdir(saved.parent) == ["model"]


def test_a_value_that_cannot_be_saved_is_named_and_nothing_is_written(tmp_path):
    est = FakeClassifier().fit()
    est.helper_ = {"deep": object()}
    with pytest.raises(InvalidParameter, match=r"`fitted\.helper_\.deep`"):
        save(est, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_estimator_from_outside_the_catalogue_is_refused(tmp_path):
    class Mine(BaseEstimator):
        pass

    impostor = type("FakeClassifier", (BaseEstimator,), {})
    for est in (Mine(), impostor()):
        with pytest.raises(
            InvalidParameter, match="`est` must be an estimator of Castalia's catalogue"
        ):
            save(est, tmp_path / "model")


# -- reading what is wrong --


def test_a_missing_path_suggests_a_near_one(saved, tmp_path):
    with pytest.raises(InvalidData, match=r"which does not exist\. Did you mean `model`"):
        load(tmp_path / "modl")
    with pytest.raises(InvalidData, match="which does not exist"):
        load(tmp_path / "no" / "where")
    with pytest.raises(InvalidData, match="which is a file"):
        load(saved / "model.json")


def test_an_interrupted_replacement_is_pointed_at(saved, tmp_path):
    saved.rename(tmp_path / ".model.abc.old")
    with pytest.raises(InvalidData, match=r"interrupted.*\.model\.abc\.old"):
        load(saved)


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_a_lost_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(DamagedFile, match=f"has no `{name}`"):
        load(saved)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "3", "{}", '{"format": true}', "\xff"])
def test_a_model_json_that_is_not_one_is_refused(saved, text):
    (saved / "model.json").write_text(text, "latin-1")
    with pytest.raises(DamagedFile, match=r"model\.json"):
        load(saved)


def test_a_newer_format_names_both_versions(saved):
    head = head_of(saved) | {"format": 2, "castalia": "9.1"}
    (saved / "model.json").write_text(json.dumps(head))
    with pytest.raises(
        CheckpointMismatch, match=r"written by Castalia 9\.1.*this is \d+\.\d+\.\d+.*Upgrade"
    ):
        load(saved)


def test_an_edited_parameter_is_noticed(saved):
    text = (saved / "model.json").read_text()
    (saved / "model.json").write_text(text.replace('"lr": 0.1', '"lr": 0.2'))
    with pytest.raises(DamagedFile, match="altered"):
        load(saved)


def test_an_unknown_class_suggests_a_near_one(saved):
    reseal(saved, head_of(saved) | {"class": "FakeClasifier"})
    with pytest.raises(
        CheckpointMismatch, match="nothing was imported. Did you mean `FakeClassifier`"
    ):
        load(saved)


def test_missing_and_unfitting_tensors_are_named(saved, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(FakeClassifier, "_network", lambda self, spec: Tied(spec.inputs, 7))
        with pytest.raises(
            CheckpointMismatch, match=r"`first\.weight` must have shape \(7, 3\); got \(2, 3\)"
        ):
            load(saved)
    head = head_of(saved)
    head["module_"]["extra"] = head["module_"].pop("first.bias")
    reseal(saved, head)
    with pytest.raises(CheckpointMismatch, match=r"`first\.bias` is missing; `extra` is unknown"):
        load(saved)
    head["fitted"]["means_"]["data"]["name"] = "elsewhere"
    reseal(saved, head)
    with pytest.raises(DamagedFile, match="'elsewhere', which is missing"):
        load(saved)


def test_a_parameter_of_another_version_is_a_mismatch(saved):
    head = head_of(saved)
    head["parameters"]["colour"] = 1
    reseal(saved, head)
    with pytest.raises(CheckpointMismatch, match="`FakeClassifier` cannot be made.*colour"):
        load(saved)


EVIL = [
    "os:system",
    "builtins.eval",
    "builtins:eval",
    "os.system",
    "subprocess:Popen",
    "antigravity:x",
]


@pytest.mark.parametrize("name", EVIL)
def test_a_strangers_names_are_never_imported(saved, monkeypatch, name):
    def refuse(wanted, *args, **kwargs):
        assert wanted.split(".")[0] not in ("os", "builtins", "subprocess", "antigravity"), wanted
        return real(wanted, *args, **kwargs)

    real = builtins.__import__
    whole = head_of(saved)
    for where in ("class", "record"):
        head = json.loads(json.dumps(whole))
        if where == "class":
            head["class"] = name
        else:
            head["fitted"]["evil_"] = {"$": "record", "name": name, "state": ["true"]}
        reseal(saved, head)
        with monkeypatch.context() as patch:
            patch.setattr(
                store, "import_module", lambda wanted: refuse(wanted) and import_module(wanted)
            )
            patch.setattr(builtins, "__import__", refuse)
            patch.setattr(os, "system", lambda *_: pytest.fail("ran a command"))
            with pytest.raises(CheckpointMismatch, match="nothing was imported"):
                load(saved)


@pytest.mark.parametrize("name", ["fit", "_network", "__class__", "module", "_unsaved", "a b_"])
def test_a_file_cannot_set_other_attributes(saved, name):
    head = head_of(saved)
    head["fitted"][name] = 1
    reseal(saved, head)
    with pytest.raises(DamagedFile, match="is not a fitted attribute"):
        load(saved)


def test_files_outside_the_folder_are_not_read(saved):
    head = head_of(saved)
    head["files"] = {"../../secret": "0" * 64}
    reseal(saved, head)
    with pytest.raises(DamagedFile):
        load(saved)


# -- files of earlier releases --

# Written by version 0.1.0; it must load for ever.
GOLDEN = json.loads("""
{
 "format": 1,
 "castalia": "0.1.0",
 "class": "FakeClassifier",
 "parameters": {"hidden": {"$": "tuple", "items": [2, 3]}, "inner": null, "lr": 0.1,
  "training": {"$": "record", "name": "Training",
   "state": {"patience": 5, "callbacks": {"$": "tuple", "items": []}}}},
 "fitted": {"classes_": {"$": "array", "dtype": "|O", "shape": [2], "data": ["no", "yes"]},
  "means_": {"$": "array", "dtype": "<f8", "data": {"$": "tensor", "name": "fitted.means_"}}},
 "files": {
  "weights.safetensors": "472f12dbb6388358a99d3d85d0b4961f79b0ec0abe39000dc09f6a725d31576f"},
 "checksum": "af34cdc40061c8fbce654003e52dc155e4a5689ac6ced1eb58f5d822bdd70f6d"
}
""")
GOLDEN_WEIGHTS = (
    "cAAAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJmb3JtYXQiOiJjYXN0YWxpYS1tb2RlbC0xIn0sImZpdHRlZC5tZWFu"
    "c18iOnsiZHR5cGUiOiJGNjQiLCJzaGFwZSI6WzJdLCJkYXRhX29mZnNldHMiOlswLDE2XX19AAAAAAAA4D8AAAAA"
    "AADwvw=="
)


def test_a_model_of_the_first_release_still_loads(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps(GOLDEN))
    (tmp_path / "weights.safetensors").write_bytes(base64.b64decode(GOLDEN_WEIGHTS))
    est = load(tmp_path)
    assert est.hidden == (2, 3)
    assert est.training == FakeTraining(5)
    assert est.classes_.tolist() == ["no", "yes"]
    assert est.means_.tolist() == [0.5, -1.0]


# -- fuzzing --


@pytest.fixture(scope="module")
def whole(tmp_path_factory, fake):
    est = FakeClassifier(training=FakeTraining(5)).fit()
    path = save(est, tmp_path_factory.mktemp("whole") / "model")
    return est, {name: (path / name).read_bytes() for name in os.listdir(path)}


def write_model(path, files):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, raw in files.items():
        (path / name).write_bytes(raw)
    return path


relaxed = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@relaxed
@given(st.data())
def test_damage_loads_equal_or_raises_our_errors(whole, tmp_path, data):
    est, files = whole
    name = data.draw(st.sampled_from(sorted(files)))
    raw = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw))) :]
    try:
        again = load(write_model(tmp_path / "model", files | {name: bytes(raw)}))
    except CastaliaError:
        return
    assert_same(again, est)


def places(tree, path=()):
    yield path
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, item in items:
        yield from places(item, (*path, key))


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(0, 1)
    | st.sampled_from(["", "x", "tensor"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["$", "name", "items", "state", "hex", "data", "dtype", "shape", "value"]
            ),
            inner
            | st.sampled_from(
                ["record", "array", "scalar", "tuple", "dict", "Spec", "FakeClassifier"]
            ),
            max_size=4,
        )
    ),
    max_leaves=6,
)


@relaxed
@given(st.data())
def test_a_strangers_well_sealed_nonsense_raises_our_errors_only(whole, tmp_path, data):
    _, files = whole
    head = json.loads(files["model.json"])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([p for p in places(head) if p]))
        owner = head
        for key in place[:-1]:
            owner = owner[key]
        owner[place[-1]] = data.draw(junk)
    path = write_model(tmp_path / "model", files)
    reseal(path, head)
    said = ""
    try:
        load(path)
    except CastaliaError as error:
        said = str(error)
    assert "\n" not in said
