"""Schemes by their moments, their blocks, their seeds and their warnings."""

import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidData, InvalidParameter, TrainingWarning
from castalia.nets.dense import MLP
from castalia.nn import ACTIVATIONS, GAINS, init

M, N = 300, 100  # inputs and outputs of the layer that is measured


def weight(scheme, layer=None, **settings):
    layer = layer if layer is not None else nn.Linear(M, N).double()
    return init(layer, scheme, random_state=0, **settings).weight


# ---- moments ----


@pytest.mark.parametrize(
    "scheme, bound, variance",
    [
        ("fan_in_uniform", 1 / math.sqrt(M), 1 / (3 * M)),
        ("glorot", math.sqrt(6 / (M + N)), 2 / (M + N)),
        ("small_uniform", 0.5, 1 / 12),
        ("uniform", 0.3, 0.3**2 / 3),
    ],
)
def test_a_uniform_scheme_fills_its_range_evenly(scheme, bound, variance):
    found = weight(scheme, scale=0.3 if scheme == "uniform" else None)
    assert 0.999 * bound < found.abs().max() <= bound
    assert found.var().item() == pytest.approx(variance, rel=0.03)
    assert found.mean().item() == pytest.approx(0, abs=3 * math.sqrt(variance / (M * N)))


@pytest.mark.parametrize("scheme, deviation", [("he", math.sqrt(2 / M)), ("normal", 0.3)])
def test_a_normal_scheme_has_its_deviation_and_no_bound(scheme, deviation):
    found = weight(scheme, scale=0.3 if scheme == "normal" else None) / deviation
    assert found.std().item() == pytest.approx(1, rel=0.02)
    assert found.pow(4).mean().item() == pytest.approx(3, rel=0.05)  # of a normal distribution


def test_the_orthogonal_start_keeps_lengths():
    found = weight("orthogonal")
    assert_close(found @ found.T, torch.eye(N, dtype=torch.float64))


def test_the_numbers_are_those_of_torch():
    mine, theirs = weight("glorot", nn.Linear(M, N)), torch.empty(N, M)
    nn.init.xavier_uniform_(theirs, generator=torch.Generator().manual_seed(0))
    assert torch.equal(mine, theirs)
    mine = weight("he", nn.Conv2d(8, 16, 3), activation="relu")
    theirs = torch.empty(16, 8, 3, 3)
    source = torch.Generator().manual_seed(0)
    nn.init.kaiming_normal_(theirs, nonlinearity="relu", generator=source)
    assert_close(mine, theirs)


@pytest.mark.parametrize("scheme", ["fan_in_uniform", "glorot", "he", "orthogonal"])
def test_the_gain_of_the_activation_multiplies_the_weights(scheme):
    assert_close(weight(scheme, activation="relu"), weight(scheme, activation="identity") * 2**0.5)


def test_gains_are_torchs_where_torch_has_them_and_every_activation_has_one():
    known = {"identity": "linear", "sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu"}
    known |= {"leaky_relu": "leaky_relu", "selu": "selu"}
    for mine, theirs in known.items():
        assert GAINS[mine] == pytest.approx(nn.init.calculate_gain(theirs))
    assert GAINS.keys() == ACTIVATIONS.keys()


# ---- biases, kinds of layers ----


@pytest.mark.parametrize("bias", [0.0, 0.1, -2.0])
def test_biases_are_the_constant(bias):
    net = init(nn.Sequential(nn.Linear(3, 4), nn.LSTM(4, 2)), "glorot", bias=bias)
    found = torch.cat([p.flatten() for name, p in net.named_parameters() if "bias" in name])
    assert found.unique().tolist() == [pytest.approx(bias)]


def test_biases_may_be_left_alone():
    layer = nn.Linear(3, 4)
    before = layer.bias.clone()
    init(layer, "glorot", bias=None)
    assert torch.equal(layer.bias, before)


@pytest.mark.parametrize("kind, gates", [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
def test_each_gate_of_a_recurrent_layer_is_a_matrix_of_its_own(kind, gates):
    layer = init(kind(8, 16), "orthogonal", random_state=0)
    for gate in layer.weight_hh_l0.chunk(gates):
        assert_close(gate @ gate.T, torch.eye(16))
    bound = math.sqrt(6 / (8 + 16))
    assert init(layer, "glorot", random_state=0).weight_ih_l0.abs().max() <= bound


def test_groups_and_transposed_convolutions_have_the_fans_of_one_block():
    grouped = init(nn.Conv1d(8, 16, 1, groups=4), "orthogonal", random_state=0)
    for block in grouped.weight[:, :, 0].chunk(4):  # (4, 2) each
        assert_close(block.T @ block, torch.eye(2))
    bound = 1 / math.sqrt(64 * 9)  # 64 inputs, 9 places of the kernel
    layer = init(nn.ConvTranspose2d(64, 2, 3), "fan_in_uniform", random_state=0)
    assert 0.98 * bound < layer.weight.abs().max() <= bound


def test_embeddings_and_attention_are_filled_and_padding_stays_zero():
    embedding = nn.Embedding(50, 8, padding_idx=3)
    init(embedding, "normal", scale=0.1, random_state=0)
    assert embedding.weight[3].tolist() == [0.0] * 8
    assert embedding.weight.std().item() == pytest.approx(0.1, rel=0.1)
    attention = init(nn.MultiheadAttention(16, 2), "orthogonal", random_state=0)
    for part in attention.in_proj_weight.chunk(3):
        assert_close(part @ part.T, torch.eye(16))


def test_normalisation_layers_are_left_alone():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.LayerNorm((2, 2)))
    nn.init.constant_(net[1].bias, 7.0)
    init(net, "glorot")
    assert net[1].weight.tolist() == [1.0] * 4
    assert net[1].bias.tolist() == [7.0] * 4
    assert net[2].weight.tolist() == [[1.0, 1.0]] * 2


def test_a_shared_weight_is_drawn_once():
    net = nn.ModuleList([nn.Embedding(6, 4), nn.Linear(4, 6, bias=False), nn.Linear(4, 4)])
    net[1].weight = net[0].weight
    alone = nn.ModuleList([nn.Embedding(6, 4), nn.Linear(4, 4)])
    assert torch.equal(
        init(net, "he", random_state=0)[2].weight, init(alone, "he", random_state=0)[1].weight
    )


# ---- randomness ----


@pytest.mark.parametrize("scheme", ["glorot", "he", "orthogonal", "lsuv"])
def test_the_seed_decides_and_the_global_random_state_is_left_alone(scheme):
    data = {"data": torch.ones(8, 3) * torch.arange(8)[:, None]} if scheme == "lsuv" else {}
    nets = [MLP(3, 2, hidden=(5,), dropout=0.5) for _ in range(3)]
    state, numpy = torch.get_rng_state(), np.random.get_state()[1].copy()
    for net, seed in zip(nets, (0, 0, 1), strict=True):
        init(net, scheme, random_state=seed, **data)
    assert torch.equal(state, torch.get_rng_state())
    assert np.array_equal(numpy, np.random.get_state()[1])
    first, second, other = (net.layers[0].weight for net in nets)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_a_generator_goes_on_where_it_stands():
    source = torch.Generator().manual_seed(0)
    first = init(nn.Linear(3, 3), "he", random_state=source).weight
    second = init(nn.Linear(3, 3), "he", random_state=source).weight
    assert torch.equal(first, weight("he", nn.Linear(3, 3)))
    assert not torch.equal(first, second)
    init(nn.Linear(3, 3), "he", random_state=np.random.default_rng(0))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_seed_gives_the_same_numbers_on_every_device():
    for scheme in ("glorot", "he", "orthogonal"):
        there = weight(scheme, nn.Linear(M, N, device="cuda"))
        assert torch.equal(there.cpu(), weight(scheme, nn.Linear(M, N)))


# ---- LSUV ----


def outputs(net, x):
    """Return the outputs of every linear and convolutional layer."""
    found = []
    hooks = [
        layer.register_forward_hook(lambda m, i, out: found.append(out))
        for layer in net.modules()
        if isinstance(layer, nn.Linear | nn.Conv2d)
    ]
    net(x)
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_lsuv_gives_every_layer_outputs_of_unit_variance(bias):
    net = nn.Sequential(
        *(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 32), nn.Tanh()),
        *(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)),
    ).double()
    x = 9 * torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    init(net, "lsuv", data=x, bias=bias, random_state=0)
    assert [out.std().item() for out in outputs(net, x)] == pytest.approx([1.0] * 4)
    assert net[5].weight.norm(dim=1).std() < 1e-9  # still orthogonal, up to the scale
    assert not any(layer._forward_hooks for layer in net.modules())


def test_lsuv_leaves_modes_and_running_statistics_alone():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4))
    net[1].eval()
    init(net, "lsuv", data=torch.randn(20, 3), random_state=0)
    assert [m.training for m in net] == [True, False, True, True]
    assert net[1].running_mean.tolist() == [0.0] * 4


def test_lsuv_names_the_layer_whose_outputs_do_not_vary():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    with pytest.raises(InvalidData, match="outputs of layer `0` vary; their .* is 0"):
        init(net, "lsuv", data=torch.zeros(5, 3))
    assert not any(layer._forward_hooks for layer in net)


# ---- warnings and errors ----


def deep(depth, kind=nn.ReLU, norm=()):
    return nn.Sequential(*(part for _ in range(depth) for part in (nn.Linear(4, 4), *norm, kind())))


@pytest.mark.parametrize(
    "net, settings, message",
    [
        (
            MLP(3, 2, hidden=(4,)),
            {"scheme": "zeros"},
            "`zeros` gives the units .* the same weights",
        ),
        (deep(2), {"scheme": "constant", "scale": 0.5}, "`constant` gives .* the same weights"),
        (deep(2, nn.Tanh), {"scheme": "he"}, "`he` is made for rectifiers; with `tanh`"),
        (deep(2, nn.Sigmoid), {"scheme": "he"}, "`he` is made for rectifiers; with `sigmoid`"),
        (nn.Linear(3, 3), {"scheme": "he", "activation": "tanh"}, "`he` is made for rectifiers"),
        (deep(6), {"scheme": "glorot"}, "halves the variance in each of the 6 rectified layers"),
    ],
    ids=["zeros", "constant", "tanh", "sigmoid", "named", "deep"],
)
def test_a_symmetric_or_mismatched_start_is_warned_of(net, settings, message):
    with pytest.warns(TrainingWarning, match=message):
        init(net, **settings)


@pytest.mark.parametrize(
    "net, settings",
    [
        (nn.Linear(3, 1), {"scheme": "zeros"}),
        (deep(2), {"scheme": "glorot"}),
        (deep(8), {"scheme": "he"}),
        (deep(8), {"scheme": "glorot", "activation": "relu"}),
        (deep(8, norm=[nn.LayerNorm(4)]), {"scheme": "glorot"}),
        (deep(8, nn.Tanh), {"scheme": "glorot"}),
    ],
    ids=["one layer", "shallow", "he", "gain", "normalised", "tanh"],
)
def test_a_sound_start_is_not(net, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        init(net, **settings)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"scheme": "glorott"}, "`scheme` must be .*got 'glorott'. Did you mean `glorot`"),
        ({"scheme": "he", "activation": "rely"}, "`activation` must be .*Did you mean `relu`"),
        ({"scheme": "normal"}, "scheme 'normal' needs a `scale`"),
        ({"scheme": "he", "scale": 2.0}, "`scale` must be None with scheme 'he'.*got 2.0"),
        ({"scheme": "lsuv"}, "'lsuv' needs a batch of inputs as `data`"),
        ({"scheme": "he", "data": torch.ones(2, 3)}, "got scheme='he' with `data`"),
    ],
    ids=["scheme", "activation", "no scale", "scale", "no data", "data"],
)
def test_wrong_arguments_are_named(settings, message):
    with pytest.raises(InvalidParameter, match=message):
        init(nn.Linear(3, 3), **settings)


def test_a_layer_without_a_shape_is_named():
    with pytest.raises(InvalidParameter, match="shape of `weight` in LazyLinear must be known"):
        init(nn.LazyLinear(3), "he")


def test_what_is_no_module_and_a_scale_that_is_no_size_are_refused():
    with pytest.raises(InvalidParameter, match=r"`module` must be an nn.Module; got Tensor"):
        init(torch.ones(2, 2), "he")
    with pytest.raises(InvalidParameter, match=r"`scale` of 'normal' must be .* got -1.0"):
        init(nn.Linear(2, 2), "normal", scale=-1.0)
