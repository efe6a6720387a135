"""Masks say who sees whom, and are added to the scores."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nn.attention import (
    attend,
    block,
    block_attention,
    causal,
    full,
    global_tokens,
    local,
    local_attention,
    padding,
    prefix,
    strided,
)


def brute(rule, queries, keys):
    return torch.tensor([[rule(i, j) for j in range(keys)] for i in range(queries)])


MASKS = {
    "full": (full(), lambda i, j: True),
    "causal": (causal(), lambda i, j: j <= i),
    "prefix": (prefix(3), lambda i, j: j < 3 or j <= i),
    "local": (local(2), lambda i, j: abs(i - j) <= 1),
    "strided": (strided(3), lambda i, j: (i - j) % 3 == 0),
    "block": (block(3), lambda i, j: i // 3 == j // 3),
    "global": (global_tokens(2), lambda i, j: i < 2 or j < 2),
    "causal window": (causal() & local(3), lambda i, j: 0 <= i - j < 3),
    "sparse": (
        causal() & (local(2) | strided(4)),
        lambda i, j: j <= i and (i - j < 2 or (i - j) % 4 == 0),
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_its_definition(name):
    mask, rule = MASKS[name]
    assert mask.visible(7, 7).broadcast_to(7, 7).equal(brute(rule, 7, 7))
    assert mask.visible(3, 8).broadcast_to(3, 8).equal(brute(rule, 3, 8))


def test_the_patterns_of_t5_for_five_tokens_and_a_prefix_of_three():  # WE-129
    assert causal().visible(5, 5).equal(torch.ones(5, 5).tril().bool())
    expected = torch.tensor(
        [[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    )
    assert prefix(3).visible(5, 5).int().equal(expected.int())
    assert full().visible(5, 5).all()


def test_a_mask_is_added_and_leaks_nothing():  # WE-113 and erratum A15
    scores = torch.tensor([[2.0, 3.0, -1.0]])
    mask = padding(torch.tensor([2])).additive(1, 3)[0, 0]
    weights = (scores + mask).softmax(-1)
    assert_close(weights, torch.tensor([[0.268941, 0.731059, 0.0]]), atol=1e-6, rtol=0)
    assert weights[0, 2] == 0
    multiplied = (scores * torch.tensor([1.0, 1.0, 0.0])).softmax(-1)
    assert_close(multiplied, torch.tensor([[0.2595, 0.7054, 0.0351]]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_added_numbers_stay_finite_in_every_precision(dtype):
    added = causal().additive(3, 3, dtype=dtype)
    assert added.dtype == dtype
    assert added.isfinite().all()
    assert (torch.zeros(3, 3) + added.float()).softmax(-1).triu(1).eq(0).all()


def test_lengths_and_truth_values_pad_alike():
    keep = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0]]).bool()
    by_length = padding(torch.tensor([2, 3])).visible(4, 4)
    assert padding(keep).visible(4, 4).equal(by_length)
    assert by_length.shape == (2, 1, 1, 4)


def test_a_prefix_can_differ_by_row():
    both = prefix(torch.tensor([1, 3])).visible(4, 4)
    assert both[0, 0].equal(prefix(1).visible(4, 4))
    assert both[1, 0].equal(prefix(3).visible(4, 4))


def test_only_the_causal_rule_alone_takes_the_fast_way():
    assert causal().only_causal
    assert (full() & causal()).only_causal
    assert (causal() & full()).only_causal
    assert not (causal() & local(3)).only_causal
    assert not prefix(2).only_causal


def test_the_fast_way_is_the_long_way():
    q, k, v = torch.randn(3, 2, 2, 6, 4, generator=torch.Generator().manual_seed(0))
    long = attend(q, k, v, mask=causal().additive(6, 6))
    assert_close(attend(q, k, v, mask=causal()), long)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: local(0), "local: `window` must be a whole number from 1; got 0"),
        (lambda: strided(1.5), "strided: `stride` must be a whole number from 1; got 1.5"),
        (lambda: block(-2), "block: `size` must be a whole number from 1; got -2"),
        (lambda: padding(torch.ones(2, 3, 4)), r"padding: `keep` must be.*\(2, 3, 4\)"),
    ],
)
def test_masks_that_make_no_sense_are_refused(make, said):
    with pytest.raises(InvalidParameter, match=said):
        make()


# ---- linear cost ----


@pytest.mark.parametrize("length", [1, 5, 12, 13])
@pytest.mark.parametrize("past", [False, True])
def test_local_and_block_attention_are_dense_attention_with_that_mask(length, past):
    q, k, v = torch.randn(3, 2, 2, length, 4, generator=torch.Generator().manual_seed(0))
    rule = causal() if past else full()
    for size in (1, 3, 4, 20):
        near = local_attention(q, k, v, size, causal=past)
        assert_close(near, attend(q, k, v, mask=rule & local(size)))
        inside = block_attention(q, k, v, size, causal=past)
        assert_close(inside, attend(q, k, v, mask=rule & block(size)))


def test_a_block_attends_as_if_it_were_alone():
    q, k, v = torch.randn(3, 1, 2, 12, 4, generator=torch.Generator().manual_seed(0))
    whole = block_attention(q, k, v, 4)
    parts = [attend(*(x[:, :, a : a + 4] for x in (q, k, v))) for a in (0, 4, 8)]
    assert_close(whole, torch.cat(parts, dim=2))


@pytest.mark.parametrize("sparse", [local_attention, block_attention])
def test_the_cost_of_sparse_attention_grows_with_the_length(sparse):
    from torch.utils.flop_counter import FlopCounterMode

    def flops(length):
        x = torch.ones(1, 1, length, 4)
        with FlopCounterMode(display=False) as counter:
            sparse(x, x, x, 8)
        return counter.get_total_flops()

    assert flops(64) > 0
    assert flops(256) == 4 * flops(64)
