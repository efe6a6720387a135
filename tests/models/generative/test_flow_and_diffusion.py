import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import castalia
from castalia import DRAW, DiffusionModel, NormalizingFlow, Training, VariationalAutoencoder
from castalia.errors import InvalidData
from castalia.lab.draw_attention_experiment import glyphs as placed
from castalia.objectives import VelocityPrediction, ddim_step, signal_shares
from castalia.protocols import Batch
from castalia.testing.toys import blobs, moons

X, _ = moons(1200)
TRAIN, TEST = X[:800], X[800:]


@pytest.fixture(scope="module")
def flow():
    return NormalizingFlow(depth=4, hidden=(32,), lr=5e-3, epochs=20, random_state=0).fit(TRAIN)


def test_a_flow_is_likelier_than_a_mixture_and_a_kernel_density(flow):
    mixture = max(GaussianMixture(k, random_state=0).fit(TRAIN).score(TEST) for k in (2, 4))
    kernel = max(
        KernelDensity(bandwidth=h).fit(TRAIN).score(TEST) / len(TEST) for h in (0.05, 0.1, 0.2)
    )
    assert flow.score(TEST) > max(mixture, kernel) - 0.02
    assert flow.score(TEST) > GaussianMixture(1).fit(TRAIN).score(TEST) + 0.3


def test_its_density_adds_up_to_one_in_the_units_of_x(flow):
    side = np.linspace(-3, 4, 141)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    assert np.exp(flow.score_samples(grid)).sum() * (side[1] - side[0]) ** 2 == pytest.approx(
        1, abs=0.02
    )


def test_its_samples_are_as_likely_as_data(flow):
    assert flow.score(flow.sample(1000)) == pytest.approx(flow.score(TEST), abs=0.2)


def test_constant_columns_have_no_density():
    with pytest.raises(
        InvalidData, match="columns must vary to have a density; constant: .*column 1"
    ):
        NormalizingFlow(epochs=1).fit(np.column_stack([X[:, 0], np.ones(len(X))]))
    with pytest.raises(InvalidData, match="X must be a table; got images"):
        NormalizingFlow(epochs=1).fit(np.zeros((4, 8, 8)))


def test_words_and_gaps_are_drawn_too(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "t.csv"
    lines = []
    for _ in range(300):
        red = random.random() < 0.7
        size = "" if random.random() < 0.1 else f"{(3 if red else -3) + random.normal():.3f}"
        lines.append(f"{size},{'red' if red else 'blue'}")
    path.write_text("size,colour\n" + "\n".join(lines))
    data = castalia.read(path)
    model = DiffusionModel(hidden=32, lr=1e-2, epochs=25, sample_steps=20, random_state=0).fit(data)
    drawn = model.sample(400)
    colour = np.array(drawn["colour"].to_pylist(), dtype=object)
    size = np.array([np.nan if v is None else v for v in drawn["size"].to_pylist()])
    assert (colour == "red").mean() == pytest.approx(0.7, abs=0.15)
    assert np.nanmean(size[colour == "red"]) > np.nanmean(size[colour == "blue"]) + 3
    assert 0.01 < np.isnan(size).mean() < 0.3


def test_guidance_draws_the_class_and_narrows_it():
    rows, labels = blobs()
    settings = {"hidden": 32, "lr": 5e-3, "epochs": 40, "sample_steps": 10, "random_state": 0}
    model = DiffusionModel(conditional=True, **settings).fit(rows, labels)
    centres = np.array([rows[labels == k].mean(axis=0) for k in range(3)])
    for label in range(3):
        drawn = model.sample(200, label).mean(axis=0)
        assert np.linalg.norm(centres - drawn, axis=1).argmin() == label
    free = model.sample(300, 0).std(axis=0)
    model.guidance = 1.0
    assert model.sample(300, 0).std(axis=0).mean() < free.mean()


def test_draws_with_the_true_velocity_of_a_gaussian_are_that_gaussian():
    """x_t is Gaussian too, so the mean of v given x_t is linear in it."""
    mean, spread, shares = 2.0, 0.5, signal_shares(1000)
    x = torch.randn(4000, 1, generator=torch.Generator().manual_seed(0))
    after = torch.cat([torch.ones(1), shares[:-1]])
    for a, then in zip(shares.flip(0), after.flip(0), strict=True):
        signal, noise = a.sqrt(), (1 - a).sqrt()
        variance = a * spread**2 + 1 - a
        clean = mean + signal * spread**2 / variance * (x - signal * mean)
        eps = noise / variance * (x - signal * mean)
        x = ddim_step(x, signal * eps - noise * clean, a, then, -10, 10)
    assert float(x.mean()) == pytest.approx(mean, abs=0.03)
    assert float(x.std()) == pytest.approx(spread, rel=0.03)


def test_the_velocity_that_is_learnt_tells_the_row_from_its_noise():
    """Rows that are all the same: v is known wherever x_t and t are."""
    row, seen = torch.tensor([[3.0, -1.0]]), []

    def net(x, t, y):
        signal, spread = (part.sqrt() for part in (shares[t][:, None], 1 - shares[t][:, None]))
        noise = (x - signal * row) / spread
        seen.append(y)
        return signal * noise - spread * row

    net.expand, net.classes, shares = lambda x: x, 3, signal_shares(1000)
    batch = Batch(row.expand(500, 2), torch.zeros(500, dtype=torch.long))
    assert VelocityPrediction().terms(net, batch, "train")["loss"] < 1e-6
    assert 0.05 < float((seen[0] == 3).float().mean()) < 0.15  # the class is hidden


def glyphs(n=200, seed=0):
    """Images of 12 x 12 with a bar and a block, each anywhere."""
    random = np.random.default_rng(seed)
    found = np.zeros((n, 12, 12))
    for image in found:
        row, column, top, left = random.integers(0, 9, 4)
        image[row : row + 2, column : column + 4] = 1
        image[top : top + 3, left : left + 3] = 1
    return found


def test_draw_shows_where_it_writes_and_what_it_paints():
    model = DRAW(code=2, steps=3, hidden=16, window=3, epochs=1, random_state=0).fit(glyphs(40))
    assert model.canvases(2).shape == (2, 3, 12, 12)
    assert model.attention(glyphs(5)).shape == (5, 3, 4)
    some = glyphs(40)
    few, many = (model.log_likelihood(some, samples=k).mean() for k in (25, 50))
    assert few == pytest.approx(many, abs=1.5)
    with pytest.raises(InvalidData, match="DRAW: X must hold images.*got a table"):
        DRAW().fit(X)


def test_draw_bounds_glyphs_better_than_one_step():
    """GEN-12: glyphs at any place; the bound of one draw, with as many latent units."""
    common = {"lr": 5e-3, "epochs": 22, "random_state": 0}
    training = Training(validation=0, clip=10.0)
    paints = DRAW(code=4, steps=4, hidden=64, window=4, training=training, **common)
    at_once = VariationalAutoencoder(
        code=16, hidden=(128,), width=0, likelihood="bernoulli", training=training, **common
    )
    X, held = placed(400), placed(300, 99)
    bound = paints.fit(X).score(held)
    assert bound > at_once.fit(X).log_likelihood(held, samples=1)[0].mean() + 3
    shown = paints.painted(paints.transform(held[:2]))
    assert shown.shape == (2, 4, 12, 12)
    assert np.abs(shown[:, -1] - held[:2]).mean() < np.abs(shown[:, 0] - held[:2]).mean()


def test_a_draw_of_a_diffusion_model_can_be_watched():
    X = np.random.default_rng(0).normal(5, 1, size=(100, 2))
    model = DiffusionModel(hidden=16, epochs=2, sample_steps=10, random_state=0).fit(X)
    seen = model.stages(4, stages=3)
    assert [rows.shape for rows in seen] == [(4, 2)] * 3
    assert not np.allclose(seen[0], seen[-1])


SMALL = {"epochs": 1, "batch_size": 1, "random_state": 0}  # a batch of one
MODELS = [
    castalia.Autoencoder(code=1, width=2, **SMALL),
    VariationalAutoencoder(code=2, width=2, **SMALL),
    castalia.GenerativeAdversarialNetwork(noise=2, width=2, **SMALL),
    DiffusionModel(width=8, hidden=8, sample_steps=2, **SMALL),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_odd_data_is_learnt_or_refused_in_one_sentence(model):
    random = np.random.default_rng(0)
    model.fit(random.uniform(size=(6, 8, 8)))
    rows = np.column_stack([random.normal(size=6), np.full(6, 3.0)])
    model.fit(rows)  # a constant column
    if isinstance(model, DiffusionModel):
        assert model.sample(3)[:, 1].tolist() == [3.0] * 3
    with pytest.raises(InvalidData, match="there must be at least 2 rows to learn from; got 1"):
        model.fit(rows[:1])
    with pytest.raises(ValueError, match="contains infinity"):
        model.fit(np.where(rows == 3, np.inf, rows))


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (VariationalAutoencoder(likelihood="bernoulli"), "Scale them, or use likelihood="),
        (VariationalAutoencoder(likelihood="logistic"), "Scale them, or use likelihood="),
        (VariationalAutoencoder(likelihood="categorical"), "Scale them, or use likelihood="),
        (DRAW(), "Scale them.$"),
        (DiffusionModel(), "Scale them.$"),
    ],
)
def test_pixels_outside_the_support_are_named(model, remedy):
    images = np.zeros((4, 8, 8))
    images[2, 1, 1] = 7.5
    with pytest.raises(InvalidData, match=f"between 0 and 1; got 7.5 in image 2. {remedy}"):
        model.fit(images)


def test_pixels_outside_the_support_get_no_score():
    images = np.zeros((4, 8, 8))
    model = VariationalAutoencoder(code=1, width=2, epochs=1, random_state=0).fit(images)
    images[3, 0, 0] = -1
    with pytest.raises(InvalidData, match="between 0 and 1; got -1 in image 3"):
        model.score_samples(images)
