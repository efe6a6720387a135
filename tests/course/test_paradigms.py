"""Ways of learning: what is given, when, and what is asked for."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Probe
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from castalia import GenerativeAdversarialNetwork, KMeans, LinearRegression, Perceptron, Training
from castalia.models.language import BERT, BERTClassifier

# ---- communities ----


def test_planted_communities_are_found_in_who_knows_whom():
    random = np.random.default_rng(0)
    community = np.arange(150) % 3
    chance = np.where(community[:, None] == community, 0.5, 0.1)
    knows = np.triu(random.random((150, 150)) < chance, k=1)
    rows = (knows | knows.T).astype(float)
    model = KMeans(n_clusters=3, random_state=0).fit(rows)
    assert adjusted_rand_score(community, model.labels_) > 0.95
    known = [rows[model.labels_ == k].mean(axis=0) for k in range(3)]  # how often one is known
    np.testing.assert_allclose(model.cluster_centers_, known, atol=1e-6)


# ---- examples that come one by one ----


def test_the_regret_of_an_online_learner_vanishes_against_the_best_of_all_rules():
    random = np.random.default_rng(0)
    right = np.array([3.0, -2.0, 1.0]) / 14**0.5
    X = random.normal(size=(4000, 3))
    X = X[np.abs(X @ right) > 0.3][:1200]  # the best rule makes no mistake, by this margin
    y = (X @ right > 0).astype(int)
    model = Perceptron(random_state=0).partial_fit(X[:1], y[:1], classes=[0, 1])
    wrong = [0]
    for x, label in zip(X[1:, None], y[1:, None], strict=True):
        wrong.append(wrong[-1] + int(model.predict(x)[0] != label[0]))  # asked first, told then
        model.partial_fit(x, label)
    regret = np.array([wrong[t - 1] / t for t in (75, 300, 1200)])
    assert all(later < 0.6 * earlier for earlier, later in pairwise(regret))
    assert regret[-1] < 0.02
    assert wrong[-1] <= ((X**2).sum(axis=1).max() + 1) / 0.3**2  # Novikoff, with the bias


# ---- two networks against each other ----


def told_apart(model, data, drawn):
    """Return how often the discriminator is right about rows of data and about drawn ones."""
    return (np.mean(model.discriminate(data) > 0.5) + np.mean(model.discriminate(drawn) < 0.5)) / 2


def two_clouds(n, random):
    return (np.where(random.random(n) < 0.5, -2, 2) + 0.6 * random.normal(size=n))[:, None]


def test_a_discriminator_that_wins_alone_is_at_chance_against_a_generator_that_learns():
    random = np.random.default_rng(10)  # settings were chosen on others
    X, unseen = two_clouds(1000, random), two_clouds(1000, random)
    game = {"optimizer": ("adam", {"betas": (0.5, 0.999)}), "validation": 0, "schedule": "cosine"}
    settings = {"noise": 4, "hidden": (32,), "lr": 4e-3, "random_state": 10}
    alone = GenerativeAdversarialNetwork(  # the generator has one turn in the epoch
        epochs=1, batch_size=200, discriminator_steps=999, training=Training(**game), **settings
    ).fit(np.tile(X, (30, 1)))
    assert told_apart(alone, unseen, alone.sample(1000)) > 0.6
    both = GenerativeAdversarialNetwork(
        epochs=100, batch_size=100, training=Training(**game, average=("ema", 0.99)), **settings
    ).fit(X)
    assert told_apart(both, unseen, both.sample(1000)) == pytest.approx(0.5, abs=0.06)
    assert by_another(both, X, unseen) < by_another(alone, X, unseen) - 0.05


def by_another(model, X, unseen):
    """Return how often a judge of another kind, fitted to rows of both kinds, is right."""
    kinds = np.repeat([1, 0], [len(X), len(X)])
    judge = make_pipeline(PolynomialFeatures(4), StandardScaler(), Probe())
    judge.fit(np.concatenate([X, model.sample(len(X))]), kinds)
    return judge.score(np.concatenate([unseen, model.sample(len(X))]), kinds)


# ---- hypotheses ----


@pytest.mark.parametrize("truth", ["line", "wave"])
def test_the_bias_that_matches_the_data_wins(truth):
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (2030, 1))
    y = 2 * x[:, 0] if truth == "line" else np.sin(4 * x[:, 0])
    seen = y + 0.3 * random.normal(size=len(y))

    def error(model):
        return np.mean((model.fit(x[:30], seen[:30]).predict(x[30:]) - y[30:]) ** 2)

    hyperplanes = error(LinearRegression())
    polynomials = error(
        make_pipeline(PolynomialFeatures(7, include_bias=False), LinearRegression())
    )
    better, worse = sorted([hyperplanes, polynomials])
    assert better == (hyperplanes if truth == "line" else polynomials)
    assert worse > 3 * better


# ---- texts without labels ----

DOES = (["eats", "sleeps", "runs", "hides"], ["cuts", "rusts", "breaks", "bends"])  # animals, tools
EACH = 24
LABELS = np.repeat([0, 1], EACH)
SMALL = {"context": 8, "dropout": 0.0, "batch_size": 64, "random_state": 0}


@pytest.fixture(scope="module")
def words():
    """Names that say nothing by themselves, and sentences that tell what animals and tools do."""
    random = np.random.default_rng(0)
    names = random.permutation([f"w{i}" for i in range(2 * EACH)]).reshape(2, EACH)
    sentences = [
        f"the {random.choice(names[kind])} {random.choice(DOES[kind])} "
        f"{random.choice(['here', 'there', 'often'])}"
        for kind in random.integers(2, size=1500)
    ]
    return [f"the {name}" for name in names.flat], sentences


@pytest.fixture(scope="module")
def reader(words):
    sizes = {"tokenizer": "words", "dim": 32, "depth": 1, "heads": 2}
    return BERT(**sizes, **SMALL, epochs=30, lr=3e-3, training=Training(validation=0.1)).fit(
        words[1]
    )


def parted(labels, seed):
    """Return so many names of each kind, whose labels are known, and all the others."""
    random = np.random.default_rng(seed)
    known = np.concatenate([kind * EACH + random.permutation(EACH)[:labels] for kind in (0, 1)])
    return known, np.setdiff1d(np.arange(2 * EACH), known)


def test_hidden_words_are_guessed_from_the_others_not_from_how_often_they_come(words, reader):
    places = np.array([sentence.split() for sentence in words[1]])
    _, counts = np.unique(places, return_counts=True)
    share = counts / counts.sum()
    constant = -(share * np.log(share)).sum()  # 3.1 nats: always the same guess
    best = (np.log(EACH) + np.log(4) + np.log(3)) / 4  # 1.4: kind and place are known
    assert reader.history_[-1]["val_loss"] < best + 0.1 < constant / 2


@pytest.mark.parametrize("labels", [4, 10])
def test_a_line_on_what_was_read_tells_names_apart_and_one_on_the_names_cannot(
    words, reader, labels
):
    names = np.array(words[0])
    read = reader.transform(words[0])
    raw = (names[:, None] == names).astype(float)
    for seed in range(3):
        known, rest = parted(labels, seed)
        scores = [
            Probe(max_iter=1000).fit(X[known], LABELS[known]).score(X[rest], LABELS[rest])
            for X in (read, raw)
        ]
        assert scores[0] > 0.95
        assert scores[1] < 0.6


def test_a_network_that_has_read_learns_sooner_and_more_from_few_labels(words, reader):
    names = np.array(words[0], dtype=object)
    known, rest = parted(10, 0)

    def learnt(**settings):
        model = BERTClassifier(
            **settings, **SMALL, pool="mean", epochs=15, lr=1e-3, training=Training(validation=0)
        )
        model.fit(names[known].tolist(), LABELS[known])
        return model.history_[-1]["loss"], model.score(names[rest].tolist(), LABELS[rest])

    pretrained = learnt(start=reader)
    scratch = learnt(tokenizer="words", dim=32, depth=1, heads=2)
    assert pretrained[0] < 0.7 * scratch[0]
    assert pretrained[1] > 0.95 > 0.7 > scratch[1]
