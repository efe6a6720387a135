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


def test_who_knows_a_related_task_is_soon_there(known):
    unseen, gains = moons(500, seed=9), []
    quick = clone(NET).set_params(epochs=3)
    for seed in range(3):
        X, y = moons(100, seed=20 + seed)
        scratch = clone(quick).set_params(random_state=seed).fit(X, 1 - y)
        model = FineTune(quick, source=known, random_state=seed).fit(X, 1 - y)
        gains.append(
            model.score(unseen[0], 1 - unseen[1]) - scratch.score(unseen[0], 1 - unseen[1])
        )
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
