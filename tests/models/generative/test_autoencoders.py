import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import castalia
from castalia import (
    PCA,
    Autoencoder,
    ContractiveAutoencoder,
    DenoisingAutoencoder,
    LinearAutoencoder,
    MLPClassifier,
    SparseAutoencoder,
    StackedAutoencoder,
    StochasticAutoencoder,
    Training,
)
from castalia.errors import InvalidData, InvalidParameter, TrainingWarning
from castalia.models.generative.anomaly_methods import ScoredCodec
from castalia.testing.toys import stripes

ALL = Training(validation=0)
T = np.linspace(-1, 1, 256)
CURVE = np.column_stack([T, T**2, np.sin(3 * T)])
RANDOM = np.random.default_rng(0)


def error(model, X):
    return float(np.square(model.inverse_transform(model.transform(X)) - X).mean())


@pytest.fixture(scope="module")
def bent():
    """A deep autoencoder of a curve, with one number as its code."""
    model = Autoencoder(code=1, hidden=(32, 16), lr=1e-2, epochs=30, training=ALL, random_state=0)
    return model.fit(CURVE)


def test_a_bent_code_beats_the_best_straight_one(bent):
    assert error(bent, CURVE) < 0.2 * error(PCA(components=1).fit(CURVE), CURVE)


def test_a_deep_one_beats_a_shallow_one_with_the_same_code(bent):
    shallow = Autoencoder(code=1, hidden=(), lr=1e-2, epochs=80, training=ALL, random_state=0)
    assert error(bent, CURVE) < 0.5 * error(shallow.fit(CURVE), CURVE)


def test_rows_off_the_curve_are_detected(bent):
    strange = CURVE + np.array([0.0, 1.5, 0.0])
    assert bent.detect(strange).mean() > 0.9
    assert bent.detect(CURVE).mean() == pytest.approx(0.05, abs=0.02)


def test_a_threshold_is_learnt_from_enough_rows_not_from_all(monkeypatch):
    seen = []

    class Counted(Autoencoder):
        def _row_scores(self, x):
            seen.append(len(x))
            return super()._row_scores(x)

    monkeypatch.setattr(ScoredCodec, "most_judged", 32)
    Counted(code=1, hidden=(4,), epochs=1, training=ALL, random_state=0).fit(CURVE)
    assert sum(seen) == 32


def test_missing_cells_are_filled_from_the_others():
    X = RANDOM.normal(size=(300, 1)) @ np.ones((1, 4)) + 0.05 * RANDOM.normal(size=(300, 4))
    holed = X.copy()
    holed[RANDOM.random(X.shape) < 0.1] = np.nan
    model = Autoencoder(code=1, hidden=(16,), lr=2e-2, epochs=40, random_state=0).fit(holed)
    gap = np.isnan(holed)
    filled = model.impute(holed)
    assert np.array_equal(filled[~gap], holed[~gap])
    assert np.abs(filled - X)[gap].mean() < 0.4 * np.abs(X)[gap].mean()


def test_gradients_find_the_space_of_the_principal_components():
    X = (
        RANDOM.normal(size=(200, 5))
        * [3, 2, 1, 0.5, 0.2]
        @ np.linalg.qr(RANDOM.normal(size=(5, 5)))[0]
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    training = Training(optimizer="conjugate_gradient", validation=0)
    model = LinearAutoencoder(code=2, epochs=150, batch_size=200, training=training, random_state=0)
    model.fit(X)
    u, s, vt = np.linalg.svd(X, full_matrices=False)
    assert error(model, X) * X.size == pytest.approx(np.square(s[2:]).sum(), rel=1e-5)
    learnt = np.linalg.qr(model.module_.layers[0].weight.detach().numpy().T)[0]
    cosines = np.linalg.svd(learnt.T @ vt[:2].T, compute_uv=False)
    assert np.arccos(np.clip(cosines.min(), 0, 1)) < 1e-3


def test_a_wide_code_is_warned_of_and_copies_rows_it_has_never_seen():
    X = RANDOM.normal(size=(400, 1)) @ [[1.0, 1.0]] + 0.2 * RANDOM.normal(size=(400, 2))
    other = 0.5 * RANDOM.normal(size=(50, 2))
    settings = {"code": 8, "hidden": (32,), "lr": 1e-2, "epochs": 20, "random_state": 0}
    with pytest.warns(TrainingWarning, match="a code of 8 for rows of 2 numbers can copy"):
        copies = Autoencoder(**settings).fit(X)
    with pytest.warns(TrainingWarning, match="LinearAutoencoder: a code of 3 for rows of 2"):
        LinearAutoencoder(code=3, epochs=1).fit(X[:9])
    learns = DenoisingAutoencoder(noise=0.5, **settings).fit(X)
    assert error(copies, X) < 1e-2
    assert error(learns, other) > 4 * error(copies, other)  # it pulls rows to the line


def test_kl_sparsity_brings_units_to_their_target():
    X = RANDOM.normal(size=(400, 6))
    settings = {"code": 12, "hidden": (), "penalty": "kl", "lr": 3e-2, "random_state": 0}
    sparse = SparseAutoencoder(sparsity=30.0, target=0.1, epochs=30, **settings).fit(X)
    free = SparseAutoencoder(sparsity=0.0, epochs=5, **settings).fit(X)
    assert sparse.transform(X).mean() == pytest.approx(0.1, abs=0.04)
    assert free.transform(X).mean() > 0.2


def test_l1_sparsity_finds_the_parts_that_rows_are_made_of():
    parts = np.linalg.qr(RANDOM.normal(size=(8, 8)))[0]
    used = RANDOM.exponential(size=(1500, 8)) * (RANDOM.random((1500, 8)) < 0.15)
    X = used @ parts
    model = SparseAutoencoder(
        code=16, hidden=(), sparsity=0.3, lr=2e-2, epochs=50, batch_size=100, training=ALL,
        random_state=0,
    ).fit(X)  # fmt: skip
    scale = model.adapter_.encoder.state()["scale"]
    columns = model.module_.decoder.layers[-1].weight.detach().numpy().T * scale  # (code, D)
    columns /= np.linalg.norm(columns, axis=1, keepdims=True)
    assert (np.abs(columns @ parts.T).max(axis=0) > 0.9).sum() >= 7


def test_draws_of_a_stochastic_one_vary_and_its_loss_falls():
    model = StochasticAutoencoder(code=1, hidden=(16,), epochs=20, lr=1e-2, random_state=0)
    model.fit(CURVE)
    first, again = model.draw(CURVE[:5], random_state=1), model.draw(CURVE[:5], random_state=2)
    assert np.abs(first - again).max() > 0
    assert np.array_equal(first, model.draw(CURVE[:5], random_state=1))
    assert model.history_[-1]["loss"] < model.history_[0]["loss"] - 1


def test_noise_is_taken_out_again():
    angle = RANDOM.uniform(0, 2 * np.pi, 1000)
    clean = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = clean + 0.2 * RANDOM.normal(size=clean.shape)
    settings = {"lr": 1e-2, "epochs": 20, "batch_size": 64, "random_state": 0}
    model = DenoisingAutoencoder(hidden=(64,), noise=0.28, **settings)
    back = model.fit(clean).reconstruct(noisy)
    assert np.square(back - clean).mean() < 0.7 * np.square(noisy - clean).mean()


def test_the_step_of_a_denoiser_is_the_score_of_gaussian_data():
    X = RANDOM.normal(size=(20_000, 1))
    training = Training(validation=0, schedule="cosine")
    model = DenoisingAutoencoder(
        hidden=(), noise=0.5, lr=1e-2, epochs=12, batch_size=1000, training=training, random_state=0
    ).fit(X)
    x = np.linspace(-2, 2, 9)[:, None]
    slope = np.polyfit(x[:, 0], (model.reconstruct(x) - x)[:, 0], 1)[0]
    assert slope == pytest.approx(-0.25 / (1 + 0.25), rel=0.02)
    field = np.polyfit(x[:, 0], model.score_field(x)[:, 0], 1)[0]
    assert field == pytest.approx(-1 / (1 + 0.25), rel=0.02)


def test_the_score_field_points_to_the_circle():
    angle = RANDOM.uniform(0, 2 * np.pi, 1000)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    settings = {"lr": 5e-3, "epochs": 40, "batch_size": 64, "random_state": 0}
    training = Training(schedule="cosine")
    model = DenoisingAutoencoder(hidden=(64, 64), noise=0.2, training=training, **settings).fit(X)
    spots = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    points = np.concatenate(
        [r * np.column_stack([np.cos(spots), np.sin(spots)]) for r in (0.75, 1.25)]
    )
    arrows = model.score_field(points)
    ways = points * np.repeat([1, -1], 24)[:, None]  # outwards from within, inwards from outside
    cosine = (
        (arrows * ways).sum(axis=1) / np.linalg.norm(arrows, axis=1) / np.linalg.norm(ways, axis=1)
    )
    assert cosine.mean() > 0.98


def test_contraction_shrinks_the_slopes_of_the_code_off_the_data():
    X = np.column_stack([T, 0.02 * RANDOM.normal(size=len(T))])
    settings = {"code": 2, "hidden": (16,), "lr": 2e-2, "epochs": 12, "random_state": 0}

    def slopes(model):
        x = torch.zeros(1, 2, dtype=next(model.module_.parameters()).dtype)
        jacobian = torch.autograd.functional.jacobian(lambda v: model.module_.encode(v)[0], x)
        return torch.linalg.svdvals(jacobian[:, 0])

    held = slopes(ContractiveAutoencoder(contraction=1.0, **settings).fit(X))
    free = slopes(ContractiveAutoencoder(contraction=0.0, **settings).fit(X))
    assert held.max() < 0.7 * free.max()
    assert held.square().sum() < 0.5 * free.square().sum()


def test_dropout_on_the_code_is_off_when_rows_are_encoded():
    model = Autoencoder(code=8, hidden=(16,), dropout=0.25, epochs=5, random_state=0).fit(CURVE)
    net, x = model.module_, torch.randn(500, 3, dtype=next(model.module_.parameters()).dtype)
    codes = model.transform(CURVE)
    assert codes.shape == (len(CURVE), 8)
    assert np.array_equal(codes, model.transform(CURVE))
    plain = net.encode(x)
    torch.manual_seed(0)
    noisy = net.train().encode(x)
    kept = noisy != 0
    assert kept.double().mean() == pytest.approx(0.75, abs=0.03)
    torch.testing.assert_close(noisy[kept], plain[kept] / 0.75)


def test_layers_learn_one_after_the_other_and_then_together():
    model = StackedAutoencoder(hidden=(3, 2), pretraining=2, epochs=3, random_state=0).fit(CURVE)
    stages = [line["stage"] for line in model.history_]
    assert stages == ["layer 1"] * 2 + ["layer 2"] * 2 + ["fine-tuning"] * 3


def test_a_pretrained_start_beats_a_random_one_with_few_labels():
    X, y = load_digits(return_X_y=True)
    X, y = X[:800] / 16, y[:800]
    shape = {"hidden": (64, 32, 16), "activation": "sigmoid", "random_state": 0}
    stack = StackedAutoencoder(pretraining=5, epochs=5, lr=1e-2, noise=0.3, **shape).fit(X)

    def accuracy(start):
        model = MLPClassifier(epochs=1, lr=1e-8, warm_start=True, training=ALL, **shape)
        model.fit(X, y)  # learns the scales of all rows, and nothing else
        if start is not None:
            model.module_.load_state_dict(start.state_dict())
        return model.set_params(epochs=40, lr=1e-2).fit(X[:50], y[:50]).score(X[300:], y[300:])

    torch.manual_seed(0)
    assert accuracy(stack.classifier_network(10)) > accuracy(None) + 0.1


def test_codes_serve_a_linear_classifier_better_than_rows_when_labels_are_few():
    random = np.random.default_rng(1)
    factor = random.normal(size=(800, 2))
    X = np.tanh(2 * factor @ random.normal(size=(2, 100))) + 2 * random.normal(size=(800, 100))
    y = (factor[:, 0] > 0).astype(int)
    model = Autoencoder(
        code=2, hidden=(32,), lr=1e-2, epochs=20, batch_size=80, random_state=0
    ).fit(X)

    def accuracy(rows):
        parts = [slice(start, start + 10) for start in range(0, 100, 10)]
        fits = [LogisticRegression().fit(rows[part], y[part]) for part in parts]
        return np.mean([fit.score(rows[200:], y[200:]) for fit in fits])

    assert accuracy(model.transform(X)) > accuracy(X) + 0.04


def test_convolutions_give_images_back():
    X, _ = stripes()
    model = Autoencoder(code=8, width=8, lr=5e-3, epochs=12, random_state=0).fit(X)
    back = model.reconstruct(X)
    assert back.shape == X.shape
    assert back.dtype == np.uint8
    assert model.history_[-1]["loss"] < 0.5 * model.history_[0]["loss"]
    assert model.interpolate(X[0], X[1], steps=5).shape == (5, 12, 12)
    assert model.traverse(0, steps=3).shape == (3, 12, 12)


def test_tables_with_words_come_back_as_tables(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i % 7},{'red' if i % 7 > 3 else 'blue'},{i % 7 > 3}" for i in range(140)]
    path.write_text("size,colour,large\n" + "\n".join(lines))
    data = castalia.read(path)
    model = Autoencoder(code=2, hidden=(16,), lr=1e-2, epochs=40, random_state=0).fit(data)
    back = model.reconstruct(data)
    assert back.column_names == ["size", "colour", "large"]
    right = np.array(back["colour"].to_pylist()) == data.column("colour")
    assert right.mean() > 0.95
    assert str(back.schema.field("size").type) == "int64"


def test_one_row_is_not_enough():
    with pytest.raises(InvalidData, match="Autoencoder: there must be at least 2 rows"):
        Autoencoder().fit(CURVE[:1])


def test_codes_of_another_width_are_refused(bent):
    with pytest.raises(ValueError, match=r"codes must have shape \(n, 1\); got \(2, 3\)"):
        bent.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(InvalidParameter, match="`dimension` must be below 1; got 4"):
        bent.traverse(4)


def test_pixels_outside_the_support_are_named():
    with pytest.raises(
        InvalidData, match="pixels must be bytes, or numbers between 0 and 1.*got 3"
    ):
        Autoencoder(likelihood="bernoulli").fit(3.0 * np.ones((4, 8, 8)))
