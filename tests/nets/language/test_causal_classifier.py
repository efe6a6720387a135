"""Scores from the last token of a causal network."""

import torch
from torch.testing import assert_close

from castalia.nets.language import GPT, CausalClassifier

PAD = 0


def network(**settings):
    torch.manual_seed(0)
    return CausalClassifier(
        GPT(20, context=8, dim=8, depth=2, heads=2), 3, padding=PAD, **settings
    ).eval()


def test_scores_are_a_linear_map_of_the_final_tokens_vector():
    net, ids = network(), torch.tensor([[5, 6, 7]])
    v = net.decoder.features(ids)[0, -1]
    assert_close(net(ids)[0], net.head.weight @ v + net.head.bias)


def test_padding_behind_a_text_changes_nothing():
    net = network()
    assert_close(net(torch.tensor([[5, 6, 7, PAD, PAD]])), net(torch.tensor([[5, 6, 7]])))


def test_vectors_of_both_orders_are_added_so_that_order_does_not_matter():
    net = network()
    one, other = torch.tensor([[5, 9, 6, 7]]), torch.tensor([[6, 9, 5, 7]])
    both = net(torch.stack([one, other], dim=1))
    v = net.decoder.features(one)[:, -1] + net.decoder.features(other)[:, -1]
    assert_close(both, net.head(v))
    assert_close(net(torch.stack([other, one], dim=1)), both)
    assert (net(one) - net(other)).abs().max() > 1e-4


def test_each_answer_gets_its_own_score_whatever_stands_beside_it():
    net = network(each=True)
    rows = torch.tensor([[[5, 9, 6, 7], [5, 9, 8, 7], [5, 9, 2, 7]]])
    scores = net(rows)
    assert scores.shape == (1, 3)
    assert net.head.bias is None
    for k in range(3):
        assert_close(
            scores[0, k], (net.head.weight @ net.decoder.features(rows[0, k : k + 1])[0, -1])[0]
        )
    turned = net(rows[:, [2, 0, 1]])
    assert_close(turned, scores[:, [2, 0, 1]])
    assert_close(scores.softmax(dim=1).sum(dim=1), torch.ones(1))
