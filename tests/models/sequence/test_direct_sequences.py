"""What direct estimators read: the sequences of ``castalia.data``, and one long one."""

import numpy as np
import pyarrow
import pytest

from castalia import EchoStateNetwork, HiddenMarkovModel, KalmanFilter
from castalia.data import Sequences, read_sequences
from castalia.models.sequence.direct_sequences import read_observations

ARRAYS = [np.random.default_rng(i).normal(size=(n, 2)) for i, n in enumerate((9, 4, 6))]


@pytest.mark.parametrize(
    "X, lengths, form",
    [
        (ARRAYS, None, "list"),
        (Sequences(ARRAYS), None, "list"),
        (np.concatenate(ARRAYS), [9, 4, 6], "joined"),
        (np.stack([np.pad(a, ((0, 9 - len(a)), (0, 0))) for a in ARRAYS]), [9, 4, 6], "list"),
    ],
)
def test_all_forms_hold_the_same_sequences(X, lengths, form):
    found = read_observations(X, "model", lengths=lengths)
    assert found.form == form
    for mine, wanted in zip(found.parts, ARRAYS, strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_a_long_table_is_read_once_for_every_model():
    steps = np.concatenate(ARRAYS)
    names = np.repeat(["a", "b", "c"], [9, 4, 6])
    table = pyarrow.table({"id": names, "v": steps[:, 0], "w": steps[:, 1]})
    logs = read_sequences(table, group="id")
    for model in (HiddenMarkovModel(states=2, random_state=0), KalmanFilter(state=1, tol=1e-3)):
        model.fit(logs)
        assert model.score(logs) == pytest.approx(model.score(ARRAYS), rel=1e-12)
    network = EchoStateNetwork(units=10, random_state=0).fit(logs, ARRAYS)
    assert [part.shape for part in network.predict(logs)] == [(9, 2), (4, 2), (6, 2)]


def test_symbols_of_a_table_are_coded():
    words = pyarrow.table({"id": ["a"] * 6 + ["b"] * 6, "word": ["sun", "rain", "sun"] * 4})
    logs = read_sequences(words, group="id")
    model = HiddenMarkovModel(states=2, emission="discrete", random_state=0, tol=1e-2).fit(logs)
    assert model.symbols_.tolist() == ["rain", "sun"]
    assert len(model.predict(logs)) == 2
