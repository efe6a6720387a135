"""Receptive fields by gradients."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import influence


def test_it_is_the_absolute_derivative_summed_over_channels():
    torch.manual_seed(0)
    conv = nn.Conv1d(2, 3, 3).double()
    found = influence(conv, torch.randn(4, 2, 9).double(), (2,))
    assert_close(found[2:5], conv.weight.detach().abs().sum(dim=(0, 1)))
    assert found.count_nonzero() == 3


def test_outputs_that_cancel_are_still_seen():
    conv = nn.Conv1d(1, 2, 1, bias=False)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[[1.0]], [[-1.0]]]))
    assert influence(conv, torch.ones(1, 1, 3)).tolist() == [0, 2, 0]


def test_a_vector_output_has_no_position():
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 2)).train()
    assert influence(net, torch.ones(1, 2, 4)).shape == (4,)
    assert net.training


def test_a_position_outside_is_refused():
    with pytest.raises(InvalidParameter, match=r"of size \(7,\); got \(7,\)"):
        influence(nn.Conv1d(1, 1, 3), torch.ones(1, 1, 9), (7,))
    with pytest.raises(ShapeMismatch, match=r"\(B, C, n...\); got \(9,\)"):
        influence(nn.Conv1d(1, 1, 3), torch.ones(9))
