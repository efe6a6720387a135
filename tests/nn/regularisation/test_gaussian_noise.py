"""Noise on inputs and hidden units."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nn import GaussianNoise


def test_least_squares_on_noisy_inputs_is_ridge_with_lambda_n_sigma_squared():
    torch.manual_seed(0)
    rows, copies, std = 40, 4000, 0.5
    x = torch.randn(rows, 3, dtype=torch.float64)
    y = x @ torch.tensor([1.0, -2.0, 0.5]).double() + 0.1 * torch.randn(rows, dtype=torch.float64)
    noisy = GaussianNoise(std)(x.repeat(copies, 1))  # (copies N, 3)
    found = torch.linalg.lstsq(noisy, y.repeat(copies)[:, None]).solution[:, 0]
    ridge = Ridge(alpha=rows * std**2, fit_intercept=False).fit(x.numpy(), y.numpy()).coef_
    plain = np.linalg.lstsq(x.numpy(), y.numpy(), rcond=None)[0]
    np.testing.assert_allclose(found.numpy(), ridge, atol=0.01)
    assert np.abs(plain - ridge).max() > 0.2


@pytest.mark.parametrize("multiplicative", [False, True])
def test_noise_keeps_the_mean_and_has_the_stated_spread(multiplicative):
    torch.manual_seed(0)
    x = torch.tensor([0.0, 1.0, -4.0], dtype=torch.float64).expand(50000, 3)
    drawn = GaussianNoise(0.3, multiplicative=multiplicative)(x)
    expected = 0.3 * (x[0].abs() if multiplicative else torch.ones(3).double())
    assert_close(drawn.std(dim=0), expected, rtol=0.02, atol=1e-12)
    assert ((drawn.mean(dim=0) - x[0]).abs() <= 4 * expected / 50000**0.5).all()


def test_noise_is_off_at_inference_and_inside_a_network():
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(3, 4), GaussianNoise(0.5), nn.Linear(4, 1)), torch.randn(5, 3)
    assert not torch.equal(net.train()(x), net(x))
    assert_close(net.eval()(x), net[2](net[0](x)), rtol=0, atol=0)


def test_multiplicative_noise_has_mean_and_variance_of_dropout():
    torch.manual_seed(0)
    keep, x = 0.8, torch.full((100000,), 3.0)
    ours = GaussianNoise(((1 - keep) / keep) ** 0.5, multiplicative=True)(x)
    theirs = nn.Dropout(1 - keep)(x)
    assert ours.mean().item() == pytest.approx(theirs.mean().item(), abs=0.03)
    assert ours.var().item() == pytest.approx(theirs.var().item(), rel=0.03)


def test_a_negative_width_is_named():
    with pytest.raises(InvalidParameter, match=r"`std` must be at least 0; got -1"):
        GaussianNoise(-1)
