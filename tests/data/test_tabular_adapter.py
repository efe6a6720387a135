import numpy as np
import pytest
import torch

from castalia.data.batches import Samples, TensorRows
from castalia.data.tabular_adapter import TabularAdapter, member_folds


def test_every_row_is_held_out_from_equally_many_members():
    held = member_folds(103, 8, 0.25, seed=3)
    assert (held.sum(axis=1) == 2).all()
    assert np.ptp(held.sum(axis=0)) <= 2
    assert (member_folds(103, 8, 0.01, seed=3).sum(axis=1) == 1).all()


def test_folds_keep_the_classes_in_proportion():
    labels = np.repeat([0, 1], [80, 16])
    held = member_folds(96, 8, 0.125, seed=0, labels=labels)
    assert (held[80:].sum(axis=0) == 2).all()
    assert (held[:80].sum(axis=0) == 10).all()


def test_what_trains_a_member_does_not_judge_it():
    samples = Samples(TensorRows(torch.zeros(100, 1)), torch.zeros(100), torch.rand(100) + 0.5)
    trained, judged = TabularAdapter(members=5).split(samples, 0.2, seed=0)
    assert not ((trained.weight > 0) & (judged.weight > 0)).any()
    both = trained.weight + judged.weight
    torch.testing.assert_close(both, samples.weight[:, None].expand(-1, 5))


@pytest.mark.parametrize("rows, validation", [(30, 0.1), (100, 0.0)])
def test_few_rows_or_no_share_leave_all_rows_to_all_members(rows, validation):
    samples = Samples(TensorRows(torch.zeros(rows, 1)), torch.zeros(rows))
    kept, held = TabularAdapter().split(samples, validation, seed=0)
    assert kept is samples
    assert not len(held)


def test_weights_count_rows_as_often_in_quantiles():
    X, weight = np.random.default_rng(0).normal(size=(9, 2)), np.arange(1, 10)
    repeated = TabularAdapter().fit(np.repeat(X, weight, axis=0))
    found = TabularAdapter().fit(X, weight.astype(float))
    np.testing.assert_allclose(found.quantiles, repeated.quantiles)
