"""Graphs of functions and modules: names, order, values, adjoints, and what cannot be traced."""

import functools
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import Box, Graph, trace
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.nets.dense import MLP
from castalia.nn import ACTIVATIONS, TableEmbedding, activation
from castalia.utils.seeds import seed_scope

GENERATOR = torch.Generator().manual_seed(0)


def draw(*shape):
    return torch.randn(*shape, generator=GENERATOR)


def line_of(text):
    """Number of the line of this file that holds a text."""
    lines = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line and "line_of" not in line)


class Mixed(nn.Module):
    """Batch normalisation and dropout in training mode."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 2)])
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)

    def forward(self, x):
        return self.layers[1](self.drop(self.norm(torch.relu(self.layers[0](x)))))


class Straight(torch.autograd.Function):
    """Rounding with the gradient of the identity."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


ROW, IMAGE = (5, 3), (2, 3, 8, 8)
MODULES = {
    "linear": (lambda: nn.Linear(3, 2), [ROW]),
    "linear without a batch": (lambda: nn.Linear(3, 2), [(3,)]),
    "mlp": (lambda: MLP(3, 2, hidden=(4, 4), dropout=0.2), [ROW]),
    "mlp without a batch": (lambda: MLP(3, 2, hidden=(4,)), [(3,)]),
    "norm and dropout": (Mixed, [ROW]),
    "lstm": (lambda: nn.LSTM(3, 2, num_layers=2, batch_first=True), [(2, 2, 3)]),
    "lstm both ways": (lambda: nn.LSTM(3, 2, bidirectional=True), [(2, 1, 3)]),
    "gru without a batch": (lambda: nn.GRU(3, 2), [(3, 3)]),
    "rnn": (lambda: nn.RNN(3, 2), [(3, 2, 3)]),
    "lstm cell": (lambda: nn.LSTMCell(3, 2), [ROW]),
    "attention": (lambda: nn.MultiheadAttention(4, 2), [(3, 1, 4)] * 3),
    "transformer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), [(2, 3, 4)]),
    "images": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.GELU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(36, 2),
        ),  # fmt: skip
        [IMAGE],
    ),
    "image without a batch": (lambda: nn.Conv2d(3, 4, 3, padding=1), [IMAGE[1:]]),
    "norms": (
        lambda: nn.Sequential(nn.ConvTranspose2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Upsample(12)),
        [IMAGE],
    ),
}


GPU = pytest.param("cuda", marks=[
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
])  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("name", MODULES)
def test_both_passes_equal_torchs_and_the_module_is_left_as_it_was(name, device):
    build, shapes = MODULES[name]
    with seed_scope(1):
        module = build().to(device)
    inputs = [draw(*shape).to(device).requires_grad_() for shape in shapes]
    before = {key: value.clone() for key, value in module.state_dict().items()}
    graph = trace(module, *inputs, random_state=3)
    assert_close(dict(module.state_dict()), before, rtol=0, atol=0)
    with seed_scope(3, device), torch.backends.cudnn.flags(allow_tf32=False):
        outputs = pytree.tree_leaves(module(*inputs))
    assert_close(pytree.tree_leaves(graph.fprop(*inputs)), outputs)
    seeds = [draw(*out.shape).to(device) for out in outputs]
    leaves = {**dict(zip([b.name for b in graph.inputs], inputs, strict=True)),
              **dict(module.named_parameters())}  # fmt: skip
    expected = torch.autograd.grad(outputs, list(leaves.values()), seeds)
    assert_close(graph.bprop(tuple(seeds)), dict(zip(leaves, expected, strict=True)))
    if device == "cuda":
        found = graph.gradient(list(leaves), seed=tuple(seeds)).simplify().fprop(*inputs)
        assert_close(found, tuple(expected))


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_every_activation_of_the_library_is_traced(name):
    x = draw(4, 6).requires_grad_()
    module = activation(name)
    graph, seed = trace(module, x), draw(*module(x).shape)
    (expected,) = torch.autograd.grad(module(x), x, seed)
    assert_close(graph.bprop(seed)[graph.inputs[0].name], expected)


def test_integer_inputs_are_embedded_and_have_no_adjoint():
    words = torch.tensor([[1, 4, 1], [0, 2, 1]])
    net = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(9, 1))
    graph = trace(lambda words: net(words).sum(), words)
    found = graph.bprop()
    net(words).sum().backward()
    assert "words" not in found
    assert_close(found["net.0.weight"], net[0].weight.grad)
    with pytest.raises(InvalidParameter, match="integer, detached and unused boxes"):
        graph.adjoints["words"]


def test_categories_of_a_table_are_embedded():
    block, x = TableEmbedding(1, [4]), torch.tensor([[0.5, 3.0], [1.0, 2.0]])
    graph = trace(lambda x: (block(x) ** 2).sum(), x)
    (block(x) ** 2).sum().backward()
    assert_close(graph.bprop()["block.tables.0.weight"], block.tables[0].weight.grad)


def test_parameters_buffers_and_inputs_are_named_as_in_the_module():
    graph = trace(Mixed(), draw(*ROW))
    assert [box.name for box in graph.inputs] == ["x"]
    assert [box.name for box in graph.parameters][:2] == ["layers.0.weight", "layers.0.bias"]
    assert [box.name for box in graph.buffers][0] == "norm.running_mean"


net = nn.Linear(3, 2)


def helper(x):
    return net(x)


FUNCTIONS = {
    "global": lambda x: net(x).sum(),
    "partial": functools.partial(lambda x, net: net(x).sum(), net=net),
    "default": lambda x, net=net: net(x).sum(),
    "helper": lambda x: helper(x).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_modules_that_a_function_uses_lend_it_their_parameters(name):
    graph = trace(FUNCTIONS[name], draw(*ROW))
    assert [box.name for box in graph.parameters] == ["net.weight", "net.bias"]


def test_modules_among_the_inputs_lend_their_parameters():
    graph = trace(lambda model, x: model(x).sum(), net, draw(*ROW))
    assert [box.name for box in graph.parameters] == ["model.weight", "model.bias"]
    assert [box.name for box in graph.inputs] == ["x"]


def test_parameters_hidden_in_an_object_are_parameters_still():
    hidden = {"net": net}
    x = draw(*ROW)
    found = trace(lambda x: hidden["net"](x).sum(), x).bprop()
    assert_close(found["parameter_0"], torch.autograd.grad(net(x).sum(), net.weight)[0])


def test_a_step_of_training_is_seen_by_the_next_pass():
    net, x = nn.Linear(3, 1), draw(*ROW)
    graph = trace(net, x)
    with torch.no_grad():
        net.weight += 1.0
    assert_close(graph.fprop(x), net(x).detach())


def test_boxes_say_which_module_and_which_line_asked_for_them():
    graph = trace(Mixed(), draw(*ROW))
    box = next(box for box in graph.order if box.operation == "addmm")
    assert (box.module, box.module_class) == ("layers.0", "Linear")
    assert Path(box.source.file).name == Path(__file__).name
    assert box.source.line == line_of("return self.layers[1](self.drop")
    assert graph["relu"].module_class == "Mixed"
    assert graph["layers.0.weight"].module_class == "Linear"


def test_an_unrolled_recurrent_layer_is_one_long_graph():
    lstm = nn.LSTM(3, 2, batch_first=True)
    short, long = (trace(lstm, draw(1, steps, 3)) for steps in (2, 3))
    count = {g: sum(box.operation == "tanh" for box in g.order) for g in (short, long)}
    assert (count[short], count[long]) == (4, 6)  # candidate and cell, each step
    assert any(len(box.children) > 1 for box in long.order if box.operation == "mul")


def test_shared_subexpressions_are_evaluated_once_and_their_adjoints_summed():
    x = torch.tensor(0.7, dtype=torch.float64)
    seen = []

    def fn(x):
        shared = torch.sin(x)
        return shared * shared + shared

    graph = trace(fn, x)
    (sin,) = (box for box in graph.order if box.operation == "sin")
    plain = sin.op
    sin.op = lambda value: (seen.append(1), plain(value))[1]
    graph.fprop(x)
    assert len(seen) == 1
    assert len(sin.children) == 2
    assert graph.bprop()["x"].item() == pytest.approx((2 * x.sin() + 1).item() * x.cos().item())


def test_changes_in_place_are_written_as_new_values():
    def fn(x):
        y = x.clone()
        y[0] = 3.0
        y.mul_(x)
        y[1:] += x[:2]
        return y.sum()

    x = draw(3).requires_grad_()
    graph = trace(fn, x)
    assert not any(box.operation.endswith("_") for box in graph.order)
    assert_close(graph.bprop()["x"], torch.autograd.grad(fn(x), x)[0])


def test_gradients_stop_where_the_function_detaches():
    def fn(x):
        with torch.no_grad():
            a = x * 2
        b = x.clone().mul_(a)
        return (b.detach() * x + b.data * x**2 + F.gumbel_softmax(x, hard=True)).sum()

    x = draw(3).requires_grad_()
    graph = trace(fn, x, random_state=5)
    with seed_scope(5):
        expected = torch.autograd.grad(fn(x), x)[0]
    assert_close(graph.bprop()["x"], expected)


def test_a_function_that_differentiates_inside_is_differentiated_through():
    def penalty(x):
        y = x * 1.0
        y = y if y.requires_grad else y.requires_grad_()
        (slope,) = torch.autograd.grad(torch.tanh(y).sum(), y, create_graph=True)
        return (slope**2).sum()

    x = draw(3).requires_grad_()
    expected = torch.autograd.grad(penalty(x), x)[0]
    assert_close(trace(penalty, x).bprop()["x"], expected)

    def by_input(x):
        return torch.autograd.grad(torch.tanh(x).sum(), x, create_graph=True)[0].pow(2).sum()

    assert_close(trace(by_input, x).bprop()["x"], expected)


def test_a_custom_function_is_one_box_with_its_own_backward():
    x = draw(3).requires_grad_()
    graph = trace(lambda x: (Straight.apply(x * 3) * x).sum(), x)
    assert graph["straight"].operation == "Straight"
    assert_close(graph.bprop()["x"], torch.autograd.grad((Straight.apply(x * 3) * x).sum(), x)[0])
    assert_close(graph.gradient().fprop(), graph.bprop()["x"])
    assert torch.autograd.Function.apply.__name__ == "apply"
    assert torch.autograd.Function.apply.__module__ == "torch.autograd.function"


def test_every_pass_draws_the_numbers_of_the_trace_and_no_others():
    x, net = draw(50), nn.Dropout(0.5)
    state = torch.get_rng_state()
    graph = trace(net, x, random_state=2)
    first, again = graph.fprop(x), graph.fprop(x)
    assert torch.equal(state, torch.get_rng_state())
    with seed_scope(2):
        expected = net(x)
    assert_close(first, expected)
    assert_close(again, expected)
    assert not torch.equal(trace(net, x, random_state=3).fprop(x), expected)


def test_the_attributes_a_forward_pass_sets_are_put_back():
    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = None

        def forward(self, x):
            self.last = x * 2
            return self.last + 1

    module = Remembers()
    trace(module, draw(2))
    assert module.last is None


def test_inputs_may_be_nested_and_the_same_tensor_twice():
    x = draw(2)
    graph = trace(lambda a, b: (a["x"] * a["y"] + b[0]).sum(), {"x": x, "y": x}, [x, 3])
    assert [box.name for box in graph.inputs] == ["a.x", "a.y", "b.0"]
    assert_close(graph.bprop(), {"a.x": x, "a.y": x, "b.0": torch.ones(2)})


# ---- what is refused ----


def branch(x):
    doubled = x * 2
    if doubled.sum() > 0:  # the branch
        return doubled
    return -doubled


def test_a_branch_on_a_value_is_refused_with_its_line():
    with pytest.raises(InvalidData, match="depends on the value of a tensor") as caught:
        trace(branch, draw(3))
    assert f"{Path(__file__).name}:{line_of('> 0:  # the branch')}" in str(caught.value)


@pytest.mark.parametrize(
    "fn, got",
    [(lambda x: None, "NoneType"), (lambda x: 3.0, "float"), (lambda x: [], "nothing")],
    ids=["none", "number", "empty"],
)
def test_a_function_that_returns_no_tensor_is_refused(fn, got):
    with pytest.raises(InvalidData, match=f"must return a tensor; got {got}"):
        trace(fn, draw(3))


def test_the_functions_own_error_stays_its_own():
    with pytest.raises(AttributeError, match="no_such_name"):
        trace(lambda x: x.no_such_name, draw(3))


def test_what_torch_cannot_trace_is_refused_with_its_line():
    with pytest.raises(InvalidData, match=f"can trace.*{Path(__file__).name}"):
        trace(lambda x: torch.from_numpy(x.numpy()) + x, draw(3))


def test_something_that_is_no_function_is_refused():
    with pytest.raises(
        InvalidParameter, match="`fn` must be a function or an `nn.Module`; got int"
    ):
        trace(3, draw(3))


def test_inputs_of_another_shape_or_type_are_refused():
    graph = trace(torch.sin, draw(3))
    with pytest.raises(ShapeMismatch, match=r"shape \(3,\).*got \(4,\)\. Trace again"):
        graph.fprop(draw(4))
    with pytest.raises(ShapeMismatch, match="got torch.float64"):
        graph.fprop(draw(3).double())
    with pytest.raises(InvalidData, match="1 arguments of the same structure; got 2"):
        graph.fprop(draw(3), draw(3))


def test_the_first_box_that_holds_nan_is_named():
    def fn(x):
        inner = torch.log(x)  # the culprit
        return (inner * 2).sum()

    graph = trace(fn, torch.tensor([1.0, 2.0]))
    with pytest.raises(InvalidData, match=r"NaN, first in box `log` \(log\).*culprit"):
        graph.fprop(torch.tensor([1.0, -2.0]))
    assert graph.first_nan() is graph["log"]
    with pytest.raises(InvalidData, match="Graph.bprop: .*NaN, first in box `log`"):
        graph.bprop()
    with pytest.raises(InvalidData, match="NaN, in the input `x`"):
        graph.fprop(torch.tensor([1.0, float("nan")]))


def test_a_graph_with_a_cycle_is_refused():
    a, b = Box("a", op=torch.sin), Box("b", op=torch.cos)
    a.args, b.args = (b,), (a,)
    with pytest.raises(InvalidData, match="without cycles; got the cycle a -> b -> a|b -> a -> b"):
        Graph([a, b], a, {})


def test_boxes_in_any_order_are_sorted_so_that_parents_come_first():
    x = Box("x", "input", shape=(), dtype=torch.float32)
    sin = Box("sin", op=torch.sin, args=(x,))
    cos = Box("cos", op=torch.cos, args=(sin,))
    graph = Graph([cos, sin, x], cos, {x: torch.tensor(1.0)})
    assert [box.name for box in graph.order] == ["x", "sin", "cos"]
    assert_close(graph.fprop(), torch.tensor(1.0).sin().cos())
    assert_close(graph.bprop()["x"], -torch.tensor(1.0).sin().sin() * torch.tensor(1.0).cos())


def test_every_graph_is_in_topological_order():
    graph = trace(nn.LSTM(3, 2), draw(2, 3))
    place = {box: i for i, box in enumerate(graph.order)}
    assert all(place[parent] < place[box] for box in graph.order for parent in box.parents)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_a_bag_of_embeddings_has_its_gradient(mode):
    net, rows = nn.EmbeddingBag(10, 4, mode=mode), torch.tensor([[1, 2, 2], [0, 9, 3]])
    seed = torch.randn(2, 4)
    (wanted,) = torch.autograd.grad(net(rows), net.weight, seed)
    graph = trace(net, rows)
    torch.testing.assert_close(graph.bprop(seed)["weight"], wanted)
    torch.testing.assert_close(graph.gradient("weight", seed).fprop(rows), wanted)


def test_a_function_without_arguments_is_traced():
    assert trace(lambda: torch.ones(2) + 1).fprop().tolist() == [2.0, 2.0]


def test_a_size_that_depends_on_the_numbers_is_refused_when_it_changes():
    x = torch.tensor([1.0, -1.0, 2.0])
    graph = trace(lambda x: x.sum() / x[x > 0].shape[0] + 0 * x[x > 0].sum(), x)
    with pytest.raises(InvalidData, match=r"`index.*shape it was traced with, \(2,\); got \(3,\)"):
        graph.fprop(x.abs())
    assert graph.fprop().item() == 1.0  # and the graph is as it was
    slope = trace(lambda x: x[x > 0].sum(), x).gradient()
    with pytest.raises(InvalidData, match="trace again with these inputs"):
        slope.fprop(x.abs())


# ---- keyword arguments ----


def test_keyword_arguments_are_inputs_of_their_own():
    def scaled(x, *, by, shift=0.0):
        return (x * by["factor"] + shift).sum()

    x, factor = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
    graph = trace(scaled, x, by={"factor": factor}, shift=1.0)
    assert [box.name for box in graph.inputs] == ["x", "by.factor"]
    assert graph.fprop(x, by={"factor": 2 * factor}, shift=1.0) == 20
    assert graph.bprop()["by.factor"] == 3
    again = graph.gradient("by.factor").simplify()
    assert again.fprop(2 * x, by={"factor": factor}, shift=1.0) == 6


def test_a_module_takes_keyword_arguments():
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    x, mask = torch.ones(1, 3, 4), torch.tensor([[False, False, True]])
    graph = trace(attention, x, x, x, key_padding_mask=mask, need_weights=False)
    expected = attention(x, x, x, key_padding_mask=mask, need_weights=False)[0]
    torch.testing.assert_close(graph.fprop()[0], expected.detach())
    with pytest.raises(InvalidData, match="those of the traced call.*got `mask`"):
        graph.fprop(x, x, x, mask=mask)
