"""Full, hierarchical and sampled predictions of words: sums, lengths, gradients, optima."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidData
from castalia.nn import FullSoftmax, HierarchicalSoftmax, NegativeSampling, huffman_paths

COUNTS = [40, 25, 3, 9, 1, 1, 17, 2, 8, 30, 5]


def filled(module, seed=0):
    torch.manual_seed(seed)
    with torch.no_grad():
        module.weight.normal_()
    return module.double()


@pytest.mark.parametrize(
    "make", [lambda: FullSoftmax(11, 4), lambda: HierarchicalSoftmax(COUNTS, 4)]
)
def test_the_probabilities_of_all_words_sum_to_one_and_the_loss_is_theirs(make):
    head, h = filled(make()), torch.randn(6, 4, dtype=torch.float64)
    logs = head.log_probabilities(h)
    assert logs.shape == (6, 11)
    assert_close(logs.exp().sum(dim=1), torch.ones(6, dtype=torch.float64))
    target = torch.tensor([0, 3, 4, 5, 10, 2])
    assert_close(head(h, target), -logs[torch.arange(6), target])


@pytest.mark.parametrize(
    "make", [lambda: FullSoftmax(5, 3), lambda: HierarchicalSoftmax(COUNTS[:5], 3)]
)
def test_gradients_are_those_of_finite_differences(make):
    head = filled(make())
    h = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([1, 4])

    def loss(h, weight):
        return torch.func.functional_call(head, {"weight": weight}, (h, target))

    assert torch.autograd.gradcheck(loss, (h, head.weight))


def test_the_full_softmax_has_vectors_of_its_own_for_words_that_are_predicted():
    head, h = filled(FullSoftmax(5, 3)), torch.randn(1, 3, dtype=torch.float64)
    scores = np.exp((h @ head.weight.T).detach().numpy())
    np.testing.assert_allclose(
        head.log_probabilities(h).exp().detach(), scores / scores.sum(), rtol=1e-12
    )


@pytest.mark.parametrize("size", [2, 3, 8, 13, 64])
def test_no_way_in_a_tree_of_equal_counts_is_longer_than_log2_of_the_words(size):
    _, turns = huffman_paths([7] * size)
    lengths = turns.abs().sum(dim=1)
    assert lengths.max() <= math.ceil(math.log2(size))
    assert 2.0 ** -lengths.double() @ torch.ones(size, dtype=torch.float64) == 1  # Kraft


def test_ways_are_huffmans():
    _, turns = huffman_paths([45, 13, 12, 16, 9, 5])  # Cormen et al., figure of chapter 16.3
    assert turns.abs().sum(dim=1).tolist() == [1, 3, 3, 3, 4, 4]


def test_the_mean_way_lies_within_a_bit_of_the_entropy():
    counts = np.array(COUNTS) / sum(COUNTS)
    _, turns = huffman_paths(COUNTS)
    mean = float(counts @ turns.abs().sum(dim=1).numpy())
    entropy = -(counts * np.log2(counts)).sum()
    assert entropy <= mean < entropy + 1


def test_every_word_has_its_own_way():
    nodes, turns = huffman_paths(COUNTS)
    assert nodes.max() == len(COUNTS) - 2
    ways = {
        (tuple(n[t != 0]), tuple(t[t != 0]))
        for n, t in zip(nodes.numpy(), turns.numpy(), strict=True)
    }
    assert len(ways) == len(COUNTS)


def test_noise_is_drawn_with_the_power_of_the_counts():
    head = NegativeSampling(COUNTS, 2)
    wanted = np.array(COUNTS) ** 0.75 / (np.array(COUNTS) ** 0.75).sum()
    np.testing.assert_allclose(head.noise, wanted)
    drawn = head.draw(200, 1000, generator=torch.Generator().manual_seed(0))
    share = np.bincount(drawn.flatten(), minlength=11) / drawn.numel()
    np.testing.assert_allclose(share, wanted, atol=0.003)


def test_the_sampled_loss_is_that_of_the_formula():
    head, h = filled(NegativeSampling([1, 1], 3, negative=4)), torch.randn(1, 3).double()
    with torch.no_grad():
        head.weight[1] = head.weight[0]  # then it does not matter which are drawn
        s = float(head.weight[0] @ h[0])
    expected = math.log1p(math.exp(-s)) + 4 * math.log1p(math.exp(s))
    assert head(h, torch.tensor([0])).item() == pytest.approx(expected)


@pytest.mark.parametrize("counts", [[3], [[1, 2]], [1, -1], [1, math.nan]])
def test_a_tree_needs_two_counts(counts):
    with pytest.raises(InvalidData, match="huffman_paths: `counts` must be at least two finite"):
        huffman_paths(counts)


def test_noise_needs_counts_above_zero():
    with pytest.raises(
        InvalidData, match="must be numbers above 0, one a word; got 2 .*smallest 0"
    ):
        NegativeSampling([1, 0], 3)
