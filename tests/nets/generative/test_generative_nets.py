import pytest
import torch
from torch.testing import assert_close

from castalia.nets.generative import (
    ConvDecoder,
    ConvEncoder,
    CouplingFlow,
    DenseDenoiser,
    DRAWNetwork,
    ImageDenoiser,
    TiedAutoencoder,
)
from castalia.nets.generative.coupling_flow import spline
from castalia.nets.generative.draw_window import filters, window


def test_a_tied_decoder_is_the_encoder_transposed():
    torch.manual_seed(0)
    net = TiedAutoencoder(4, 2).double()
    x = torch.randn(3, 4, dtype=torch.double)
    w, b, c = net.layers[0].weight, net.layers[0].bias, net.biases[0]
    assert_close(net(x), (x @ w.T + b) @ w + c)
    assert sum(p.numel() for p in net.parameters()) == 4 * 2 + 2 + 4  # one matrix
    assert torch.autograd.gradcheck(
        lambda w: torch.func.functional_call(net, {"layers.0.weight": w}, (x,)), w
    )


@pytest.mark.parametrize("size", [(28, 28), (12, 9), (7, 5)])
def test_images_of_any_size_come_back_in_their_shape(size):
    code = ConvEncoder(3, size, 5, width=4)(torch.zeros(2, 3, *size))
    assert code.shape == (2, 5)
    assert ConvDecoder(5, 3, size, width=4)(code).shape == (2, 3 * size[0] * size[1])


@pytest.mark.parametrize("bins", [0, 5])
def test_a_flow_is_inverted_and_its_density_is_that_of_the_jacobian(bins):
    torch.manual_seed(0)
    flow = CouplingFlow(3, depth=4, hidden=(8,), bins=bins).double()
    with torch.no_grad():
        for p in flow.parameters():
            p.add_(0.3 * torch.randn_like(p))
    x = torch.randn(5, 3, dtype=torch.double)
    assert_close(flow.decode(flow.encode(x)), x)
    for row in x:
        jacobian = torch.autograd.functional.jacobian(lambda v: flow.encode(v[None])[0], row)
        normal = torch.distributions.Normal(0, 1).log_prob(flow.encode(row[None])).sum()
        assert_close(flow.log_prob(row[None])[0], normal + torch.linalg.slogdet(jacobian)[1])


def test_a_density_adds_up_to_one():
    torch.manual_seed(1)
    flow = CouplingFlow(1, depth=2, hidden=(4,), bins=4).double()
    with torch.no_grad():
        for p in flow.parameters():
            p.add_(0.5 * torch.randn_like(p))
    x = torch.linspace(-12, 12, 20_001, dtype=torch.double)[:, None]
    total = torch.trapezoid(flow.log_prob(x).exp(), x[:, 0])
    assert_close(total, torch.tensor(1.0, dtype=torch.double), atol=1e-4, rtol=0)


def test_a_spline_rises_and_is_the_identity_outside():
    torch.manual_seed(0)
    x = torch.linspace(-8, 8, 400, dtype=torch.double)
    parameters = torch.randn(1, 14, dtype=torch.double).expand(400, -1)
    y, log = spline(x, parameters)
    assert (y.diff() > 0).all()
    assert torch.equal(y[x.abs() > 5], x[x.abs() > 5])
    back, inverse = spline(y, parameters, inverse=True)
    assert_close(back, x)
    assert_close(inverse, -log)


def test_filters_sum_to_one_and_stand_where_the_window_is():
    centre = torch.tensor([10.0])
    found = filters(centre, torch.tensor([2.0]), torch.tensor([0.25]), 4, 28)
    assert_close(found.sum(dim=2), torch.ones(1, 4))
    assert_close((found * torch.arange(28.0)).sum(dim=2), torch.tensor([[7.0, 9.0, 11.0, 13.0]]))


def test_windows_get_gradients_and_the_canvas_adds_up():
    torch.manual_seed(0)
    net = DRAWNetwork(1, (8, 8), code=3, steps=4, hidden=8, window=3)
    x, noise = torch.rand(2, 1, 8, 8), torch.randn(2, 4, 3)
    found = net(x, noise)
    assert_close(found.z, found.mean + (found.log_variance / 2).exp() * noise)
    found.canvas.square().sum().backward()
    for layer in (net.reading, net.writing):
        assert layer.weight.grad.abs().sum() > 0
    shown, windows = net.paint(found.z)
    assert_close(shown[:, -1], found.canvas)
    assert_close(windows, found.windows)
    assert_close(net.decode(found.z.flatten(1)), found.canvas)


def test_a_density_is_the_same_where_products_are_bf16():
    torch.manual_seed(0)
    flow, x = CouplingFlow(3, depth=2, hidden=(8,)), torch.randn(5, 3)
    with torch.autocast("cpu", torch.bfloat16):
        found = flow.log_prob(x)
    assert_close(found, flow.log_prob(x), atol=0, rtol=0)


def test_windows_begin_in_the_middle_without_gaps_and_write_what_the_patch_says():
    net = DRAWNetwork(1, (28, 28), hidden=8, window=5)
    down, across, intensity, place = window(net.writing(torch.zeros(1, 8)), 5, (28, 28))
    assert_close(place[0], torch.tensor([13.5, 13.5, 6.75, 3.375]))
    flat = down.mT @ torch.ones(1, 5, 5) @ across / intensity  # a patch of ones
    assert_close(flat[0, 9:-9, 9:-9], torch.ones(10, 10), atol=0.25, rtol=0)
    assert_close(flat, flat.flip(1), atol=1e-4, rtol=0)


@pytest.mark.parametrize("classes", [0, 3])
def test_denoisers_see_the_step_and_the_class(classes):
    torch.manual_seed(0)
    y = torch.tensor([0, 1]) if classes else None
    image = ImageDenoiser(1, (10, 9), width=4, classes=classes)
    assert not image(torch.randn(2, 90), torch.ones(2), y).any()  # before it has learnt
    for p in image.parameters():
        p.data.normal_()
    for net, width in ((DenseDenoiser(4, hidden=8, classes=classes), 4), (image, 90)):
        x = torch.randn(2, width)
        early, late = (net(x, torch.full((2,), t), y) for t in (1, 900))
        assert early.shape == x.shape
        assert (early - late).abs().max() > 1e-4
        if classes:
            assert (net(x, torch.ones(2, dtype=torch.long), None) - early).abs().max() > 1e-4
