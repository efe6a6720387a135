"""Classifiers that begin where another training ended."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import castalia
from castalia import Training
from castalia.errors import CheckpointMismatch, InvalidParameter
from castalia.models.sequence import ConvNet1dClassifier
from castalia.models.vision import (
    ConvNetClassifier,
    LeNetClassifier,
    ResNetClassifier,
)
from castalia.nets.vision.torchvision_weights import save_weights
from castalia.testing.toys import stripes, tones

X, Y = stripes(60)
SMALL = {"depth": 8, "width": 4, "epochs": 1, "random_state": 0}


def changed(one, other):
    a, b = ({k: v.cpu().double() for k, v in net.state_dict().items()} for net in (one, other))
    return {k for k in a if not torch.equal(a[k], b[k])}


@pytest.fixture(scope="module")
def source():
    """A classifier of two of the three kinds of stripes."""
    return ResNetClassifier(**SMALL).fit(X[Y < 2], Y[Y < 2])


@pytest.mark.parametrize("train", ["head", 2, "all"])
def test_what_is_not_trained_keeps_every_bit(source, train):
    model = ResNetClassifier(start=source, train=train, **SMALL).fit(X, Y)
    moved = {name.split(".")[1] for name in changed(model.module_, source.module_)}
    stages = {"stem", "stage1", "stage2", "stage3"}
    kept = {"head": stages, 2: stages - {"stage3"}, "all": set()}[train]
    assert moved == stages - kept | {"classes"}
    assert model.module_.head.classes.out_features == 3


def test_the_head_is_taken_over_when_the_classes_are_the_same(source):
    settings = {**SMALL, "lr": 1e-30}
    same = ResNetClassifier(start=source, train="head", **settings).fit(X[Y < 2], Y[Y < 2])
    assert changed(same.module_, source.module_) == set()
    renamed = np.array(["a", "b"])[Y[Y < 2]]
    other = ResNetClassifier(start=source, train="head", **settings).fit(X[Y < 2], renamed)
    assert "head.classes.weight" in changed(other.module_, source.module_)


@pytest.mark.parametrize("kind", ["saved model", "weights of torchvision"])
def test_a_start_can_be_a_path(source, tmp_path, kind):
    net = source.module_
    if kind == "saved model":
        path = castalia.save(source, tmp_path / "source")
    else:
        net = copy.deepcopy(net).float()  # as such files are
        path = save_weights(net, tmp_path / "w.safetensors", "torchvision")
    model = ResNetClassifier(start=str(path), train="head", **SMALL).fit(X, Y)
    assert changed(model.module_, net) == {"head.classes.weight", "head.classes.bias"}


def test_a_model_loads_though_the_file_it_started_from_is_gone(source, tmp_path):
    path = save_weights(source.module_, tmp_path / "w.safetensors", "torchvision")
    model = ResNetClassifier(start=str(path), train="head", **SMALL).fit(X, Y)
    castalia.save(model, tmp_path / "model")
    Path(path).unlink()
    loaded = castalia.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.start == str(path)


def test_a_model_that_started_from_another_is_saved_with_it(source, tmp_path):
    model = ResNetClassifier(start=source, train="head", **SMALL).fit(X, Y)
    castalia.save(model, tmp_path / "model")
    loaded = castalia.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    again = loaded.fit(X, Y)  # its start has learnt, so it can be fitted anew
    assert changed(again.module_, model.module_) == set()


def test_a_clone_keeps_what_the_start_has_learnt(source):
    model = ResNetClassifier(start=source, train="head", **SMALL)
    made = clone(model)
    assert made is not model
    assert made.start is source
    assert len(cross_val_score(model, X, Y, cv=2)) == 2


def test_a_second_fit_begins_with_the_start_again(source):
    model = ResNetClassifier(start=source, **SMALL)
    first = model.fit(X, Y).module_
    assert changed(model.fit(X, Y).module_, first) == set()


def test_signals_transfer_too():
    signals, y = tones(60)
    settings = {"widths": (4, 8), "convs": 1, "epochs": 1, "random_state": 0}
    source = ConvNet1dClassifier(**settings).fit(signals[y < 2], y[y < 2])
    model = ConvNet1dClassifier(start=source, train="head", **settings).fit(signals, y)
    assert changed(model.module_, source.module_) == {"head.classes.weight", "head.classes.bias"}


def test_early_layers_move_less_with_rates_that_fall_with_depth(source):
    def moved(decay):
        adam = Training(watch=False)
        model = ResNetClassifier(start=source, lr_decay=decay, training=adam, **SMALL).fit(X, Y)
        new, old = model.module_.features, source.module_.features
        name = "stem.conv.weight"
        gap = new.get_parameter(name).detach() - old.get_parameter(name).detach()
        return float(gap.abs().mean())

    # Four parts lie above the stem, and Adam's first steps are as long as the rate.
    assert moved(0.1) == pytest.approx(1e-4 * moved(1.0), rel=0.2)


def test_a_start_with_other_layers_is_named(source):
    with pytest.raises(CheckpointMismatch, match="must be those of this ResNet"):
        ResNetClassifier(start=source, **{**SMALL, "depth": 14}).fit(X, Y)
    lenet = LeNetClassifier(epochs=1, random_state=0).fit(X, Y)
    with pytest.raises(InvalidParameter, match="`start` must hold a ResNet; got a LeNetClassifier"):
        ResNetClassifier(start=lenet, **SMALL).fit(X, Y)


@pytest.mark.parametrize(
    "settings, rule",
    [
        ({"train": "head"}, "`train` must be 'all' without a `start`.*; got 'head'"),
        ({"start": "no/such/folder"}, "`start` must be a fitted classifier, the path of"),
        ({"train": 0}, "`train` must be 'all', 'head' or a whole number of at least 1; got 0"),
        ({"lr_decay": 0.0}, "`lr_decay` must be a number above 0 and at most 1; got 0.0"),
    ],
)
def test_a_wrong_setting_is_named_with_its_rule(settings, rule):
    with pytest.raises(InvalidParameter, match=f"ConvNetClassifier: {rule}"):
        ConvNetClassifier(**settings).fit(X, Y)


def test_more_trained_parts_than_there_are_is_named(source):
    with pytest.raises(InvalidParameter, match="`train` must be at most 5.* 5 parts; got 9"):
        ResNetClassifier(start=source, train=9, **SMALL).fit(X, Y)


def test_a_start_that_has_learnt_nothing_is_refused():
    with pytest.raises(Exception, match="is not fitted yet"):
        ResNetClassifier(start=ResNetClassifier(**SMALL), **SMALL).fit(X, Y)


def test_a_run_is_not_taken_for_that_of_another_start(source, tmp_path):
    other = ResNetClassifier(**SMALL).fit(X[Y > 0], Y[Y > 0])  # reads the same, knows other things
    settings = {**SMALL, "train": "head", "training": castalia.Training(run=tmp_path / "run")}
    first = ResNetClassifier(start=source, **settings).fit(X, Y)
    second = ResNetClassifier(start=other, **settings).fit(X, Y)
    head = {"head.classes.weight", "head.classes.bias"}
    assert changed(first.module_, source.module_) == head
    assert changed(second.module_, other.module_) == head
