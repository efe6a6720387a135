"""Products with curvature against matrices and finite differences."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.optim import GaussNewtonModel, HessianModel
from castalia.optim.quadratic_models import build_model
from castalia.optim.vector import flatten


def problem(loss="squared", outputs=2):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, outputs)).double()
    x = torch.randn(6, 3, dtype=torch.float64)
    if loss == "squared":
        y = torch.randn(6, outputs, dtype=torch.float64)
        return net, x, lambda out: (out - y).square().mean()
    labels = torch.randint(0, outputs, (6,))
    return net, x, lambda out: F.cross_entropy(out, labels)


def dense_hessian(net, loss):
    """The Hessian by torch's own double differentiation."""
    names = [name for name, _ in net.named_parameters()]
    shapes = [p.shape for p in net.parameters()]

    def of(vector):
        pieces = vector.split([s.numel() for s in shapes])
        values = [p.view(s) for p, s in zip(pieces, shapes, strict=True)]
        return loss(dict(zip(names, values, strict=True)))

    return torch.autograd.functional.hessian(of, flatten(p.detach() for p in net.parameters()))


def test_hessian_products_are_those_of_the_matrix():
    net, x, loss_of = problem()
    expected = dense_hessian(net, lambda p: loss_of(torch.func.functional_call(net, p, (x,))))
    model = HessianModel(loss_of(net(x)), list(net.parameters()))
    v = torch.randn(len(expected), dtype=torch.float64)
    assert_close(model.product(v), expected @ v)
    assert_close(model.matrix(), expected)


def test_a_hessian_product_equals_a_finite_difference_of_gradients():
    net, x, loss_of = problem("cross_entropy", 3)
    parameters = list(net.parameters())
    model = HessianModel(loss_of(net(x)), parameters)
    v, h, sides = torch.randn_like(model.gradient), 1e-5, []
    for sign in (1, -1):
        with torch.no_grad():
            nn.utils.vector_to_parameters(
                nn.utils.parameters_to_vector(parameters) + sign * h * v, parameters
            )
        sides.append(flatten(torch.autograd.grad(loss_of(net(x)), parameters)))
        with torch.no_grad():
            nn.utils.vector_to_parameters(
                nn.utils.parameters_to_vector(parameters) - sign * h * v, parameters
            )
    assert_close(model.product(v), (sides[0] - sides[1]) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss, outputs", [("squared", 2), ("cross_entropy", 3)])
def test_gauss_newton_products_are_those_of_the_matrix(loss, outputs):
    net, x, loss_of = problem(loss, outputs)
    parameters = list(net.parameters())
    out = net(x)
    jacobian = torch.stack(
        [flatten(torch.autograd.grad(o, parameters, retain_graph=True)) for o in out.flatten()]
    )
    inner = torch.autograd.functional.hessian(
        lambda z: loss_of(z.view_as(out)), out.detach().flatten()
    )
    model = GaussNewtonModel(out, loss_of, parameters)
    expected = jacobian.T @ inner @ jacobian
    v = torch.randn(len(expected), dtype=torch.float64)
    assert_close(model.product(v), expected @ v)
    assert_close(model.matrix(), expected)
    assert torch.linalg.eigvalsh(model.matrix()).min() > -1e-12


def test_gradient_and_curvature_of_a_penalty_are_exact():
    net, x, loss_of = problem()
    parameters = list(net.parameters())

    def penalty():
        return 0.3 * sum(p.pow(4).sum() for p in parameters)

    plain = GaussNewtonModel(net(x), loss_of, parameters)
    model = GaussNewtonModel(net(x), lambda out: loss_of(out) + penalty(), parameters)
    assert_close(model.gradient, HessianModel(loss_of(net(x)) + penalty(), parameters).gradient)
    diagonal = 0.3 * 12 * flatten(p.detach() for p in parameters) ** 2
    assert_close(model.matrix(), plain.matrix() + diagonal.diag())


def test_for_a_linear_network_both_models_agree():
    net, x = nn.Linear(3, 2).double(), torch.randn(5, 3, dtype=torch.float64)
    parameters = list(net.parameters())
    whole = HessianModel(net(x).square().sum(), parameters).matrix()
    assert_close(GaussNewtonModel(net(x), lambda z: z.square().sum(), parameters).matrix(), whole)


def test_a_loss_without_curvature_has_zero_products():
    w = torch.ones(3, requires_grad=True)
    assert not HessianModel((2 * w).sum(), [w]).product(torch.ones(3)).any()
    assert not GaussNewtonModel(2 * w, torch.sum, [w]).matrix().any()


@pytest.mark.parametrize(
    "closure, kind, message",
    [
        (lambda w: w.sum() * 1.0, "gauss_newton", r"\(outputs, loss_of\).*got Tensor"),
        (lambda w: 3.0, "hessian", "the loss as a tensor of one number.*got float"),
        (lambda w: w * 2, "hessian", "the loss as a tensor of one number"),
        (lambda w: (w * 2).sum().detach(), "auto", "got one without a graph"),
    ],
    ids=["outputs", "number", "vector", "detached"],
)
def test_a_closure_that_will_not_do_is_named(closure, kind, message):
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(InvalidParameter, match=f"Newton.step: `closure` must.*{message}"):
        build_model("Newton", lambda: closure(w), [w], kind)


def test_a_closure_that_calls_backward_is_named():
    w = torch.ones(2, requires_grad=True)

    def closure():
        loss = w.pow(3).sum()
        loss.backward()
        return loss

    with pytest.raises(InvalidParameter, match="without calling `backward"):
        build_model("Newton", closure, [w], "hessian")
