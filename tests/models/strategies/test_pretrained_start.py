"""What is taken over, what stays, and what it saves."""

import numpy as np
import pytest
from sklearn.base import clone
from torch.testing import assert_close

from castalia import FeatureExtract, FineTune, MLPClassifier, Pretrain, Training
from castalia.errors import InvalidParameter
from castalia.testing.toys import moons

NET = MLPClassifier(hidden=(16,), epochs=10, lr=0.02, training=Training(validation=0))


@pytest.fixture(scope="module")
def known():
    return clone(NET).set_params(epochs=60, random_state=0).fit(*moons(300))


def test_extracted_features_keep_every_bit_and_fine_tuned_ones_move(known):
    X, y = moons(20, seed=3)
    turned = -X  # a related task
    trunk = next(known.module_.parameters()).double()
    frozen = FeatureExtract(NET, source=known, random_state=0).fit(turned, y)
    assert_close(next(frozen.module_.parameters()), trunk, rtol=0, atol=0)
    moved = FineTune(NET, source=known, random_state=0).fit(turned, y)
    gap = (next(moved.module_.parameters()) - trunk).abs().max()
    assert gap > 0


def corners(n, seed):
    """Four clouds in 20 columns; opposite ones are a class, so that features must be learnt."""
    random = np.random.default_rng(seed)
    centre = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])[np.arange(n) % 4]
    X = np.repeat(centre, 10, axis=1) + 1.3 * random.normal(size=(n, 20))
    return X, (centre.prod(axis=1) > 0).astype(int)


@pytest.mark.parametrize("strategy", [FineTune, FeatureExtract])
def test_few_rows_are_enough_for_who_knows_a_related_task(strategy):
    net = clone(NET).set_params(epochs=30)
    related = clone(net).set_params(random_state=0).fit(*corners(800, 0))
    (X, y), (unseen, truth) = corners(12, 1), corners(500, 2)
    scratch = clone(net).set_params(random_state=0).fit(X, 1 - y)  # the classes have changed places
    model = strategy(net, source=related, random_state=0).fit(X, 1 - y)
    assert model.score(unseen, 1 - truth) > scratch.score(unseen, 1 - truth) + 0.1


def test_far_from_the_known_task_all_layers_must_move():
    net, other = clone(NET).set_params(epochs=30), np.random.default_rng(7).permutation(20)
    for seed in (0, 1):
        related = clone(net).set_params(random_state=seed).fit(*corners(800, seed))
        (X, y), (unseen, truth) = corners(200, seed + 9), corners(500, seed + 90)
        frozen, moved = (
            strategy(net, source=related, random_state=seed).fit(X[:, other], y)
            for strategy in (FeatureExtract, FineTune)
        )
        gain = moved.score(unseen[:, other], truth) - frozen.score(unseen[:, other], truth)
        assert gain > 0.01


def test_a_start_from_rows_without_labels_learns_sooner_from_few_labels():
    gains = []
    for seed in range(4):
        (X, y), (unseen, truth) = corners(620, seed), corners(500, seed + 50)
        plain = clone(NET).set_params(random_state=seed).fit(X[:20], y[:20])
        model = Pretrain(NET, share=0.4, random_state=seed).fit(X[:20], y[:20], unlabelled=X[20:])
        gains.append(model.score(unseen, truth) - plain.score(unseen, truth))
    assert np.mean(gains) > 0.05


def test_rows_without_labels_are_read_first(monkeypatch):
    seen = []
    fit = MLPClassifier.fit

    def counted(self, X, y=None, **options):
        seen.append(len(X))
        return fit(self, X, y, **options)

    monkeypatch.setattr(MLPClassifier, "fit", counted)
    X, y = moons(60)
    model = Pretrain(NET, random_state=0).fit(X[:20], y[:20], unlabelled=X[20:])
    assert seen == [60, 20]
    plain = clone(NET).set_params(random_state=model.estimator_.random_state).fit(X[:20], y[:20])
    assert (model.predict_proba(X) != plain.predict_proba(X)).any()


def test_a_source_of_other_widths_is_refused(known):
    wide = clone(NET).set_params(hidden=(8,))
    with pytest.raises(InvalidParameter, match=r"have the layers of the estimator, \[\(8, 2\), "):
        FineTune(wide, source=known).fit(*moons(40))
    assert clone(FineTune(NET, source=known)).source is known
