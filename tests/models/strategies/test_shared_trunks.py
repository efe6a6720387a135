"""Networks that learn several things at once, or from rows without labels."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.testing import assert_close

import castalia
from castalia import (
    ConvNetClassifier,
    MLPClassifier,
    MLPRegressor,
    MultiTask,
    SelfSupervised,
    SelfTraining,
    SemiSupervised,
    Training,
)
from castalia.data.augment import Flip
from castalia.errors import InvalidParameter
from castalia.models.strategies.hidden_features import WithPart, copy_trunk, features_of
from castalia.models.strategies.multi_task import LogVariances, MultiTaskLoss
from castalia.models.strategies.self_supervised import InfoNCE, Projected, info_nce, mixed_columns
from castalia.models.strategies.semi_supervised import JointReconstruction
from castalia.objectives import CrossEntropy
from castalia.protocols import Batch
from castalia.testing.toys import moons

PLAIN = Training(validation=0)
NET = MLPClassifier(hidden=(16,), epochs=40, lr=0.02, training=PLAIN)


def corners(n, seed, noise, columns=20):
    """Four clouds; opposite ones are a class, so that no straight line parts the classes."""
    random = np.random.default_rng(seed)
    centre = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])[np.arange(n) % 4]
    X = np.repeat(centre, columns // 2, axis=1) + noise * random.normal(size=(n, columns))
    return X, (centre.prod(axis=1) > 0).astype(int)


# ---- several tasks ----


def test_related_tasks_with_few_rows_learn_more_together():
    random = np.random.default_rng(0)
    mix, heads = random.normal(size=(8, 2)) / 8**0.5, random.normal(size=(2, 4))

    def draw(n, noise):
        X = random.normal(size=(n, 8))
        return X, np.tanh(3 * X @ mix) @ heads + noise * random.normal(size=(n, 4))

    (X, Y), (unseen, truth) = draw(60, 0.3), draw(500, 0.0)
    net = MLPRegressor(hidden=(16,), epochs=60, lr=0.01, training=PLAIN, random_state=0)
    alone = np.mean([clone(net).fit(X, Y[:, t]).score(unseen, truth[:, t]) for t in range(4)])
    model = MultiTask(net, task="regression", random_state=0).fit(X, Y)
    assert model.score(unseen, truth) > alone + 0.05


def test_the_sum_over_tasks_is_weighed_by_learnt_variances():
    outputs, y = torch.randn(3, 3), (torch.tensor([0, 1, 1]), torch.randn(3))
    net = WithPart(nn.Identity(), LogVariances(2))
    net.part.value.data = torch.tensor([0.5, -1.0])
    terms = MultiTaskLoss([2, 0], weigh=True).terms(net, Batch(outputs, y), "train")
    first = nn.functional.cross_entropy(outputs[:, :2], y[0])
    second = nn.functional.mse_loss(outputs[:, 2], y[1]) / 2
    expected = first * np.exp(-0.5) + 0.25 + second * np.exp(1.0) - 0.5
    assert_close(terms["loss"], expected.detach())


def test_classes_and_numbers_are_learnt_by_one_network_and_noisy_tasks_count_less():
    X, y = moons(200)
    random = np.random.default_rng(0)
    words = np.array(["no", "yes"])[y].astype(object)
    both = np.stack([words, random.normal(size=200)], axis=1)
    model = MultiTask(NET, random_state=0).fit(X, both)
    assert model.sizes_ == [2, 0]
    assert model.log_variances_[0] < model.log_variances_[1]
    assert (model.predict(X)[:, 0] == words).mean() > 0.9
    assert model.task_probabilities(X)[1] is None


# ---- without labels ----


def test_info_nce_is_its_closed_form():
    a, b = torch.randn(2, 4, 3, dtype=torch.float64)
    z = torch.cat([a, b])
    z = z / z.norm(dim=1, keepdim=True)
    alike = torch.exp(z @ z.T / 0.5)
    losses = [
        -torch.log(alike[i, (i + 4) % 8] / sum(alike[i, k] for k in range(8) if k != i))
        for i in range(8)
    ]
    assert_close(info_nce(a, b, 0.5), (torch.stack(losses[:4]) + torch.stack(losses[4:])) / 2)


def test_two_views_of_a_row_are_more_alike_than_views_of_two_rows_and_a_probe_gains():
    X, y = corners(400, 0, 0.5, columns=8)
    unseen, truth = corners(400, 1, 0.5, columns=8)
    net = clone(NET).set_params(hidden=(32,), epochs=30, lr=0.01)
    model = SelfSupervised(net, share=0.4, random_state=0).fit(X)
    x = torch.from_numpy(X / X.std(axis=0)).float()
    with torch.no_grad():
        a, b = (model.module_(mixed_columns(x, 0.4)[0]) for _ in range(2))
    alike = torch.cosine_similarity(a[:, None], b[None], dim=2)
    assert alike.diag().mean() > alike.mean() + 0.2

    def probe(rows, others):
        return LogisticRegression(max_iter=500).fit(rows[:40], y[:40]).score(others, truth)

    assert probe(X, unseen) < 0.6
    assert probe(model.transform(X), model.transform(unseen)) > 0.95


@pytest.mark.parametrize("method, least", [("masked", 0.8), ("distorted", 0.7)])
def test_the_other_tasks_of_their_own_teach_features_too(method, least):
    X, y = corners(400, 0, 0.5, columns=8)
    model = SelfSupervised(
        clone(NET).set_params(hidden=(32,)), method=method, share=0.4, random_state=0
    )
    features = model.fit(X).transform(X)
    found = LogisticRegression(max_iter=500).fit(features[:40], y[:40])
    assert found.score(features, y) > least


def test_hidden_columns_are_foretold_better_than_by_their_means_and_a_probe_gains():
    X, y = corners(600, 0, 0.6, columns=8)
    unseen, truth = corners(500, 50, 0.6, columns=8)
    net = clone(NET).set_params(hidden=(32,))
    model = SelfSupervised(net, method="masked", share=0.4, random_state=0).fit(X)
    assert model.history_[-1]["loss"] < 0.75  # 1: the mean of every column
    x = torch.from_numpy(X / X.std(axis=0)).float()
    with torch.no_grad():
        assert torch.corrcoef(torch.stack([model.module_(x).flatten(), x.flatten()]))[0, 1] > 0.4

    def probe(rows, others):
        return LogisticRegression(max_iter=500).fit(rows[:40], y[:40]).score(others, truth)

    assert probe(model.transform(X), model.transform(unseen)) > probe(X, unseen) + 0.25


def test_a_head_of_two_layers_makes_the_code_and_is_left_behind(tmp_path):
    X, _ = moons(60)
    net = clone(NET).set_params(epochs=1, batch_size=60)
    model = SelfSupervised(net, dim=3, hidden=5, random_state=0).fit(X)
    assert model.transform(X).shape == (60, 16)
    assert model.estimator_.spec_.outputs == 5
    assert model.head_["weight"].shape == (3, 5)
    castalia.save(model, tmp_path / "model")
    found = castalia.load(tmp_path / "model").score(X)
    assert found == model.score(X)
    model.head_["weight"].zero_()
    assert model.score(X) != found
    assert SelfSupervised(net, dim=3, hidden=0, random_state=0).fit(X).head_ == {}


def test_the_code_is_the_head_of_what_is_positive_in_the_network_s_outputs():
    head = nn.Linear(2, 1, bias=False)
    head.weight.data = torch.tensor([[2.0, 3.0]])
    assert_close(Projected(nn.Identity(), head)(torch.tensor([[1.0, -1.0]])), torch.tensor([[2.0]]))


def test_a_view_may_be_any_transform():
    seen = []
    InfoNCE(lambda x: seen.append(x) or x, 1.0).terms(nn.Identity(), Batch(torch.eye(2)), "train")
    assert len(seen) == 2


# ---- few labels ----


def test_a_joint_model_beats_the_discriminative_and_the_generative_one_alone():
    alone, codes, joint = [], [], []
    for seed in (100, 101, 102):  # the settings were chosen on others
        X, y = corners(308, seed, 1.3)
        unseen, truth = corners(500, seed + 50, 1.3)
        net = clone(NET).set_params(random_state=seed)
        alone.append(clone(net).set_params(epochs=60).fit(X[:12], y[:12]).score(unseen, truth))
        pca = PCA(2).fit(X)
        line = LogisticRegression().fit(pca.transform(X[:12]), y[:12])
        codes.append(line.score(pca.transform(unseen), truth))
        model = SemiSupervised(net, factor=0.2, random_state=seed)
        joint.append(model.fit(X[:12], y[:12], unlabelled=X[12:]).score(unseen, truth))
    assert np.mean(joint) > np.mean(alone) + 0.02
    assert np.mean(joint) > np.mean(codes) + 0.2


def test_unknown_labels_do_not_count_in_the_joint_loss():
    net = WithPart(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)), nn.Linear(3, 2))
    x, known = torch.randn(4, 2), torch.tensor([2.0, 2.0, 0.0, 0.0])
    loss = JointReconstruction(CrossEntropy(), 0.5)
    found = [
        loss.terms(net, Batch(x, (torch.tensor(y), known)), "train")
        for y in ([0, 1, 0, 0], [0, 1, 1, 1])
    ]
    assert_close(found[0]["loss"], found[1]["loss"])
    assert_close(
        found[0]["labels"], CrossEntropy().rows(net(x), torch.tensor([0, 1, 0, 0]))[:2].mean()
    )
    assert_close(found[0]["loss"], found[0]["labels"] + 0.5 * found[0]["rows"])


@pytest.mark.parametrize("method", ["consistency", "representation"])
def test_unlabelled_rows_are_learnt_from_by_the_other_methods(method):
    X, y = corners(300, 0, 0.6, columns=8)
    model = SemiSupervised(NET, method=method, noise=0.5, share=0.4, random_state=0)
    assert model.fit(X[:16], y[:16], unlabelled=X[16:]).score(X, y) > 0.8


def test_features_of_rows_without_labels_beat_two_labels_of_each_digit_alone():
    X, y = load_digits(return_X_y=True)
    net = MLPClassifier(hidden=(64,), epochs=20, lr=0.02, training=PLAIN, random_state=0)
    order = np.random.default_rng(2).permutation(len(X))
    rows, unseen = order[:800], order[800:]
    known = np.concatenate([rows[y[rows] == digit][:2] for digit in range(10)])
    alone = clone(net).fit(X[known], y[known])
    model = SemiSupervised(net, method="representation", random_state=0)
    model.fit(X[known], y[known], unlabelled=X[rows])
    assert model.score(X[unseen], y[unseen]) > alone.score(X[unseen], y[unseen]) + 0.05
    other = clone(model).fit(X[known], y[known][::-1], unlabelled=X[rows])  # labels change the head
    first, second = (list(each.module_.parameters()) for each in (model, other))
    assert_close(first[0], second[0], rtol=0, atol=0)
    assert not torch.equal(first[-2], second[-2])


def test_maps_of_every_resolution_are_features_that_need_no_other_fit():
    X = load_digits().images
    net = ConvNetClassifier(widths=(4, 6), convs=1, epochs=1, training=PLAIN)
    model = SelfSupervised(net, view=Flip(), random_state=0).fit(X[:64])
    last = model.transform(X[:5])
    found = model.set_params(features="maps").transform(X[:5])
    trained = model.estimator_.module_.eval()
    (x,) = model._blocks(model._checked(X[:5]))
    with torch.no_grad():
        first = trained.features.stage1(x)
        second = trained.features.stage2(trained.features.pool1(first))
    places = nn.functional.adaptive_avg_pool2d(first, 7).flatten(1)  # of 8 x 8
    maps = torch.cat([places, second.flatten(1), torch.from_numpy(last)], dim=1)
    assert_close(torch.from_numpy(found), maps)


def test_a_network_without_maps_has_none_to_give():
    X, _ = moons(40)
    model = SelfSupervised(clone(NET).set_params(epochs=1), features="maps", random_state=0).fit(X)
    with pytest.raises(
        InvalidParameter, match="`features` must be 'last' where the network has no maps, as that"
    ):
        model.transform(X)


def test_a_representation_is_kept_while_the_last_layer_is_fitted():
    net, other = (nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)) for _ in range(2))
    copy_trunk(net, other, freeze=True)
    assert_close(net[0].weight, other[0].weight)
    assert [p.requires_grad for p in net.parameters()] == [False, False, True, True]
    h, outputs = features_of(net, torch.ones(1, 2))
    assert_close(net[2](h), outputs)


def test_self_training_adds_the_rows_it_is_sure_of():
    X, y = moons(300)
    few = np.concatenate([np.flatnonzero(y == k)[:5] for k in (0, 1)])
    alone = clone(NET).set_params(random_state=0).fit(X[few], y[few]).score(X, y)
    model = SelfTraining(NET, confidence=0.95, random_state=0)
    assert model.fit(X[few], y[few], unlabelled=X).score(X, y) >= alone
    assert 0 < model.labelled_[0] <= model.labelled_[-1] <= 300


@pytest.mark.parametrize("strategy", [SelfTraining, SemiSupervised])
def test_a_regressor_is_refused_where_classes_are_needed(strategy):
    X, y = moons(40)
    with pytest.raises(
        InvalidParameter, match="`estimator` must be a classifier; got MLPRegressor"
    ):
        strategy(MLPRegressor(epochs=1)).fit(X, y)
