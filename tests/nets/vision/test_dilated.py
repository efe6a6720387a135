"""How far dilated convolutions see, and that they keep the resolution."""

import pytest
import torch
from torch import nn

from castalia.errors import InvalidParameter
from castalia.nets.vision import DilatedNet
from castalia.nets.vision.dilated import CONTEXT, context_module, receptive_field


@pytest.mark.parametrize("dilations, field", [((1, 2, 4), 15), (CONTEXT, 67), ((1, 1), 5)], ids=str)
def test_receptive_field_is_what_the_formula_says(dilations, field):
    torch.manual_seed(0)
    module = context_module(1, 2, dilations).eval()
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.uniform_(layer.weight, 0.1, 0.5)  # positive: ReLU hides nothing
    assert receptive_field(dilations) == field
    x = torch.ones(1, 1, field + 8, field + 8, requires_grad=True)
    middle = (field + 8) // 2
    output = module(x)
    assert output.shape[2:] == x.shape[2:]  # the resolution is kept
    output[..., middle, middle].sum().backward()
    rows, columns = x.grad[0, 0].nonzero().T
    assert int(rows.max() - rows.min()) + 1 == int(columns.max() - columns.min()) + 1 == field


@pytest.mark.parametrize(
    "stride, pools, dilations", [(8, 3, {1, 2}), (2, 1, {1, 2, 4, 8})], ids=str
)
def test_poolings_that_are_left_out_become_dilation(stride, pools, dilations):
    net = DilatedNet(3, 2, widths=(4, 4, 4, 4, 4), stride=stride, hidden=4)
    assert sum(isinstance(m, nn.MaxPool2d) for m in net.modules()) == pools
    kernels = [m for m in net.front.modules() if isinstance(m, nn.Conv2d)]
    assert {m.dilation[0] for m in kernels} == dilations
    assert net.front(torch.zeros(1, 3, 32, 48)).shape[2:] == (32 // stride, 48 // stride)


def test_a_wrong_stride_is_named():
    with pytest.raises(InvalidParameter, match="`stride` must be 1, 2, 4 or 8; got 3"):
        DilatedNet(3, 2, stride=3)
