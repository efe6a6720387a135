"""Lion against its equations."""

import pytest
import torch
from torch.testing import assert_close

from castalia.optim import Lion


def test_it_follows_the_equations():
    near, far, lr, decay = 0.8, 0.95, 0.1, 0.2
    w = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    optimizer = Lion([w], lr=lr, betas=(near, far), weight_decay=decay)
    place, m = w.detach().clone(), torch.zeros(3, dtype=torch.float64)
    for g in ([1.0, -0.1, 0.0], [-3.0, 0.2, 0.4], [0.1, -5.0, -0.1]):
        w.grad = torch.tensor(g, dtype=torch.float64)
        u = (near * m + (1 - near) * w.grad).sign()
        place = place * (1 - lr * decay) - lr * u
        m = far * m + (1 - far) * w.grad
        optimizer.step()
        assert_close(w.detach(), place)


def test_parameters_without_gradient_stay():
    w, idle = (torch.ones(2, requires_grad=True) for _ in range(2))
    w.grad = torch.ones(2)
    Lion([w, idle], lr=0.1).step()
    assert idle.tolist() == [1.0, 1.0]
    assert w.tolist() == pytest.approx([0.9, 0.9])
