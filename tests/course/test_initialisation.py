"""Experiments on where weights begin."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from castalia import Training
from castalia.errors import TrainingWarning
from castalia.nets.dense import MLP
from castalia.nn import copy_weights, init
from castalia.objectives import BinaryCrossEntropy, CrossEntropy, SquaredError
from castalia.testing import train_tensors


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def fit(net, objective, x, y, *, epochs, lr=0.01, batch_size=32, **own):
    training = Training(**{"validation": 0, **own})
    return train_tensors(
        net, objective, x, y, training=training, epochs=epochs, lr=lr, batch_size=batch_size
    )


# ---- symmetry ----


def test_units_that_start_equal_stay_equal_and_random_ones_do_not():
    x = draw(64, 3)
    y = torch.sin(2 * x[:, :1]) + x[:, 1:2]

    def rank_after_100_steps(scheme, **settings):
        net = init(MLP(3, 1, hidden=(6,), activation="tanh"), scheme, **settings)
        fit(net, SquaredError(), x, y, epochs=50)  # two steps each
        return torch.linalg.matrix_rank(net.layers[0].weight.detach()).item(), net

    with pytest.warns(TrainingWarning, match="the same weights"):
        rank, net = rank_after_100_steps("constant", scale=0.3)
    assert rank == 1
    assert (net.layers[0].weight - net.layers[0].weight[0]).abs().max() < 1e-6
    assert (net.layers[0].weight - 0.3).abs().max() > 0.05  # it did learn
    assert rank_after_100_steps("glorot", random_state=0)[0] == 3


# ---- scale and depth ----


def variances(scheme, activation="tanh", depth=10, **settings):
    """Variance of the activations of every layer of a deep net, from the inputs on."""
    net = MLP(256, 256, hidden=(256,) * depth, activation=activation)
    init(net, scheme, random_state=0, **settings)
    h, found = draw(200, 256), []
    for linear, act in zip(net.layers[:-1:2], net.layers[1::2], strict=True):
        h = act(linear(h))
        found.append(h.var().item())
    return found


def test_glorot_keeps_the_variance_through_ten_tanh_layers():
    kept, fan_in = variances("glorot"), variances("fan_in_uniform")
    assert kept[-1] > 0.1 * kept[0]  # tanh itself shrinks
    assert fan_in[-1] < 1e-3 * fan_in[0]  # a third is lost in each layer


def test_weights_too_large_saturate_and_too_small_vanish():
    small, right, large = (
        variances("normal", scale=scale / 16) for scale in (0.3, 1.0, 5.0)
    )  # 16 = sqrt(256)
    assert small[-1] < 1e-8
    assert 0.05 < right[-1] < right[0] < 0.5
    assert min(large) > 0.8  # nearly all units at -1 or 1
    exploding = variances("normal", activation="relu", scale=5 / 16)
    assert exploding[-1] > 1e8 * exploding[0]
    curve = [b / a for a, b in zip(small, small[1:], strict=False)]
    assert curve == pytest.approx([0.09] * 9, rel=0.1)  # the variance falls as scale^2 a layer


# ---- starts that were learnt ----


def latent(n, seed):
    """Rows of 20 numbers made from two hidden ones; the class is the sign of their product."""
    hidden = draw(n, 2, seed=seed)
    mixing = draw(2, 20, seed=100)
    x = torch.tanh(hidden @ mixing) + 0.1 * draw(n, 20, seed=seed + 1)
    return x, (hidden[:, :1] * hidden[:, 1:] > 0).float()


def stacked_autoencoders(net, rows):
    """Train an autoencoder on each layer's inputs in turn and give the layer its weights."""
    for layer, act in zip(net.layers[:-1:2], net.layers[1::2], strict=True):
        coder = MLP(rows.shape[1], rows.shape[1], hidden=(16,), activation="sigmoid")
        init(coder, "fan_in_uniform", random_state=0)
        fit(coder, SquaredError(), rows, rows, epochs=20)
        assert copy_weights(coder.layers[0], layer).copied == ("weight", "bias")
        assert torch.equal(layer.weight, coder.layers[0].weight)
        assert torch.equal(layer.bias, coder.layers[0].bias)
        rows = act(layer(rows)).detach()
    return net


def epochs_until(net, x, y, loss, epochs=120):
    state = fit(net, BinaryCrossEntropy(), x, y, epochs=epochs)
    return next((k for k, line in enumerate(state.history, 1) if line["loss"] < loss), epochs)


def test_weights_of_stacked_autoencoders_are_a_quicker_start_than_random_ones():
    x, y = latent(100, seed=3)
    many, _ = latent(500, seed=7)  # without labels
    for seed in range(3):
        random, learnt = (
            init(
                MLP(20, 1, hidden=(16, 16, 16), activation="sigmoid"),
                "fan_in_uniform",
                random_state=seed,
            )
            for _ in range(2)
        )
        stacked_autoencoders(learnt, many)
        assert epochs_until(learnt, x, y, loss=0.3) < 0.7 * epochs_until(random, x, y, loss=0.3)


def test_weights_of_a_related_task_give_more_accuracy_from_few_labels():
    x, plane = draw(3000, 30, seed=1), torch.linalg.qr(draw(30, 2, seed=2))[0]
    u, v = (x @ plane).T > 0  # all that matters is where a row lies in a plane
    quadrant, diagonal = u.long() + 2 * v.long(), (u == v).long()
    few, other = slice(64), slice(64, 1000)
    for seed in range(3):
        old = init(MLP(30, 4, hidden=(32, 16)), "he", random_state=seed)
        fit(old, CrossEntropy(), x[1000:], quadrant[1000:], epochs=10)
        random, transferred = (
            init(MLP(30, 2, hidden=(32, 16)), "he", random_state=seed) for _ in range(2)
        )
        assert copy_weights(old, transferred).reshaped == ("layers.4.weight", "layers.4.bias")
        scores = []
        for net in (random, transferred):
            fit(net, CrossEntropy(), x[few], diagonal[few], epochs=40)
            scores.append((net(x[other]).argmax(1) == diagonal[other]).double().mean().item())
        assert scores[1] > scores[0] + 0.1


# ---- word vectors ----


class ContinuousBagOfWords(nn.Module):
    """The middle word from the sum of the vectors of its neighbours."""

    def __init__(self, words, dim):
        super().__init__()
        self.vectors, self.head = nn.Embedding(words, dim), nn.Linear(dim, words)

    def forward(self, x):  # (B, neighbours)
        return self.head(self.vectors(x.long()).sum(1))


def test_word_vectors_start_at_random_and_only_words_that_occur_are_learnt():
    net = init(ContinuousBagOfWords(30, 8), "uniform", scale=0.1, random_state=0)
    start = net.vectors.weight.detach().clone()
    assert start.abs().max() <= 0.1
    assert start.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.1)
    assert len(start.unique(dim=0)) == 30
    seen = torch.tensor([2, 3, 5, 7, 11, 13])
    x = seen[torch.randint(6, (64, 4), generator=torch.Generator().manual_seed(0))]
    F.cross_entropy(net(x), x[:, 0]).backward()
    touched = net.vectors.weight.grad.abs().sum(1) > 0
    assert touched.nonzero().flatten().tolist() == seen.tolist()
    state = fit(net, CrossEntropy(), x.float(), x[:, 0], epochs=20)
    moved = (net.vectors.weight.detach() - start).abs().sum(1) > 0
    assert moved.nonzero().flatten().tolist() == seen.tolist()
    assert state.history[-1]["loss"] < 0.8 * state.history[0]["loss"]
