"""Embedding of mixed rows."""

import torch

from castalia.nn import TableEmbedding
from castalia.nn.layers.category_embeddings import embedding_width


def test_numbers_pass_through_and_codes_are_looked_up():
    block = TableEmbedding(2, [3, 4])
    x = torch.tensor([[0.5, -1.0, 2.0, 0.0]])
    expected = torch.cat([x[:, :2], block.tables[0].weight[2:3], block.tables[1].weight[:1]], dim=1)
    assert torch.equal(block(x), expected)
    assert block.width == 2 + embedding_width(3) + embedding_width(4)


def test_the_slot_of_unseen_values_is_learnt():
    block = TableEmbedding(0, [3])
    block(torch.zeros(4, 1)).sum().backward()
    assert float(block.tables[0].weight.grad[0].abs().sum()) > 0


def test_widths_grow_slowly_and_end():
    widths = [embedding_width(n) for n in (2, 10, 100, 1000, 10**6)]
    assert widths == sorted(widths)
    assert widths[0] == 2
    assert widths[-1] == 50
