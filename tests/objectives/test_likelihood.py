"""Likelihoods against log-densities computed elsewhere."""

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import nn

from castalia.errors import InvalidParameter
from castalia.objectives import (
    BernoulliLikelihood,
    BinaryCrossEntropy,
    CrossEntropy,
    GaussianLikelihood,
    LaplaceLikelihood,
    MixtureLikelihood,
    MultinoulliLikelihood,
    PoissonLikelihood,
    SquaredError,
)
from castalia.objectives.likelihood import FLOOR
from castalia.protocols import Batch

OUTPUTS = torch.tensor([[0.3, -1.0, 0.5, 2.0], [1.0, 0.2, -0.7, 0.1]], dtype=torch.float64)
Y = torch.tensor([[0.1, -0.4], [2.0, 1.5]], dtype=torch.float64)


def softplus(value):
    return np.log1p(np.exp(value)) + FLOOR


@pytest.mark.parametrize(
    "likelihood, family", [(GaussianLikelihood(), st.norm), (LaplaceLikelihood(), st.laplace)]
)
def test_location_scale_families_agree_with_scipy(likelihood, family):
    place, spread = OUTPUTS[:, :2].numpy(), softplus(OUTPUTS[:, 2:].numpy())
    expected = family(place, spread).logpdf(Y.numpy()).sum(axis=1)
    found = likelihood.distribution(OUTPUTS).log_prob(Y)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    assert likelihood.outputs(2) == 4


def test_poisson_agrees_with_scipy():
    counts = torch.tensor([[0.0, 3.0], [2.0, 1.0]], dtype=torch.float64)
    expected = st.poisson(OUTPUTS[:, :2].exp().numpy()).logpmf(counts.numpy()).sum(axis=1)
    found = PoissonLikelihood().distribution(OUTPUTS[:, :2]).log_prob(counts)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    assert PoissonLikelihood().outputs(3) == 3


def test_a_mixture_agrees_with_the_weighted_sum_of_densities():
    outputs = torch.tensor([[0.2, -0.5, 0.1, -0.3, 0.7, 0.4]], dtype=torch.float64)
    share = torch.softmax(outputs[0, :2], dim=0).numpy()
    place = outputs[0, [2, 4]].numpy() + [-1, 1]  # the starting means are spread over -1 … 1
    spread = softplus(outputs[0, [3, 5]].numpy())
    expected = np.log(
        sum(w * st.norm(m, s).pdf(0.4) for w, m, s in zip(share, place, spread, strict=True))
    )
    likelihood = MixtureLikelihood(2)
    found = likelihood.distribution(outputs).log_prob(torch.tensor([[0.4]], dtype=torch.float64))
    assert float(found) == pytest.approx(expected, abs=1e-12)
    assert likelihood.outputs(1) == 6


def test_the_loss_is_the_weighted_mean_of_negative_log_likelihoods():
    weight = torch.tensor([3.0, 1.0], dtype=torch.float64)
    likelihood = GaussianLikelihood()
    loss = likelihood.terms(nn.Identity(), Batch(OUTPUTS, Y, weight), "train")["loss"]
    rows = -likelihood.distribution(OUTPUTS).log_prob(Y)
    assert float(loss) == pytest.approx(float((3 * rows[0] + rows[1]) / 4), abs=1e-12)


@pytest.mark.parametrize("likelihood", [GaussianLikelihood(), PoissonLikelihood()])
def test_extreme_outputs_keep_a_finite_loss(likelihood):
    outputs = torch.tensor([[50.0, -200.0]])
    target = torch.zeros(1, likelihood.outputs(1) and 2 // likelihood.outputs(1))
    assert bool(likelihood.distribution(outputs).log_prob(target).isfinite().all())


def test_a_known_spread_makes_the_squared_error_up_to_a_constant():
    likelihood, s = GaussianLikelihood(scale=0.7), 0.7
    loss = likelihood.terms(nn.Identity(), Batch(OUTPUTS[:, :2], Y), "train")["loss"]
    half = SquaredError(scale="half").rows(OUTPUTS[:, :2], Y).mean()
    constant = 2 * 0.5 * np.log(2 * np.pi * s**2)  # two targets
    assert float(loss) == pytest.approx(float(half) / s**2 + constant, abs=1e-12)
    assert likelihood.outputs(2) == 2
    with pytest.raises(InvalidParameter, match="`scale` must be above 0, or None; got 0"):
        LaplaceLikelihood(scale=0)


def test_bernoulli_is_the_binary_cross_entropy_summed_over_labels():
    labels = torch.tensor([[1.0, 0, 1, 0], [0, 0, 1, 1]], dtype=torch.float64)
    loss = BernoulliLikelihood().terms(nn.Identity(), Batch(OUTPUTS, labels), "train")["loss"]
    mean = BinaryCrossEntropy().rows(OUTPUTS, labels).mean()
    assert float(loss) == pytest.approx(4 * float(mean), abs=1e-12)
    assert BernoulliLikelihood().outputs(4) == 4


def test_multinoulli_is_the_cross_entropy():
    codes = torch.tensor([3, 0])
    loss = MultinoulliLikelihood().terms(nn.Identity(), Batch(OUTPUTS, codes), "train")["loss"]
    assert float(loss) == pytest.approx(float(CrossEntropy().rows(OUTPUTS, codes).mean()))
    assert MultinoulliLikelihood().outputs(4) == 4
