import math

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidData
from castalia.objectives import LevelLikelihood, LogisticLikelihood, MixedLikelihood
from castalia.utils.row_noise import RowNoise


def test_a_mixed_row_is_a_product_of_its_columns():
    likelihood = MixedLikelihood(1, 1, (3,), spread=True)
    outputs = torch.tensor([[0.5, -0.2, 1.0, 0.0, -1.0, math.log(2.0)]])
    x = torch.tensor([[1.5, 1.0, 2.0]])
    normal = torch.distributions.Normal(0.5, 2.0).log_prob(torch.tensor(1.5))
    flag = torch.distributions.Bernoulli(logits=torch.tensor(-0.2)).log_prob(torch.tensor(1.0))
    word = torch.log_softmax(torch.tensor([1.0, 0.0, -1.0]), dim=0)[2]
    assert_close(likelihood.rows(outputs, x)[0], -(normal + flag + word))


def test_a_missing_number_does_not_count():
    likelihood = MixedLikelihood(2, 1, missing=[1])
    outputs = torch.tensor([[0.0, 0.0, 30.0]])
    there = likelihood.rows(outputs, torch.tensor([[1.0, 5.0, 1.0]]))
    assert_close(there, torch.tensor([0.5]))


def test_levels_of_a_discretised_logistic_have_all_the_mass():
    likelihood = LogisticLikelihood(1)
    x = torch.arange(256.0)[:, None] / 255
    outputs = torch.tensor([[0.3, -2.0]]).expand(256, -1)
    assert_close((-likelihood.rows(outputs, x)).exp().sum(), torch.tensor(1.0))


@pytest.mark.parametrize("likelihood", [LogisticLikelihood(2), LevelLikelihood(2, 4)])
def test_draws_are_as_frequent_as_they_are_likely(likelihood):
    torch.manual_seed(0)
    outputs = torch.randn(1, likelihood.outputs)
    noise = next(RowNoise.blocks(256, seed=0))
    rows = torch.cat(
        [
            likelihood.sample(outputs.expand(256, -1), each)
            for each in RowNoise.blocks(256 * 40, seed=1)
        ]
    )
    assert noise.rows == 256
    value, count = torch.unique(rows, dim=0, return_counts=True)
    top = count.argmax()
    share = (-likelihood.rows(outputs, value[top][None])).exp()[0]
    assert abs(count[top] / len(rows) - share) < 4 * (share / len(rows)).sqrt() + 1e-3


def test_values_without_probability_are_named():
    with pytest.raises(InvalidData, match="between 0 and 1 for this likelihood; got 1.5"):
        LogisticLikelihood(1).check(torch.tensor([[1.5]]), "VAE")


def test_draws_of_a_mixed_row_have_its_means():
    likelihood = MixedLikelihood(1, 1, (3,), spread=True)
    outputs = torch.tensor([[4.0, 1.0, 2.0, 0.0, 1.0, math.log(0.5)]])
    rows = torch.cat(
        [likelihood.sample(outputs.expand(256, -1), n) for n in RowNoise.blocks(256 * 40, seed=1)]
    )
    words = torch.softmax(outputs[0, 2:5], dim=0)
    assert_close(rows[:, 0].mean(), torch.tensor(4.0), atol=0.02, rtol=0)
    assert_close(rows[:, 0].std(), torch.tensor(0.5), atol=0.02, rtol=0)
    assert_close(rows[:, 1].mean(), torch.tensor(1.0).sigmoid(), atol=0.02, rtol=0)
    for code in range(3):
        assert_close((rows[:, 2] == code).float().mean(), words[code], atol=0.02, rtol=0)
