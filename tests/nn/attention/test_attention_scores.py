"""Scores of attention are their formulas, and their weights are shares."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.nn.attention import (
    AdditiveAttention,
    AttentionPooling,
    DotProductAttention,
    MultiplicativeAttention,
    causal,
    padding,
)

DRAW = torch.Generator().manual_seed(0)
QUERIES, KEYS = torch.randn(2, 3, 6, generator=DRAW), torch.randn(2, 5, 6, generator=DRAW)
KINDS = {
    "additive": lambda: AdditiveAttention(6),
    "multiplicative": lambda: MultiplicativeAttention(6),
    "dot": DotProductAttention,
}


def test_the_additive_score_is_its_formula():
    layer = AdditiveAttention(6, hidden=4).requires_grad_(False)
    w1, w2, v = layer.of_key.weight, layer.of_query.weight, layer.v.weight[0]
    expected = [
        [[v @ torch.tanh(w1 @ h + w2 @ u) for h in keys] for u in queries]
        for queries, keys in zip(QUERIES, KEYS, strict=True)
    ]
    assert_close(layer.scores(QUERIES, KEYS), torch.tensor(expected))


@pytest.mark.parametrize("hidden", [16, 256])
def test_additive_scores_of_untrained_states_spread_by_about_one(hidden):
    draw = torch.Generator().manual_seed(0)
    queries, keys = (0.3 * torch.randn(8, 30, hidden, generator=draw) for _ in range(2))
    spread = [AdditiveAttention(hidden).scores(queries, keys).std().item() for _ in range(20)]
    assert 0.6 < sum(spread) / len(spread) < 1.6  # 0.2 by the usual weights of torch


def test_the_gradient_of_the_additive_score_is_that_of_differences():
    layer = AdditiveAttention(3, hidden=2).double()
    q, k = (torch.randn(1, 2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(layer, (q, k))


def test_the_multiplicative_score_with_the_identity_is_the_dot_product():
    layer = MultiplicativeAttention(6)
    with torch.no_grad():
        layer.w.weight.copy_(torch.eye(6))
    assert_close(layer.scores(QUERIES, KEYS), QUERIES @ KEYS.transpose(1, 2))
    layer = MultiplicativeAttention(6, query_dim=4)
    expected = torch.einsum("bqi,ij,bkj->bqk", QUERIES[..., :4], layer.w.weight, KEYS)
    assert_close(layer.scores(QUERIES[..., :4], KEYS), expected)


def test_a_query_of_another_width_than_the_keys_is_scored():
    assert AdditiveAttention(6, query_dim=3)(torch.ones(2, 4, 3), KEYS).shape == (2, 4, 6)


def test_dot_products_are_those_of_torch():
    expected = nn.functional.scaled_dot_product_attention(QUERIES, KEYS, KEYS)
    assert_close(DotProductAttention()(QUERIES, KEYS), expected)


def test_self_attention_without_projections_is_a_softmax_of_products():
    x = KEYS[0]
    z = torch.stack([(x @ x_i).softmax(0) @ x for x_i in x])
    assert_close(DotProductAttention(scale=1.0)(x[None], x[None])[0], z)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_shares_and_outputs_lie_between_the_values(kind):
    layer = KINDS[kind]()
    weights = layer.weights(QUERIES, KEYS)
    assert (weights >= 0).all()
    assert_close(weights.sum(-1), torch.ones(2, 3))
    values = torch.randn(2, 5, 4)
    out = layer(QUERIES, KEYS, values)
    assert_close(out, weights @ values)
    assert (out <= values.amax(1, keepdim=True) + 1e-6).all()
    assert (out >= values.amin(1, keepdim=True) - 1e-6).all()


@pytest.mark.parametrize("kind", KINDS)
def test_padded_keys_have_no_weight(kind):
    weights = KINDS[kind]().weights(QUERIES, KEYS, padding(torch.tensor([2, 4])))
    assert (weights[0, :, 2:] == 0).all()
    assert (weights[1, :, 4:] == 0).all()
    assert_close(weights.sum(-1), torch.ones(2, 3))
    assert KINDS[kind]().weights(KEYS, KEYS, causal()).triu(1).eq(0).all()


def test_scaling_by_the_root_of_the_width_keeps_the_variance_and_the_gradient():
    draw = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 400, 64, generator=draw)
    plain, scaled = DotProductAttention(scale=1.0), DotProductAttention()
    assert plain.scores(q, k).var().item() == pytest.approx(64, rel=0.05)
    assert scaled.scores(q, k).var().item() == pytest.approx(1, rel=0.05)
    assert scaled.scores(q, k).equal(plain.scores(q, k) / 8)  # WE-111: d = 64 divides by 8
    slopes = []
    for layer in (plain, scaled):
        p = layer.weights(q[:, :50], k[:, :20])
        slopes.append((p * (1 - p)).mean().item())  # the diagonal of the softmax's Jacobian
    assert slopes[1] > 2 * slopes[0]


def test_pooling_is_its_formula_and_forgets_padding():
    pool = AttentionPooling(6, hidden=4)
    scores = torch.tanh(KEYS @ pool.lift.weight.T + pool.lift.bias) @ pool.question.weight[0]
    share = scores.exp() / scores.exp().sum(1, keepdim=True)
    assert_close(pool.weights(KEYS), share)
    assert_close(pool(KEYS), (share[..., None] * KEYS).sum(1))
    keep = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
    assert_close(pool(KEYS, keep)[0], pool(KEYS[:1, :2])[0])


def test_pooling_finds_the_word_that_decides():
    draw = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    pool, head = AttentionPooling(8), nn.Linear(8, 1)
    table = torch.randn(20, 8, generator=draw)
    ids = torch.randint(2, 20, (256, 6), generator=draw)
    place = torch.randint(6, (256,), generator=draw)
    label = torch.randint(2, (256,), generator=draw)
    ids[torch.arange(256), place] = label  # word 0 or 1 says the class
    adam = torch.optim.Adam([*pool.parameters(), *head.parameters()], lr=0.02)
    for _ in range(150):
        adam.zero_grad()
        logits = head(pool(table[ids])).squeeze(1)
        nn.functional.binary_cross_entropy_with_logits(logits, label.float()).backward()
        adam.step()
    found = pool.weights(table[ids]).argmax(1)
    assert (found == place).float().mean() > 0.9
