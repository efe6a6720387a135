"""First and second derivatives against closed forms and against torch.func."""

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.testing import assert_close

from castalia.autodiff import gradient, hessian, hvp, jacobian, jvp, vjp
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch


@pytest.fixture
def draw():
    source = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(shape, generator=source, dtype=torch.float64)


@pytest.fixture
def net(draw):
    found = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).double()
    for p in found.parameters():
        p.data = draw(*p.shape)
    return found


def cost(net, x):
    return net(x).square().sum()


def test_a_gradient_has_the_structure_of_what_it_is_taken_by(draw):
    x, y = draw(3), {"a": draw(2), "b": draw()}
    found = gradient(lambda x, y: x.sum() * y["a"].sum() * y["b"], x, y, wrt=(0, 1))
    assert_close(found[0], y["a"].sum() * y["b"] * torch.ones(3).double())
    assert_close(found[1]["b"], x.sum() * y["a"].sum())
    assert set(found[1]) == {"a", "b"}


def test_a_float_may_be_differentiated_by():
    assert gradient(lambda x: x**3, 2.0).item() == 12.0


def test_the_gradient_of_a_module_equals_backward_and_leaves_the_module_alone(net, draw):
    x = draw(5, 3)
    before = {k: v.clone() for k, v in net.state_dict().items()}
    found = gradient(cost, net, x)
    assert all(p.grad is None for p in net.parameters())
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    cost(net, x).backward()
    for name, p in net.named_parameters():
        assert_close(found[name], p.grad)


def test_frozen_parameters_are_left_out(net, draw):
    net[0].requires_grad_(False)
    assert set(gradient(cost, net, draw(5, 3))) == {"1.weight", "1.bias", "3.weight", "3.bias"}


def test_tied_weights_get_the_sum_of_their_gradients(draw):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False).double()
            self.b = nn.Linear(3, 3, bias=False).double()
            self.b.weight = self.a.weight

    net, x = Tied(), draw(2, 3)
    found = gradient(lambda net: net.b(net.a(x)).sum(), net)
    assert list(found) == ["a.weight"]
    net.b(net.a(x)).sum().backward()
    assert_close(found["a.weight"], net.a.weight.grad)


def test_derivatives_work_inside_no_grad(draw):
    with torch.no_grad():
        assert_close(gradient(lambda x: (x**2).sum(), torch.ones(2)), 2 * torch.ones(2))


def test_the_jacobian_equals_that_of_torch(draw):
    x, a = draw(3), draw(4, 3)
    found = jacobian(lambda x, a: torch.tanh(a @ x), x, a, wrt=(0, 1))
    reference = torch.func.jacrev(lambda x, a: torch.tanh(a @ x), argnums=(0, 1))(x, a)
    assert_close(found, reference)


def test_the_jacobian_of_a_module_equals_that_of_torch(net, draw):
    x, net = draw(5, 3), net.eval()
    found = jacobian(lambda net: net(x), net)
    parameters = {k: p.detach() for k, p in net.named_parameters()}
    reference = torch.func.jacfwd(lambda p: functional_call(net, p, (x,)))(parameters)
    assert_close(found, reference)


class Cube(torch.autograd.Function):
    """x^3 written in the old style, with a branch in its backward that vmap cannot follow."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g if g.sum().item() > -1e9 else None


def test_products_fall_back_where_an_operator_has_no_forward_mode(draw):
    x, v = draw(3), draw(3)
    assert_close(jvp(Cube.apply, x, v=v), 3 * x**2 * v)
    assert_close(hvp(lambda x: Cube.apply(x).sum(), x, v=v), 6 * x * v)
    assert_close(jacobian(Cube.apply, x), torch.diag(3 * x**2))


def test_the_hessian_of_a_vector_field_has_three_axes(draw):
    x, a = draw(3), draw(2, 3, 3)
    found = hessian(lambda x: torch.einsum("kij,i,j->k", a, x, x), x)
    assert_close(found, a + a.transpose(1, 2))


def test_the_hessian_is_symmetric_and_equals_that_of_torch(draw):
    x, a = draw(4), draw(3, 4)
    fn = lambda x: torch.tanh(a @ x).prod() + x[0] ** 2 * x[1].sin()  # noqa: E731
    found = hessian(fn, x)
    assert_close(found, found.T)
    assert_close(found, torch.func.hessian(fn)(x))


def test_each_output_of_a_hessian_may_use_its_own_input(draw):
    x, y = draw(2), draw(2)
    found = hessian(
        lambda x, y: torch.stack([x.square().sum(), y.square().sum()]), x, y, wrt=(0, 1)
    )
    assert_close(found[0][0][0], 2 * torch.eye(2).double())
    assert found[0][1].abs().sum() == 0


def test_products_of_a_module_equal_its_jacobian_and_hessian(net, draw):
    x = draw(5, 3)
    v = {k: draw(*p.shape) for k, p in net.named_parameters()}
    h, j = hessian(cost, net, x), jacobian(lambda net: net(x), net)
    for row, got in hvp(cost, net, x, v=v).items():
        expected = sum(torch.tensordot(h[row][c], v[c], v[c].dim()) for c in v)
        assert_close(got, expected)
    expected = sum(torch.tensordot(j[c], v[c], v[c].dim()) for c in v)
    assert_close(jvp(lambda net: net(x), net, v=v), expected)


def test_vjp_pulls_a_seed_back_through_the_jacobian(draw):
    x, a, u = draw(3), draw(4, 3), draw(4)
    assert_close(vjp(lambda x: a @ x, x, v=u), u @ a)
    assert_close(vjp(lambda x: (a @ x).sum(), x), a.sum(0))


def test_attention_has_a_second_derivative(draw):
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).double()
    x, v = draw(2, 3, 4), draw(2, 3, 4)
    along = lambda t: gradient(lambda x: layer(x).square().sum(), x + t * v)  # noqa: E731
    expected = (along(1e-5) - along(-1e-5)) / 2e-5
    assert_close(hvp(lambda x: layer(x).square().sum(), x, v=v), expected, rtol=1e-5, atol=1e-7)


def test_a_linear_function_has_no_curvature(draw):
    x, a = draw(3), draw(3)
    assert hvp(lambda x: a @ x, x, v=x).abs().sum() == 0
    assert hessian(lambda x: a @ x, x).abs().sum() == 0


# ---- layouts of matrix calculus ----

M, N = 3, 2


@pytest.mark.parametrize(
    "fn, x, shape",
    [
        pytest.param(
            lambda x: x * torch.arange(3.0), torch.tensor(2.0), (M, 1), id="vector/scalar"
        ),
        pytest.param(lambda x: (x**2).sum(), torch.ones(N), (1, N), id="scalar/vector"),
        pytest.param(lambda x: (x**2).sum(), torch.ones(M, N), (N, M), id="scalar/matrix"),
        pytest.param(lambda x: torch.ones(M, N) @ x, torch.ones(N), (M, N), id="vector/vector"),
        pytest.param(lambda x: x * torch.ones(M, N), torch.tensor(2.0), (M, N), id="matrix/scalar"),
    ],
)
def test_the_numerator_layout_has_outputs_down_and_the_other_is_its_transpose(fn, x, shape):
    found = jacobian(fn, x, layout="numerator")
    assert found.shape == shape
    assert_close(jacobian(fn, x, layout="denominator"), found.T)


def test_in_the_denominator_layout_the_derivative_by_a_matrix_is_its_gradient(draw):
    a, x = draw(3, 2), draw(3, 2)
    assert_close(jacobian(lambda x: (a * x).sum(), x, layout="denominator"), a)
    assert_close(jacobian(lambda x: (a * x).sum(), x, layout="numerator"), a.T)


def test_a_layout_without_a_matrix_is_refused():
    with pytest.raises(ShapeMismatch, match=r"order 1 by an input of order 2"):
        jacobian(lambda x: x.sum(0), torch.ones(2, 2), layout="numerator")
    with pytest.raises(InvalidParameter, match=r"`layout` must be .* got 'rows'"):
        jacobian(lambda x: x, torch.ones(2), layout="rows")


# ---- bad input ----

X = torch.ones(3)


@pytest.mark.parametrize(
    "ask, error, said",
    [
        (
            lambda: gradient(lambda x: None, X),
            InvalidData,
            "must return a tensor.*NoneType.*return",
        ),
        (lambda: gradient(lambda x: (x, x), X), InvalidData, "must return a tensor.*got tuple"),
        (lambda: gradient(lambda x: 3.0, X), InvalidData, "must return a tensor.*got float"),
        (lambda: gradient(lambda x: x.argmax(), X), InvalidData, "floating.*got torch.int64"),
        (lambda: gradient(lambda x: x, X), ShapeMismatch, r"one number; got shape \(3,\)"),
        (lambda: vjp(lambda x: x, X), ShapeMismatch, r"`v` must be given.*\(3,\)"),
        (lambda: vjp(lambda x: x, X, v=torch.ones(2)), ShapeMismatch, r"shape \(3,\).*got \(2,\)"),
        (lambda: gradient(lambda x, y: y.sum(), X, X), InvalidData, "no path to `input 0`"),
        (lambda: gradient(lambda x: x.detach().sum(), X), InvalidData, r"\.detach\(\)"),
        (lambda: jvp(lambda x, y: y, X, X, v=X), InvalidData, "no path to `input 0`"),
        (lambda: hvp(lambda x, y: y.sum(), X, X, v=X), InvalidData, "no path to `input 0`"),
        (lambda: jacobian(lambda x, y: y, X, X), InvalidData, "no path to `input 0`"),
        (lambda: hessian(lambda x, y: y, X, X), InvalidData, "no path to `input 0`"),
        (lambda: gradient(lambda x: x.sum(), torch.arange(3)), InvalidData, "got torch.int64"),
        (lambda: gradient(lambda x: x.sum(), 3), InvalidData, "decimal point"),
        (lambda: gradient(lambda x: x.sum(), "3"), InvalidData, "got str"),
        (lambda: gradient(lambda x: x.sum(), X, wrt=1), InvalidParameter, "one of the 1 inputs"),
        (lambda: gradient(3, X), InvalidParameter, "must be a function or a module; got int"),
        (lambda: gradient(cost, nn.ReLU(), X), InvalidData, "trainable parameters; got ReLU"),
        (lambda: hvp(cost, nn.Linear(3, 1), X, v={"bias": X}), InvalidData, "entry for `weight`"),
        (lambda: jvp(lambda x: x, X, v=torch.ones(2)), ShapeMismatch, r"\(3,\) of `input 0`"),
    ],
    ids=range(21),
)
def test_a_bad_question_gets_a_sentence(ask, error, said):
    with pytest.raises(error, match=said):
        ask()


def test_integer_parameters_are_named():
    net = nn.Linear(3, 1)
    net.weight = nn.Parameter(torch.ones(1, 3, dtype=torch.int64), requires_grad=False)
    net.bias.requires_grad_(False)
    with pytest.raises(InvalidData, match=r"trainable parameters; got Linear.*floating"):
        gradient(cost, net, X)


def test_an_unused_parameter_is_named_and_may_be_counted_as_zero():
    net = nn.ModuleDict({"used": nn.Linear(3, 1), "idle": nn.Linear(3, 1)})
    with pytest.raises(InvalidData, match=r"no path to `idle.weight` and `idle.bias`"):
        gradient(lambda net: net["used"](X).sum(), net)
    found = gradient(lambda net: net["used"](X).sum(), net, allow_unused=True)
    assert found["idle.weight"].abs().sum() == 0
    assert_close(found["used.weight"], X[None])


def test_a_missing_direction_and_an_input_named_twice_are_refused():
    x = torch.ones(2)
    with pytest.raises(InvalidData, match=r"`v` must be a tensor .* got NoneType"):
        hvp(lambda x: (x**3).sum(), x, v=None)
    with pytest.raises(InvalidParameter, match=r"`wrt` must name each input once; got \(0, 0\)"):
        gradient(lambda x: x.sum(), x, wrt=(0, 0))
