"""Penalties on activations and codes."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import Training
from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nets.dense import MLP
from castalia.objectives import (
    L2,
    ActivationSparsity,
    CodeNorm,
    Contractive,
    CrossEntropy,
    SquaredError,
)
from castalia.protocols import Batch
from castalia.testing import train_tensors

SOURCE = torch.Generator().manual_seed(0)
X = torch.randn(24, 3, generator=SOURCE, dtype=torch.float64)
Y = X[:, :1] * X[:, 1:2]
WEIGHT = torch.rand(24, generator=SOURCE, dtype=torch.float64)


def network(**settings):
    torch.manual_seed(0)
    return MLP(3, 1, hidden=(6, 5), activation="tanh", **settings).double()


class Coder(nn.Module):
    """A sigmoid code and a linear way back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.code, self.back = nn.Linear(3, 4).double(), nn.Linear(4, 3).double()

    def encode(self, x):
        return torch.sigmoid(self.code(x))

    def forward(self, x):
        return self.back(self.encode(x))


def term(penalty, net, batch):
    return (SquaredError() + penalty).terms(net, batch, "train")[penalty.name]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_sparsity_is_the_mean_over_rows_of_the_summed_activations(weight):
    net = network()
    first = torch.tanh(net.layers[0](X))
    second = torch.tanh(net.layers[2](first))
    share = torch.ones(24).double() / 24 if weight is None else weight / weight.sum()
    rows = [h.abs().sum(dim=1) @ share for h in (first, second)]
    batch = Batch(X, Y, weight)
    assert_close(term(ActivationSparsity(0.3), net, batch), 0.3 * (rows[0] + rows[1]))
    chosen = ActivationSparsity(0.3, modules=["layers.3"])
    assert_close(term(chosen, net, batch), 0.3 * rows[1])


def test_the_network_runs_once_and_keeps_no_hook():
    net, runs = network(dropout=0.5), []
    net.layers[0].register_forward_hook(lambda *_: runs.append(1))
    (SquaredError() + ActivationSparsity(0.1) + L2(0.1)).terms(net, Batch(X, Y), "train")
    assert len(runs) == 1
    assert not net.layers[1]._forward_hooks


PENALTIES = {
    "sparsity": ActivationSparsity(0.2),
    "code": CodeNorm(0.2),
    "contractive": Contractive(0.2),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_micro_batches_make_the_step_of_the_whole_batch(name):
    ends = []
    for accumulate in (1, 4):
        torch.manual_seed(0)
        net = MLP(3, 3, hidden=(4,)).double() if name == "sparsity" else Coder()
        training = Training(accumulate=accumulate, validation=0, optimizer="sgd")
        objective = SquaredError() + PENALTIES[name]
        state = train_tensors(
            net, objective, X, X, weight=WEIGHT, training=training, epochs=3, batch_size=13
        )
        parameters = torch.cat([p.detach().flatten() for p in net.parameters()])
        ends.append((parameters, state.history[-1]["loss"]))
    assert_close(ends[0][0], ends[1][0], rtol=0, atol=1e-12)
    assert ends[0][1] == pytest.approx(ends[1][1], abs=1e-12)


def test_the_penalty_reaches_a_network_that_writes_its_own_back_propagation():
    free, sparse = network(), network()
    settings = {"epochs": 20, "batch_size": 8, "lr": 0.01}
    train_tensors(free, SquaredError(), X, Y, **settings)
    train_tensors(sparse, SquaredError() + ActivationSparsity(0.05), X, Y, **settings)
    size = [torch.tanh(net.layers[0](X)).abs().mean().item() for net in (free, sparse)]
    assert size[1] < 0.9 * size[0]


def test_the_contractive_penalty_is_the_norm_of_the_jacobian():
    net = Coder()
    h, w = net.encode(X).detach(), net.code.weight.detach()
    closed = ((h * (1 - h)).square() @ w.square().sum(dim=1)).mean()  # of a sigmoid layer
    assert_close(term(Contractive(1.0), net, Batch(X, X)), closed)
    jacobians = torch.stack([torch.autograd.functional.jacobian(net.encode, x) for x in X])
    assert_close(term(Contractive(2.0), net, Batch(X, X)), 2 * jacobians.square().sum() / 24)


def test_the_contractive_penalty_can_be_validated_and_has_a_right_gradient():
    net, batch = Coder(), Batch(X, X)
    with torch.no_grad():
        found = term(Contractive(1.0), net, batch)
    assert not found.requires_grad
    training = term(Contractive(1.0), net, batch)
    assert_close(found, training.detach())
    (gradient,) = torch.autograd.grad(training, net.code.weight)
    with torch.no_grad():
        net.code.weight[1, 2] += 1e-6
        up = term(Contractive(1.0), net, batch)
    assert float(gradient[1, 2]) == pytest.approx(float(up - found) / 1e-6, rel=1e-4)


@pytest.mark.parametrize("q", [1.0, 2.0, 3.0])
def test_the_norm_of_the_code(q):
    net = Coder()
    expected = 0.1 * net.encode(X).abs().pow(q).sum(dim=1).mean()
    assert_close(term(CodeNorm(0.1, q=q), net, Batch(X, X)), expected)


def test_what_cannot_be_penalised_is_said():
    with pytest.raises(InvalidParameter, match=r"must have a method `encode\(x\)`; got MLP"):
        term(Contractive(1.0), network(), Batch(X, Y))
    with pytest.raises(InvalidParameter, match="must be computed on a batch; got a network alone"):
        ActivationSparsity(1.0).value(network())
    with pytest.raises(InvalidParameter, match="a module must be .*; got 'layers.9'"):
        term(ActivationSparsity(1.0, modules=["layers.9"]), network(), Batch(X, Y))
    with pytest.raises(InvalidParameter, match="`q` must be at least 1; got 0.5"):
        CodeNorm(1.0, q=0.5)


def test_a_code_for_something_else_than_rows_is_refused():
    class Wrong(Coder):
        def encode(self, x):
            return super().encode(x)[:2]

    folded = nn.Sequential(nn.Unflatten(0, (12, 2)), nn.ReLU(), nn.Flatten(0, 1))
    with pytest.raises(ShapeMismatch, match=r"each of 24 inputs; got \[12\]"):
        term(ActivationSparsity(1.0), folded, Batch(X, X))
    with pytest.raises(ShapeMismatch, match="one code for each of 24 rows; got 2"):
        CodeNorm(1.0).rows(Wrong(), Batch(X, X), None)


def test_it_adds_to_any_objective():
    net = MLP(3, 2, hidden=(4,)).double()
    labels = (X[:, 0] > 0).long()
    plain = CrossEntropy().terms(net, Batch(X, labels), "train")["loss"]
    both = (CrossEntropy() + ActivationSparsity(0.1)).terms(net, Batch(X, labels), "train")
    assert_close(both["loss"], plain + both["sparsity"])
