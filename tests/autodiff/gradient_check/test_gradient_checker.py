"""Planted mistakes are found and named; correct layers, kinks and noise are not accused."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import Function

from castalia.autodiff import check_gradients, finite_difference
from castalia.errors import InvalidData, InvalidParameter


def draw(*shape, number=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(number))


class Scale(Function):
    """y = w * x + x^2 for x (B, D), w (D,), with a backward that can be broken."""

    @staticmethod
    def forward(ctx, x, w, mistake):
        ctx.save_for_backward(x, w)
        ctx.mistake = mistake
        return w * x + x**2

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        by_x, by_w = g * (w + 2 * x), (g * x).sum(0)
        if ctx.mistake == "factor 2":
            by_x = 2 * by_x
        if ctx.mistake == "missing term":
            by_x = g * w
        if ctx.mistake == "broadcast mean":
            by_w = (g * x).mean(0)
        if ctx.mistake == "broadcast over one row":
            by_w = (g * x)[0]
        if ctx.mistake == "wrong axis":
            by_w = (g * x).sum(1)[: len(w)]
        if ctx.mistake == "sign":
            by_x = -by_x
        if ctx.mistake == "no gradient":
            by_w = None
        if ctx.mistake == "one entry":
            by_x = by_x.clone()
            by_x[2, 1] *= 1.001
        if ctx.mistake == "shape":
            by_w = (g * x).sum(1)
        if ctx.mistake == "nan":
            by_w = by_w * float("nan")
        return by_x, by_w, None


class Scaled(nn.Module):
    def __init__(self, mistake):
        super().__init__()
        self.mistake, self.gain = mistake, nn.Parameter(draw(3, number=5))

    def forward(self, x):
        return Scale.apply(x, self.gain, self.mistake).sin()


@pytest.mark.parametrize(
    "mistake, name, kind",
    [
        ("factor 2", "x", "wrong"),
        ("missing term", "x", "wrong"),
        ("sign", "x", "wrong"),
        ("one entry", "x", "wrong"),
        ("broadcast mean", "gain", "wrong"),
        ("broadcast over one row", "gain", "wrong"),
        ("wrong axis", "gain", "wrong"),
        ("no gradient", "gain", "detached"),
        ("nan", "gain", "not finite"),
    ],
)
def test_a_planted_mistake_is_found_and_named(mistake, name, kind):
    found = check_gradients(Scaled(mistake), draw(4, 3))
    assert not found
    assert {m.name for m in found.mismatches} == {name}
    assert {m.kind for m in found.mismatches} == {kind}
    assert f"`{name}`" in repr(found)


def test_without_a_mistake_the_same_function_passes():
    found = check_gradients(Scaled(""), draw(4, 3))
    assert found
    assert found.checked == {"gain": 3, "x": 12}


def test_the_entry_and_both_values_are_named():
    (only,) = check_gradients(Scaled("one entry"), draw(4, 3)).mismatches
    assert only.index == (2, 1)
    assert only.analytic / only.numeric == pytest.approx(1.001, rel=1e-6)
    assert "`x`[2, 1]: analytic" in str(only)
    assert "(1.001 times)" in str(only)


def test_a_backward_that_breaks_down_is_a_failure_with_its_message():
    found = check_gradients(Scaled("shape"), draw(4, 3))
    assert not found
    assert "invalid gradient" in found.failure
    assert "backward failed" in found.report()


@pytest.mark.parametrize(
    "fn",
    [
        pytest.param(lambda x: x * x.detach(), id="a factor"),
        pytest.param(lambda x: x.sin() + x.detach() ** 2, id="a term"),
        pytest.param(lambda x: torch.tensor(x.tolist()) ** 2, id="through Python"),
        pytest.param(lambda x: torch.as_tensor(np.tanh(x.detach().numpy())), id="through NumPy"),
    ],
)
def test_a_detached_path_is_found(fn):
    assert not check_gradients(fn, draw(3))


def test_a_path_that_is_cut_altogether_is_called_detached():
    found = check_gradients(lambda x, y: y + torch.tensor(x.tolist()), draw(2), draw(2))
    assert {(m.name, m.kind) for m in found.mismatches} == {("x", "detached")}


def test_one_wrong_entry_of_forty_thousand_is_found_by_halving():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            found = 3 * ctx.saved_tensors[0] ** 2 * g
            found[17, 101] *= 1.5
            return found

    found = check_gradients(Cube.apply, draw(200, 200))
    assert [m.index for m in found.mismatches] == [(17, 101)]
    assert found.checked == {"inputs[0]": 20}


LAYERS = {
    "linear": (nn.Linear(3, 2), draw(4, 3)),
    "bilinear": (nn.Bilinear(3, 2, 2), draw(4, 3), draw(4, 2)),
    "convolution": (nn.Sequential(nn.Conv2d(2, 3, 3), nn.MaxPool2d(2)), draw(2, 2, 8, 8)),
    "transposed convolution": (nn.ConvTranspose1d(2, 3, 3, stride=2), draw(2, 2, 5)),
    "batch norm": (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU()), draw(6, 3)),
    "layer norm": (nn.Sequential(nn.LayerNorm(5), nn.GELU(), nn.RMSNorm(5)), draw(3, 5)),
    "group norm": (nn.GroupNorm(2, 4), draw(3, 4, 5)),
    "dropout": (nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)), draw(4, 3)),
    "random activation": (nn.RReLU(), draw(4, 3)),
    "lstm": (nn.LSTM(2, 3, num_layers=2, dropout=0.4), draw(4, 2, 2)),
    "gru": (nn.GRU(2, 3, bidirectional=True), draw(4, 2, 2)),
    "attention": (nn.MultiheadAttention(4, 2), draw(3, 2, 4), draw(3, 2, 4), draw(3, 2, 4)),
    "transformer": (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), draw(2, 3, 4)),
    "transformer, eval": (nn.TransformerEncoderLayer(4, 2, 8).eval(), draw(3, 2, 4)),
    "padding": (nn.Embedding(5, 3, padding_idx=1), torch.tensor([0, 1, 1, 4])),
    "sparse": (nn.Embedding(5, 3, sparse=True), torch.tensor([0, 1, 1, 4])),
    "cross-entropy": (nn.CrossEntropyLoss(), draw(4, 3), torch.tensor([0, 2, 1, 1])),
    "spectral norm": (nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), draw(2, 4)),
    "weight norm": (nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), draw(2, 3)),
    "in place": (nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2)), draw(4, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_torch_pass(name):
    found = check_gradients(*LAYERS[name], n_samples=6)
    assert found, found.report()
    assert found.worst < 1e-6


KINKS = {
    "relu at zero": (torch.relu, torch.zeros(3)),
    "identity as two relus": (lambda x: torch.relu(x) - torch.relu(-x), torch.zeros(3)),
    "absolute value at zero": (torch.abs, torch.zeros(3)),
    "a tie of the maximum": (lambda x: x.max(0).values, torch.ones(3, 2)),
    "a tie of amax": (lambda x: x.amax(0), torch.ones(3, 2)),
    "pooling a constant": (nn.MaxPool1d(2), torch.zeros(1, 1, 6)),
    "sorting equal numbers": (lambda x: x.sort(0).values * torch.arange(4.0), torch.ones(4)),
    "norm at zero": (lambda x: x.norm(), torch.zeros(3)),
    "hinge at its corner": (lambda x: torch.clamp(1 - x, min=0), torch.ones(3)),
    "a network on zeros": (
        nn.Sequential(nn.Linear(3, 8, bias=False), nn.ReLU(), nn.Linear(8, 2)),
        torch.zeros(4, 3),
    ),
    "within a step of the kink": (torch.relu, torch.tensor([1e-7, -3e-6, 4e-6])),
}


@pytest.mark.parametrize("name", KINKS)
def test_a_kink_is_no_accusation(name):
    assert check_gradients(*KINKS[name]), check_gradients(*KINKS[name]).report()


def test_a_mistake_behind_a_kink_is_still_found():
    class Rectify(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp_min(0)

        @staticmethod
        def backward(ctx, g):
            return g * (ctx.saved_tensors[0] > 0) * 3

    net = nn.Sequential(nn.Linear(3, 8, bias=False), nn.ReLU(), nn.Linear(8, 2))
    assert check_gradients(net, torch.zeros(4, 3))
    assert not check_gradients(lambda net, x: net[2](Rectify.apply(net[0](x))), net, 0 * draw(4, 3))


def test_a_nan_where_the_slope_is_finite_is_found():
    fn = lambda x: torch.where(x > 0, x.sqrt(), 0.0)  # noqa: E731
    found = check_gradients(fn, torch.tensor([-1.0, 4.0]))
    assert [(m.index, m.kind) for m in found.mismatches] == [((0,), "not finite")]


def test_a_function_that_computes_in_float32_is_not_accused_of_rounding():
    assert check_gradients(lambda x: (x.float() @ x.float().T).tanh().sum(), draw(4, 4))
    found = check_gradients(lambda x: (x.float() @ x.float().detach().T).tanh().sum(), draw(4, 4))
    assert {m.name for m in found.mismatches} == {"x"}


def test_control_flow_on_values_and_on_chance_is_followed():
    def fn(x):
        y = x * 3 if random.random() < 0.5 else x**2
        y = y + np.random.rand()
        while y.abs().sum() < 10:
            y = y * 2 + torch.rand(())
        return y

    assert check_gradients(fn, draw(3))


def test_the_module_and_the_random_states_are_left_as_they_were():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.Linear(4, 2))
    net[2].eval()
    x = draw(5, 3).requires_grad_()
    net(x).sum().backward()
    before = copy.deepcopy(net)
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    kept, grads = x.detach().clone(), [p.grad.clone() for p in net.parameters()]
    assert check_gradients(net, x)
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert np.array_equal(states[2], np.random.get_state()[1])
    assert torch.get_default_dtype() == torch.float32
    assert torch.equal(x, kept)
    assert [m.training for m in net.modules()] == [m.training for m in before.modules()]
    assert all(map(torch.equal, net.state_dict().values(), before.state_dict().values()))
    assert all(map(torch.equal, (p.grad for p in net.parameters()), grads))
    assert net[0].weight.dtype == torch.float32


def test_the_states_are_put_back_after_a_failure_too():
    states = torch.get_rng_state(), random.getstate()
    with pytest.raises(ZeroDivisionError):
        check_gradients(lambda x: 1 / 0, draw(3))
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert torch.get_default_dtype() == torch.float32


def test_a_module_among_the_inputs_and_a_method_are_checked():
    net = Scaled("broadcast mean")
    assert "net.gain" in check_gradients(lambda net, x: net(x), net, draw(4, 3)).report()
    assert "`gain`" in check_gradients(net.forward, draw(4, 3)).report()


def test_what_is_not_checked_is_said():
    net = nn.Linear(3, 2)
    net.bias.requires_grad_(False)
    found = check_gradients(
        lambda net, x, y, i: net(x)[i], net, draw(2, 3), draw(2), torch.tensor([0])
    )
    assert found.skipped == {"net.bias": "not trainable", "i": "torch.int64 has no derivative"}
    assert found.unused == ["y"]
    assert "does not depend on `y`" in found.report()


def test_complex_numbers_are_skipped_aloud():
    found = check_gradients(lambda x, z: x * z.abs(), draw(2), torch.ones(2, dtype=torch.cfloat))
    assert found.skipped == {"z": "torch.complex64 is not checked"}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_module_on_a_gpu_is_checked_there_and_its_random_state_kept():
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.ReLU())
    net, x = net.cuda(), draw(4, 3).cuda()
    before = torch.cuda.get_rng_state()
    assert check_gradients(net, x)
    assert torch.equal(before, torch.cuda.get_rng_state())


def test_several_outputs_are_all_checked():
    fn = lambda x: {"good": x**2, "parts": (x.sin(), x.detach() ** 3)}  # noqa: E731
    assert not check_gradients(fn, draw(3))


def test_minus_infinity_in_masked_scores_takes_no_part():
    mask = torch.tensor([[True, False], [False, False]])
    assert check_gradients(lambda x: (x**2).masked_fill(mask, -torch.inf), draw(2, 2))


@pytest.mark.parametrize(
    "ask, error, said",
    [
        (lambda: check_gradients(3, draw(2)), InvalidParameter, "function or a module; got int"),
        (lambda: check_gradients(lambda x: None, draw(2)), InvalidData, "must return a tensor"),
        (
            lambda: check_gradients(lambda x: x.argmax(), draw(2)),
            InvalidData,
            "must return a tensor",
        ),
        (lambda: check_gradients(lambda i: i * 1.0, torch.arange(2)), InvalidData, "int64"),
        (lambda: check_gradients(lambda x: x / 0, draw(2)), InvalidData, "must be finite"),
        (lambda: check_gradients(torch.sin, draw(2), n_samples=0), InvalidParameter, "got 0"),
        (lambda: check_gradients(torch.sin, draw(2), rtol=0.0), InvalidParameter, r"got 0\.0"),
    ],
    ids=range(7),
)
def test_a_bad_question_gets_a_sentence(ask, error, said):
    with pytest.raises(error, match=said):
        ask()


def test_a_module_in_a_closure_gets_a_remedy():
    net = nn.Linear(3, 2)
    with pytest.raises(InvalidData, match=r"Pass the modules .* as inputs"):
        check_gradients(lambda x: net(x), draw(2, 3))


def test_a_generator_that_is_not_global_gets_a_remedy():
    source = torch.Generator()
    with pytest.raises(InvalidData, match=r"same value twice"):
        check_gradients(lambda x: x * torch.rand(3, generator=source), draw(3))


# ---- the plain quotient ----


@pytest.mark.parametrize("scheme, order", [("forward", 1), ("central", 2)])
def test_the_error_of_a_finite_difference_shrinks_with_its_order(scheme, order):
    x = torch.tensor([0.7], dtype=torch.float64)
    steps = torch.tensor([1e-1, 3e-2, 1e-2, 3e-3], dtype=torch.float64)
    found = [finite_difference(torch.exp, x, step=h, scheme=scheme) for h in steps.tolist()]
    errors = (torch.cat(found) - x.exp()).abs()
    slopes = errors.log().diff() / steps.log().diff()
    assert slopes.tolist() == pytest.approx([order] * 3, abs=0.1)


def test_finite_differences_of_a_module_have_its_structure():
    net, x = nn.Linear(2, 1).double(), draw(3, 2).double()
    found = finite_difference(lambda net: net(x).sum(), net)
    assert found["weight"].tolist()[0] == pytest.approx(x.sum(0).tolist(), rel=1e-6)
    assert found["bias"].item() == pytest.approx(3, rel=1e-6)


@pytest.mark.parametrize(
    "settings, said", [({"scheme": "left"}, "'left'"), ({"step": 0}, "positive; got 0")]
)
def test_a_bad_quotient_gets_a_sentence(settings, said):
    with pytest.raises(InvalidParameter, match=said):
        finite_difference(lambda x: x.sum(), draw(2), **settings)
