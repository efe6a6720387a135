"""Saved models of texts."""

import numpy as np

from castalia import Training, TransformerClassifier, load, save
from castalia.testing.toys import reviews


def test_buffers_that_are_not_saved_come_back_in_the_format_of_the_weights(tmp_path):
    texts, y = reviews(60)
    exact = Training(precision="float64")
    model = TransformerClassifier(dim=8, depth=1, heads=2, epochs=1, training=exact, random_state=0)
    save(model.fit(texts, y), tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(texts), model.predict_proba(texts))
