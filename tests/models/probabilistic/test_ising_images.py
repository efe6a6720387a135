"""Binary images restored by an Ising model."""

import numpy as np
import pytest

from castalia.errors import InvalidData, InvalidParameter
from castalia.models.probabilistic import MarkovRandomField, restore_image


def disc(n=48):
    y, x = np.indices((n, n)) - n / 2 + 0.5
    return ((x**2 + y**2 < (n / 3) ** 2) & (np.abs(x) + np.abs(y) > n / 8)).astype(float)


def test_the_restored_image_has_fewer_wrong_pixels_than_the_noisy_one():
    clean = disc()
    flipped = np.random.default_rng(0).random(clean.shape) < 0.1
    noisy = np.where(flipped, 1 - clean, clean)
    found = restore_image(noisy, noise=0.1)
    assert flipped.mean() > 0.08
    assert (found.image != clean).mean() < 0.2 * flipped.mean()
    assert (np.diff(found.bounds) > -1e-8).all()


def test_missing_pixels_are_filled_better_than_by_the_commonest():
    clean = disc()
    gap = np.random.default_rng(1).random(clean.shape) < 0.5
    found = restore_image(np.where(gap, np.nan, clean), noise=0.01)
    common = round(clean[~gap].mean())
    assert (found.image == clean)[gap].mean() > 0.95 > (clean == common)[gap].mean()


def test_the_bound_is_below_the_exact_log_evidence():
    y = np.array([[0, 1, 1], [np.nan, 1, 0], [0, 0, 1.0]])
    h = np.where(np.isnan(y), 0, 2 * y - 1) * 0.5 * np.log(0.8 / 0.2)
    exact = MarkovRandomField.ising(3, 3, coupling=0.3, field=h)
    found = restore_image(y, coupling=0.3, noise=0.2)
    assert found.bounds[-1] < exact.log_partition() < found.bounds[-1] + 0.3
    marginal = [p[1] for p in exact.marginals().values()]
    by_name = dict(zip(exact.marginals(), marginal, strict=True))
    near = np.array([[by_name[f"{r},{c}"] for c in range(3)] for r in range(3)])
    np.testing.assert_allclose(found.probability, near, atol=0.1)


def test_what_is_no_binary_image_is_refused():
    with pytest.raises(InvalidData, match="of 0, 1 and NaN; got shape"):
        restore_image([[0.3, 1.0]])
    with pytest.raises(InvalidParameter, match="`noise` must be above 0 and below 0.5; got 0.7"):
        restore_image([[0, 1]], noise=0.7)
