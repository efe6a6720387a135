"""The recursive network as an estimator: formulas it evaluates, and classes of nodes."""

import numpy as np
import pytest

from castalia import RecursiveNetwork, load, save
from castalia.data import Tree
from castalia.errors import InvalidData
from castalia.testing.toys import formulas

SETTINGS = {"hidden": 12, "dim": 8, "epochs": 15, "lr": 3e-2, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    X, _ = formulas(300)
    return RecursiveNetwork(**SETTINGS).fit(X, [tree.labels for tree in X])


def test_formulas_deeper_than_any_seen_are_evaluated(fitted):
    X, y = formulas(400, depth=5, seed=1)
    assert fitted.score(X, y) > 0.99
    right = np.concatenate(fitted.predict_nodes(X)) == np.concatenate([t.labels for t in X])
    assert right.mean() > 0.99


def test_texts_in_brackets_are_trees(fitted, tmp_path):
    X, _ = formulas(20, seed=2)
    texts = [str(tree) for tree in X]
    np.testing.assert_array_equal(fitted.predict_proba(texts), fitted.predict_proba(X))
    kept = load(save(fitted, tmp_path / "model"))
    np.testing.assert_array_equal(kept.predict_proba(texts), fitted.predict_proba(X))


def test_nodes_without_a_class_cost_nothing():
    X, _ = formulas(60)
    hidden = [np.array([tree.label] + [None] * (len(tree) - 1), dtype=object) for tree in X]
    settings = {**SETTINGS, "epochs": 2}
    partly = RecursiveNetwork(**settings).fit(X, hidden)
    roots = RecursiveNetwork(**settings).fit(X, [tree.label for tree in X])
    assert partly.classes_.tolist() == roots.classes_.tolist() == [0, 1]
    ratio = partly.history_[0]["loss"] * np.mean([len(t) for t in X]) / roots.history_[0]["loss"]
    assert ratio == pytest.approx(1, rel=0.05)


def test_words_may_be_classes_and_validation_trees_may_be_given():
    X, _ = formulas(80)
    words = [np.where(tree.labels == 1, "true", "false") for tree in X]
    model = RecursiveNetwork(**{**SETTINGS, "epochs": 3}, calibrate=True)
    model.set_params(training__validation=(X[60:], words[60:])).fit(X[:60], words[:60])
    assert set(model.predict(X)) <= {"true", "false"}
    assert {"val_loss"} <= set(model.history_[0])


def test_trees_whose_root_has_no_class_and_counts_that_differ_are_refused():
    X = [Tree.parse("(1 (0 a) (1 b))"), Tree.parse("(0 a)")]
    with pytest.raises(InvalidData, match="root of every tree must have a class; that of tree 1"):
        RecursiveNetwork().fit(X, [[1, 0, 1], [None]])
    with pytest.raises(InvalidData, match="tree 0 has 3 nodes and 2 targets"):
        RecursiveNetwork().fit(X, [[1, 0], [0]])
