"""The perceptron beyond the contract: its path, its bound, its stopping rule."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.linear_model import Perceptron as Reference
from sklearn.multiclass import OneVsRestClassifier

from castalia import Perceptron
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.linear import enough_right
from castalia.models.linear.solvers.perceptron_corrections import BinaryWalk

XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])


def separable(n=60, d=3, margin=0.2, seed=0):
    """Rows at least ``margin`` away from a random hyperplane through the origin."""
    random = np.random.default_rng(seed)
    w = random.normal(size=d)
    w /= np.linalg.norm(w)
    X = random.normal(size=(n, d))
    y = np.where(X @ w > 0, 1, -1)
    return X + margin * y[:, None] * w, y


def noisy(n=3000, d=8, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, np.where(X[:, 0] + random.normal(size=n) > 0.3, 1, -1)


def by_rule(X, y, epochs, w):
    """Apply the rule of the course row after row and return the weights after every correction."""
    path = [w.copy()]
    for _ in range(epochs):
        for x, sign in zip(X, y, strict=True):
            if sign * (w @ x) <= 0:
                w = w + sign * x
                path.append(w)
    return path


@pytest.mark.parametrize("data", [separable, noisy], ids=["separable", "noisy"])
def test_the_weights_are_those_of_the_rule_applied_row_after_row(data):
    X, y = data()
    ones = np.column_stack([X, np.ones(len(X))])
    path = by_rule(ones, y, 4, np.zeros(ones.shape[1]))
    model = Perceptron(epochs=4).fit(X, y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), path[-1], atol=1e-9)
    assert model.mistakes_.tolist() == [len(path) - 1]


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "weighted", "origin"])
def test_the_compiled_loop_makes_the_corrections_of_rows_one_by_one(kind):
    X, y = noisy(5000)
    size = np.random.default_rng(1).uniform(0.1, 3, 5000) if kind == "weighted" else None
    X = {"sparse": csr_array(X), "float32": X.round(1).astype("f4")}.get(kind, X)
    walks = []
    for often in (True, False):
        walk = BinaryWalk(np.zeros((1, 8)), np.zeros(1), intercept=kind != "origin")
        walk.over(X, y, size)
        walk.often = often
        walk.corrected = walk.epoch(rule=None if often else lambda k: 10**9)
        walks.append(walk)
    compiled, single = walks
    assert compiled.corrected == single.corrected == compiled.corrections > 500
    np.testing.assert_allclose(compiled.W, single.W, atol=1e-9)
    np.testing.assert_allclose(compiled.b, single.b, atol=1e-9)
    assert compiled.seen == single.seen == 5000


def test_rows_on_the_boundary_are_corrected_by_the_compiled_loop_too():
    random = np.random.default_rng(0)  # small whole numbers: many scores are exactly 0
    X, y = random.integers(-2, 3, size=(4000, 3)).astype(float), random.choice([-1, 1], 4000)
    path = by_rule(np.column_stack([X, np.ones(4000)]), y, 3, np.zeros(4))
    model = Perceptron(epochs=3, patience=None).fit(X, y)
    assert np.append(model.coef_, model.intercept_).tolist() == path[-1].tolist()
    assert model.mistakes_.tolist() == [len(path) - 1]


def test_rows_too_many_to_keep_are_walked_over_part_by_part(monkeypatch):
    X, y = noisy(6000)
    whole = Perceptron(epochs=3, patience=None).fit(X, y)
    monkeypatch.setattr("castalia.models.linear.solvers.perceptron_corrections.KEPT", 0)
    monkeypatch.setattr("castalia.models.linear.solvers.perceptron_corrections.LONG", 1500)
    parts = Perceptron(epochs=3, patience=None).fit(X, y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-9)
    assert parts.mistakes_ == whole.mistakes_


def test_it_equals_scikit_learn_in_the_same_order():
    X, y = noisy()
    ours = Perceptron(epochs=6, patience=None).fit(X, y)
    theirs = Reference(shuffle=False, max_iter=6, tol=None).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "tensor", "float32"])
def test_every_kind_of_rows_gives_the_same_weights(kind):
    X, y = separable()
    X = X.round(1)  # sums of these are exact enough in float32 to make the same mistakes
    given = {"sparse": csr_array(X), "tensor": torch.from_numpy(X), "float32": X.astype("f4")}
    same = Perceptron().fit(given[kind], y)
    np.testing.assert_allclose(same.coef_, Perceptron().fit(X, y).coef_, atol=1e-4)
    assert same.coef_.dtype == (np.float32 if kind == "float32" else np.float64)


def test_separable_data_end_without_a_training_error():
    X, y = separable(200)
    model = Perceptron().fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.separated_
    assert model.stopped_.startswith("every row was right in epoch")


def test_xor_ends_at_the_cap_with_a_report():
    model = Perceptron(epochs=50, patience=None).fit(*XOR)
    assert not model.separated_
    assert model.n_iter_ == 50
    assert "not separated" in model.stopped_
    assert "last of 50 epochs" in model.stopped_
    assert np.isinf(model.novikoff_bound_[0])
    assert Perceptron(epochs=1000, patience=3).fit(*XOR).n_iter_ < 20


def test_the_delta_form_takes_twice_the_step():
    X, y = noisy(300)
    delta = Perceptron(rule="delta", lr=0.25, init=0.5, epochs=3, random_state=0).fit(X, y)
    plain = Perceptron(lr=0.5, init=0.5, epochs=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(delta.coef_, plain.coef_, rtol=1e-12)
    other = Perceptron(lr=0.25, init=0.5, epochs=3, random_state=0).fit(X, y)
    assert not np.allclose(other.coef_, plain.coef_)


def test_the_delta_form_follows_the_same_directions_row_after_row():
    X, y = separable(40)
    delta, plain = Perceptron(rule="delta", lr=1.0), Perceptron(lr=1.0)
    for x, label in zip(X, y, strict=True):
        delta.partial_fit([x], [label], classes=[-1, 1])
        plain.partial_fit([x], [label], classes=[-1, 1])
        np.testing.assert_allclose(delta.coef_, 2 * plain.coef_, rtol=1e-12)


def test_descent_on_the_perceptron_criterion_gives_the_weight_sequence():
    X, y = separable(80)
    model = Perceptron(fit_intercept=False)
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        for x, sign in zip(X, y, strict=True):
            margin = sign * (w @ torch.from_numpy(x))
            # max(0, -m) has slope -1 at m = 0 from the left, where a correction is due
            loss = -margin if margin <= 0 else 0 * margin
            (slope,) = torch.autograd.grad(loss, w)
            w = (w - slope).detach().requires_grad_()
            model.partial_fit([x], [sign], classes=[-1, 1])
            np.testing.assert_allclose(model.coef_[0], w.detach().numpy(), atol=1e-12)
    assert model.mistakes_[0] > 3


def test_corrections_stay_within_novikoffs_bound_over_20_separable_sets():
    loose = tight = 0
    for seed in range(20):
        X, y = separable(40, margin=0.1 + 0.01 * (seed % 20), seed=seed)
        model = Perceptron(margin="best", epochs=10_000, patience=None).fit(X, y)
        learnt = Perceptron(epochs=10_000, patience=None).fit(X, y)
        assert model.mistakes_[0] <= model.novikoff_bound_[0] <= learnt.novikoff_bound_[0]
        tight += model.novikoff_bound_[0]
        loose += learnt.novikoff_bound_[0]
    assert tight < loose


def test_the_best_margin_is_that_of_a_hard_margin_machine():
    from sklearn.svm import SVC

    X, y = separable(40)
    model = Perceptron(margin="best", fit_intercept=False).fit(X, y)
    signed = np.concatenate([X * y[:, None], -X * y[:, None]])  # its hyperplane meets the origin
    machine = SVC(kernel="linear", C=1e8, tol=1e-9).fit(signed, np.repeat([1, -1], len(X)))
    assert model.margin_[0] == pytest.approx(1 / np.linalg.norm(machine.coef_), rel=1e-5)


def test_from_zero_the_bound_holds_and_from_large_random_weights_it_can_be_exceeded():
    X, y = separable(60, margin=0.4, seed=3)
    zero = Perceptron(margin="best").fit(X, y)
    assert zero.mistakes_[0] <= zero.novikoff_bound_[0]
    far = [Perceptron(init=50.0, random_state=seed).fit(X, y) for seed in range(8)]
    assert max(model.mistakes_[0] for model in far) > zero.novikoff_bound_[0]
    assert all(np.isinf(model.novikoff_bound_[0]) and model.separated_ for model in far)


def test_aizermans_numbers_are_those_of_the_notes():
    eps = risk = 0.05
    exact = [(1 + 2 * np.log(k) - np.log(risk)) / -np.log(1 - eps) for k in (1, 5, 20)]
    np.testing.assert_allclose(exact, [77.90, 140.65, 194.71], atol=0.005)
    assert [enough_right(k, eps, risk) for k in (1, 5, 20)] == [78, 141, 195]
    k = np.arange(1, 200_000)
    total = np.exp(np.log1p(-eps) * (1 + 2 * np.log(k) - np.log(risk)) / -np.log1p(-eps)).sum()
    assert total / risk == pytest.approx(np.pi**2 / 6 / np.e, abs=1e-4)


def test_aizermans_rule_keeps_its_promise_over_200_runs():
    eps, risk, rho, failures = 0.1, 0.1, 0.05, 0
    w = np.array([2.0, 1.0]) / np.sqrt(5)
    for seed in range(200):
        X = np.random.default_rng(seed).uniform(-1, 1, size=(5000, 2))
        X = X[abs(X @ w) > rho]
        model = Perceptron(stop="aizerman", eps=eps, risk=risk, fit_intercept=False)
        model.fit(X[:2000], X[:2000] @ w > 0)
        assert "right answers in a row" in model.stopped_
        assert model.n_iter_ == 1  # the examples were fresh
        ratio = model.radius_ / rho
        stated = (1 + 4 * np.log(ratio) - np.log(risk)) / -np.log(1 - eps) * ratio**2
        assert model.seen_ <= stated
        failures += 1 - model.score(X[2000:], X[2000:] @ w > 0) > eps
    assert failures <= risk * 200


def test_aizermans_rule_stops_at_the_very_example():
    X = np.ones((500, 1))
    X[100:] = -1
    model = Perceptron(stop="aizerman", fit_intercept=False).fit(X, X[:, 0] > 0)
    assert model.mistakes_.tolist() == [1]
    assert model.seen_ == 1 + enough_right(1, 0.05, 0.05)


def three_corners(n=90, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    corners = 6 * np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    return corners[y] + random.normal(size=(n, 2)), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("multiclass", ["argmax", "ovr"])
def test_separable_classes_end_without_a_training_error(multiclass):
    X, y = three_corners()
    model = Perceptron(multiclass=multiclass).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.coef_.shape == (3, 2)
    assert (model.mistakes_ <= model.novikoff_bound_).all()
    assert model.mistakes_.shape == ((1,) if multiclass == "argmax" else (3,))


def test_a_multiclass_mistake_moves_the_true_class_and_the_one_that_was_said():
    model = Perceptron(fit_intercept=False).partial_fit([[1.0, 2.0]], [2], classes=[0, 1, 2])
    assert model.coef_.tolist() == [[-1, -2], [0, 0], [1, 2]]


def test_one_against_the_rest_equals_scikit_learns_wrapper_around_two_class_models():
    X, y = three_corners()
    ours = Perceptron(multiclass="ovr").fit(X, y)
    wrapped = OneVsRestClassifier(Perceptron()).fit(X, y)
    coef = np.concatenate([part.coef_ for part in wrapped.estimators_])
    np.testing.assert_allclose(ours.coef_, coef)
    assert np.array_equal(ours.predict(X), wrapped.predict(X))


def test_regions_of_one_against_all_are_convex():
    X, y = three_corners()
    model = Perceptron(multiclass="ovr").fit(X, y)
    random = np.random.default_rng(0)
    a, b = random.uniform(-15, 15, size=(2, 20_000, 2))
    same = model.predict(a) == model.predict(b)
    assert 1000 < same.sum() < 19_000
    share = random.uniform(size=(20_000, 1))
    between = model.predict(share * a + (1 - share) * b)
    assert np.array_equal(between[same], model.predict(a)[same])


def test_parts_of_the_data_one_after_the_other_make_one_epoch():
    X, y = noisy(1000)
    parts = Perceptron()
    for rows in np.array_split(np.arange(1000), 7):
        parts.partial_fit(X[rows], y[rows], classes=[-1, 1])
    whole = Perceptron(epochs=1).fit(X, y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-9)
    assert (parts.mistakes_, parts.seen_) == (whole.mistakes_, whole.seen_)


def test_a_warm_start_goes_on_from_the_weights():
    X, y = noisy(500)
    once = Perceptron(epochs=4, patience=None).fit(X, y)
    twice = Perceptron(epochs=2, patience=None, warm_start=True).fit(X, y).fit(X, y)
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-9)


def test_shuffling_is_seeded():
    X, y = noisy(500)
    first, same, other = (
        Perceptron(shuffle=True, epochs=3, random_state=seed).fit(X, y) for seed in (0, 0, 1)
    )
    assert np.array_equal(first.coef_, same.coef_)
    assert not np.array_equal(first.coef_, other.coef_)


def test_classes_of_partial_fit_are_checked():
    with pytest.raises(InvalidParameter, match="`classes` must be passed on the first call"):
        Perceptron().partial_fit([[1.0]], [1])
    model = Perceptron().partial_fit([[1.0]], [1], classes=[0, 1])
    with pytest.raises(InvalidData, match=r"got 7, which is not one of \[0, 1\]"):
        model.partial_fit([[1.0]], [7])
    with pytest.raises(InvalidParameter, match="not the same as on last call"):
        model.partial_fit([[1.0]], [1], classes=[0, 1, 2])


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (1, 2), ("no", "yes"), (False, True)])
def test_labels_of_any_kind_are_encoded(labels):
    X, y = separable()
    model = Perceptron().fit(X, np.array(labels)[(y > 0).astype(int)])
    np.testing.assert_array_equal(model.coef_, Perceptron().fit(X, y).coef_)
    assert set(model.predict(X).tolist()) == set(labels)


def test_the_distance_is_that_of_the_projection_onto_the_hyperplane():
    X, y = separable()
    model = Perceptron().fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    foot = X - np.outer((X @ w + b) / (w @ w), w)  # on the boundary
    np.testing.assert_allclose(foot @ w + b, 0, atol=1e-9)
    signed = np.linalg.norm(X - foot, axis=1) * np.sign(model.decision_function(X))
    np.testing.assert_allclose(model.distance(X), signed, atol=1e-12)
    origin = Perceptron(fit_intercept=False).fit(X, y)
    assert origin.distance(np.zeros((1, 3)))[0] == 0
    assert model.distance(np.zeros((1, 3)))[0] == pytest.approx(b / np.linalg.norm(w))


@pytest.mark.parametrize("data", [separable, noisy], ids=["separable", "noisy"])
def test_a_weight_multiplies_the_correction_of_its_row(data):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.2, 4, len(X))
    w, mistakes = np.zeros(X.shape[1] + 1), 0
    for _ in range(3):
        for x, sign, v in zip(np.column_stack([X, np.ones(len(X))]), y, weight, strict=True):
            if sign * (w @ x) <= 0:
                w, mistakes = w + v * sign * x, mistakes + 1
    model = Perceptron(epochs=3).fit(X, y, weight)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), w, atol=1e-9)
    assert model.mistakes_.tolist() == [mistakes]


def test_weights_are_those_of_scikit_learn():
    X, y = noisy()
    weight = np.random.default_rng(1).uniform(0.2, 4, len(X))
    ours = Perceptron(epochs=5, patience=None).fit(X, y, weight)
    theirs = Reference(shuffle=False, max_iter=5, tol=None).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)


@pytest.mark.parametrize("multiclass", ["argmax", "ovr"])
def test_a_row_of_weight_zero_is_not_there_and_equal_weights_only_scale(multiclass):
    X, y = three_corners()
    weight = (np.arange(90) % 4 > 0).astype(float)
    settings = {"multiclass": multiclass, "shuffle": True, "random_state": 0, "epochs": 4}
    kept = Perceptron(**settings).fit(X[weight > 0], y[weight > 0])
    zero = Perceptron(**settings).fit(X, y, weight)
    np.testing.assert_array_equal(zero.coef_, kept.coef_)
    assert (zero.seen_, zero.mistakes_.tolist()) == (kept.seen_, kept.mistakes_.tolist())
    double = Perceptron(**settings).fit(X, y, 2 * weight)
    np.testing.assert_allclose(double.coef_, 2 * kept.coef_, rtol=1e-12)
    np.testing.assert_array_equal(double.novikoff_bound_, kept.novikoff_bound_)


def test_a_weighted_multiclass_mistake_moves_both_classes_by_the_weight():
    model = Perceptron().partial_fit([[1.0, 2.0]], [2], [0, 1, 2], sample_weight=[0.5])
    assert model.coef_.tolist() == [[-0.5, -1], [0, 0], [0.5, 1]]
    assert model.intercept_.tolist() == [-0.5, 0, 0.5]


def test_weighted_corrections_stay_within_the_bound_that_knows_their_spread():
    exceeded = 0
    for seed in range(8):
        X, y = separable(40, margin=0.1, seed=seed)
        weight = np.random.default_rng(seed).uniform(0.05, 1, 40)
        model = Perceptron(margin="best", epochs=10_000, patience=None).fit(X, y, weight)
        plain = Perceptron(margin="best", epochs=10_000, patience=None).fit(X, y)
        assert model.mistakes_[0] <= model.novikoff_bound_[0]
        spread = weight.max() / weight.min()
        assert model.novikoff_bound_[0] == pytest.approx(spread * plain.novikoff_bound_[0], rel=0.2)
        exceeded += model.mistakes_[0] > plain.mistakes_[0]
    assert exceeded > 0


def test_weights_are_checked():
    X, y = separable()
    with pytest.raises(InvalidData, match="`sample_weight` must be at least 0"):
        Perceptron().fit(X, y, -np.ones(60))
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(59,\), expected \(60,\)"):
        Perceptron().fit(X, y, np.ones(59))
