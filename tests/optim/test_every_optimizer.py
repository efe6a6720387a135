"""What all optimizers of the library have in common."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import Diverged, InvalidParameter
from castalia.optim import (
    ConjugateGradient,
    DeltaBarDelta,
    GaussNewton,
    HessianFree,
    Newton,
    base_rate,
    build_optimizer,
    closure_kind,
    optimizer_class,
)

CURVATURES = torch.logspace(0, 3, 8, dtype=torch.float64)
MAKERS = {
    "delta_bar_delta": lambda p, lr: DeltaBarDelta(p, lr=lr),
    "polak_ribiere": lambda p, lr: ConjugateGradient(p),
    "fletcher_reeves": lambda p, lr: ConjugateGradient(p, formula="fletcher_reeves"),
    "exact": lambda p, lr: ConjugateGradient(p, line_search="exact", iterations=3),
    "newton": lambda p, lr: Newton(p, damping=1e-3, line_search="backtracking"),
    "newton_wolfe": lambda p, lr: Newton(
        p, saddle_free=True, damping=1e-3, line_search="strong_wolfe"
    ),
    "saddle_free": lambda p, lr: Newton(p, saddle_free=True, line_search="backtracking"),
    "gauss_newton": lambda p, lr: GaussNewton(p),
    "hessian_free": lambda p, lr: HessianFree(p),
    "preconditioned": lambda p, lr: HessianFree(p, preconditioner="diagonal"),
    "hessian": lambda p, lr: HessianFree(p, curvature="hessian"),
}
VECTOR = [name for name in MAKERS if name != "delta_bar_delta"]


def make_closure(optimizer, outputs, loss_of):
    """The closure an optimizer asks for."""
    if closure_kind(type(optimizer)) in ("loss", "outputs", "either"):
        return lambda: (outputs(), loss_of)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(outputs())
        loss.backward()
        return loss.detach()

    return closure


def minimise(name, parameters, outputs, loss_of, *, steps, below=0.0, lr=1e-3):
    """Return the loss after so many steps, or as soon as it is low enough."""
    optimizer = MAKERS[name](parameters, lr)
    closure = make_closure(optimizer, outputs, loss_of)
    for _ in range(steps):
        optimizer.step(closure)
        with torch.no_grad():
            loss = float(loss_of(outputs()))
        if loss < below:
            break
    return loss


def residuals(w):
    """Rosenbrock's function as a sum of two squares."""
    return torch.stack([1 - w[0], 10 * (w[1] - w[0] ** 2)])


@pytest.mark.parametrize("name", MAKERS)
def test_rosenbrocks_valley_is_followed_to_its_end(name):
    w = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    first_order = name == "delta_bar_delta"
    below = 1e-2 if first_order else 1e-8
    loss = minimise(
        name,
        [w],
        lambda: residuals(w),
        lambda r: r.square().sum(),
        steps=2500 if first_order else 60,
        below=below,
        lr=4e-4,
    )
    assert loss < below


@pytest.mark.parametrize("name", MAKERS)
def test_an_ill_conditioned_quadratic_is_minimised(name):
    w = torch.ones(8, dtype=torch.float64, requires_grad=True)
    steps = 800 if name == "delta_bar_delta" else 60
    loss = minimise(
        name,
        [w],
        lambda: w * 1.0,
        lambda z: 0.5 * (CURVATURES * z * z).sum(),
        steps=steps,
        below=1e-10,
    )
    assert loss < 1e-10


@pytest.mark.parametrize(
    "make",
    [lambda p: ConjugateGradient(p, iterations=20), HessianFree],
    ids=["conjugate_gradient", "hessian_free"],
)
def test_the_loss_of_tuned_momentum_is_reached_in_fewer_evaluations(make):
    curvatures, evaluations = torch.logspace(0, -4, 30, dtype=torch.float64), 600

    def loss_of(z):
        return 0.5 * (curvatures * z * z).sum()

    reached = []
    for rate in (0.3, 1.0, 2.0, 3.0, 3.7):  # beyond 2 (1 + 0.9) it diverges
        w = torch.ones(30, dtype=torch.float64, requires_grad=True)
        momentum = torch.optim.SGD([w], lr=rate, momentum=0.9)
        for _ in range(evaluations):
            w.grad = curvatures * w.detach()
            momentum.step()
        reached.append(float(loss_of(w.detach())))
    w = torch.ones(30, dtype=torch.float64, requires_grad=True)
    optimizer = make([w])
    closure = make_closure(optimizer, lambda: w * 1.0, loss_of)
    while float(loss_of(w.detach())) > min(reached) and optimizer.evaluations < evaluations:
        optimizer.step(closure)
    assert optimizer.evaluations < 0.9 * evaluations


def small_net(dtype=torch.float64):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1)).to(dtype)
    x = torch.randn(40, 2, dtype=dtype)
    y = (x[:, :1] * x[:, 1:] > 0).to(dtype)
    return net, lambda: net(x), lambda z: (z - y).square().mean()


@pytest.mark.parametrize("name", MAKERS)
def test_a_small_net_learns_the_sign_of_a_product_in_single_precision(name):
    net, outputs, loss_of = small_net(torch.float32)
    steps = 1500 if name == "delta_bar_delta" else 30
    settings = {"steps": steps, "below": 0.12, "lr": 0.1}
    assert minimise(name, net.parameters(), outputs, loss_of, **settings) < 0.12


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_state_continues_the_same_trajectory_to_the_bit(name):
    def made():
        net, outputs, loss_of = small_net()
        optimizer = MAKERS[name](net.parameters(), 0.05)
        return net, optimizer, make_closure(optimizer, outputs, loss_of)

    net, optimizer, closure = made()
    again, other, other_closure = made()
    for _ in range(4):
        optimizer.step(closure)
    again.load_state_dict(net.state_dict())
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for _ in range(3):
        optimizer.step(closure)
        other.step(other_closure)
    for mine, theirs in zip(net.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", VECTOR)
def test_a_loss_that_is_no_number_is_named_and_the_weights_stay(name):
    w = torch.ones(2, requires_grad=True)
    optimizer = MAKERS[name]([w], 0.1)
    closure = make_closure(optimizer, lambda: w * 1.0, lambda z: (z * math.nan).sum())
    with pytest.raises(Diverged, match="the loss must be finite before a step; got nan at step 1"):
        optimizer.step(closure)
    assert_close(w.detach(), torch.ones(2))


@pytest.mark.parametrize("name", VECTOR)
def test_a_step_without_closure_is_refused(name):
    with pytest.raises(InvalidParameter, match="`closure` must be given; got None"):
        MAKERS[name]([torch.ones(2, requires_grad=True)], 0.1).step()


@pytest.mark.parametrize("name", VECTOR)
def test_a_second_group_or_a_second_type_is_refused(name):
    a, b = (torch.ones(1, requires_grad=True, dtype=t) for t in (torch.float32, torch.float64))
    with pytest.raises(InvalidParameter, match="there must be one parameter group; got a second"):
        MAKERS[name]([{"params": [a]}, {"params": [b]}], 0.1)
    with pytest.raises(InvalidParameter, match="of one type and on one device; got torch.float32"):
        MAKERS[name]([a, b], 0.1)


@pytest.mark.parametrize("name", VECTOR)
def test_parameters_that_the_loss_does_not_use_stay(name):
    used, idle = (torch.ones(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    loss = minimise(name, [used, idle], lambda: used * 1.0, lambda z: z.square().sum(), steps=10)
    assert loss < 1e-6
    assert_close(idle.detach(), torch.ones(2, dtype=torch.float64))


def test_what_an_optimizer_asks_for_is_read_off_its_class():
    def function(parameters, lr):
        return Newton(parameters)

    assert optimizer_class("hessian_free") is HessianFree
    assert optimizer_class(function) is None
    assert closure_kind(HessianFree) == "either"
    assert [base_rate(kind, 0.3) for kind in ("sgd", "newton", Newton, function)] == [
        0.3,
        1,
        1,
        0.3,
    ]


@pytest.mark.parametrize("name", ["newton", "gauss_newton", "hessian_free", "conjugate_gradient"])
def test_decay_points_to_the_penalty(name):
    with pytest.raises(InvalidParameter, match=f"must be 0 with optimizer '{name}'; got 0.1"):
        build_optimizer(name, [torch.ones(2, 2)], lr=1.0, weight_decay=0.1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", MAKERS)
def test_the_first_steps_on_cuda_are_those_on_the_cpu(name):
    places = []
    for device in ("cpu", "cuda"):
        w = torch.tensor([-1.2, 1.0], dtype=torch.float64, device=device, requires_grad=True)
        minimise(name, [w], lambda w=w: residuals(w), lambda r: r.square().sum(), steps=2, lr=4e-4)
        places.append(w.detach().cpu())
    assert_close(*places)


@pytest.mark.parametrize("cls", [ConjugateGradient, Newton, GaussNewton, HessianFree])
def test_frozen_parameters_stay_where_they_are(cls):
    net, x = nn.Linear(2, 1), torch.randn(8, 2)
    net.bias.requires_grad_(False)
    before = net.bias.clone()
    optimizer = cls(net.parameters())

    def gradients():
        optimizer.zero_grad()
        value = net(x).square().mean()
        value.backward()
        return value

    def outputs():
        return net(x), lambda out: out.square().mean()

    start = net(x).square().mean().item()
    optimizer.step(gradients if cls is ConjugateGradient else outputs)
    assert net(x).square().mean().item() < start
    assert torch.equal(net.bias, before)
    net.requires_grad_(False)
    with pytest.raises(InvalidParameter, match="there must be a trainable parameter"):
        optimizer.step(outputs)


def test_a_closure_that_returns_no_loss_is_refused():
    optimizer = ConjugateGradient([torch.ones(2, requires_grad=True)])
    with pytest.raises(InvalidParameter, match="must return the loss, one number; got NoneType"):
        optimizer.step(lambda: None)
