"""The classifier of signals, and the adapter that scales them."""

import numpy as np
import pytest
import torch

from castalia.data.signal_adapter import SignalAdapter
from castalia.errors import InvalidData
from castalia.models import vision
from castalia.models.sequence import ConvNet1dClassifier


def test_signals_of_several_channels_are_classified_and_others_refused():
    random = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = random.normal(size=(120, 3, 20))
    X[:, 1] *= np.where(y, 2.0, 0.5)[:, None]
    model = ConvNet1dClassifier(widths=(8, 8), epochs=15, lr=1e-2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match=r"signals must have \(C, T\) = \(3, 20\).*got \(2, 20\)"):
        model.predict(X[:, :2])
    X[7, 0, 0] = np.nan
    with pytest.raises(ValueError, match="hold no NaN or infinity; 1 of 120 do, first signal 7"):
        model.predict(X)


def test_the_adapter_brings_each_channel_of_a_signal_to_one_scale():
    X = np.random.default_rng(0).normal(3.0, 5.0, size=(50, 2, 8)) * [[[1.0], [10.0]]]
    rows = SignalAdapter().fit(X).rows(X, np.float64).x
    torch.testing.assert_close(rows.mean(dim=(0, 2)), torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(
        rows.std(dim=(0, 2), correction=0), torch.ones(2, dtype=torch.float64)
    )


def test_signals_of_several_lengths_are_refused():
    with pytest.raises(InvalidData, match="signals must all have the same shape, .T,. or .C, T."):
        ConvNet1dClassifier(epochs=1).fit([[0.0, 1.0], [0.0, 1.0, 2.0]], [0, 1])


def test_the_old_path_still_works_and_warns():
    with pytest.warns(FutureWarning, match="vision.ConvNet1dClassifier is now castalia.models.seq"):
        assert vision.ConvNet1dClassifier is ConvNet1dClassifier
