"""What every strategy does with the estimator it wraps."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import castalia
from castalia import ConvNetClassifier, Distill, MLPClassifier, SelfTraining, Training
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.strategies.strategy_base import join_rows
from castalia.models.strategies.training_changes import changed
from castalia.objectives import CrossEntropy
from castalia.testing.toys import moons, stripes
from castalia.tune import GridSearch

NET = MLPClassifier(hidden=(8,), epochs=5, lr=0.03, training=Training(validation=0))


def test_what_cannot_be_trained_by_gradients_is_refused():
    with pytest.raises(InvalidParameter, match="Distill: `estimator` must be one of ours that is "):
        Distill(DecisionTreeClassifier()).fit(*moons(40))


def test_a_search_reaches_the_wrapped_estimator():
    X, y = moons(60)
    search = GridSearch(Distill(NET, random_state=0), {"estimator__lr": [1e-6, 0.03]}, cv=2)
    assert search.fit(X, y).best_params_ == {"estimator__lr": 0.03}


def test_a_strategy_is_resumed_and_examined_as_the_estimator_is(tmp_path):
    X, y = moons(60)
    training = Training(validation=0, run=str(tmp_path / "run"), watch=True)
    model = Distill(clone(NET).set_params(training=training), random_state=0)
    first = model.fit(X, y).predict_proba(X)
    assert (tmp_path / "run").is_dir()
    assert len(model.history_) == 5
    assert model.diagnosis_ is not None
    np.testing.assert_array_equal(clone(model).fit(X, y).predict_proba(X), first)


def test_images_are_taken_by_a_strategy_around_an_image_classifier():
    X, y = stripes()
    net = ConvNetClassifier(widths=(4,), epochs=1, training=Training(validation=0))
    model = SelfTraining(net, confidence=0.0, rounds=1, random_state=0)
    model.fit(X[:40], y[:40], unlabelled=X[40:60])
    assert model.labelled_ == [20]
    assert model.predict_proba(X[:3]).shape == (3, len(model.classes_))


def test_hooks_are_as_they_were_after_a_change():
    net = clone(NET)
    with pytest.raises(ZeroDivisionError), changed(net, objective=CrossEntropy(), codec=object()):
        raise ZeroDivisionError
    assert "_objective" not in vars(net)
    assert "codec" not in vars(net)


def test_rows_of_another_width_are_refused_as_unlabelled_ones():
    with pytest.raises(InvalidData, match=r"SelfTraining: further rows .*\(40, 2\); got \(5, 3\)"):
        SelfTraining(NET).fit(*moons(40), unlabelled=np.zeros((5, 3)))
    assert join_rows("X", ["a"], ["b"]) == ["a", "b"]


def test_a_saved_strategy_answers_alike_with_its_teacher(tmp_path):
    X, y = moons(60)
    model = Distill(NET, teacher=clone(NET).fit(X, y), random_state=0).fit(X, y)
    castalia.save(model, tmp_path / "model")
    loaded = castalia.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.teacher.predict(X), model.teacher.predict(X))
