"""Readouts: order and packing do not matter; sums know sizes."""

import pytest
import torch
from torch.testing import assert_close

from castalia.data import Graph, Graphs
from castalia.errors import InvalidParameter
from castalia.models.graphs import GraphClassifier
from castalia.nn.graph import READOUTS, UniversalReadout, readout

H = torch.randn(9, 4, generator=torch.Generator().manual_seed(0)).double()
STARTS = torch.tensor([0, 2, 3, 9])


@pytest.mark.parametrize("kind", READOUTS)
def test_order_of_nodes_and_neighbours_in_the_batch_do_not_matter(kind):
    layer = readout(kind, 4).double()
    found = layer(H, STARTS)
    order = torch.cat([torch.tensor([1, 0, 2]), 3 + torch.randperm(6)])
    assert (layer(H[order], STARTS) - found).abs().max() < 1e-10
    alone = [layer(H[a:b], torch.tensor([0, b - a])) for a, b in ((0, 2), (2, 3), (3, 9))]
    assert_close(torch.cat(alone), found)


def test_a_sum_doubles_with_its_graph_and_a_mean_does_not():
    twice, starts = torch.cat([H, H]), torch.tensor([0, 18])
    one = torch.tensor([0, 9])
    assert_close(readout("sum", 4)(twice, starts), 2 * readout("sum", 4)(H, one))
    assert_close(readout("mean", 4)(twice, starts), readout("mean", 4)(H, one))
    assert_close(readout("max", 4)(H, one)[0], H.amax(0))
    with pytest.raises(InvalidParameter, match="`kind` must be .*Did you mean `mean`"):
        readout("meen", 4)


def test_the_universal_readout_learns_what_sums_cannot_say():
    torch.manual_seed(0)
    sizes = torch.randint(2, 7, (128,))
    starts = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    x = torch.rand(int(sizes.sum()), 1)
    largest = torch.segment_reduce(x, "max", offsets=starts)
    net = UniversalReadout(1, hidden=32)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        loss = (net(x, starts) - largest).square().mean()
        loss.backward()
        optimizer.step()
    assert loss < 0.2 * largest.var()


@pytest.mark.parametrize("kind", ["sum", "universal"])
def test_sums_over_large_graphs_begin_as_small_as_over_small_ones(kind):
    losses = []
    for size in (4, 400):
        ring = Graph([(i, (i + 1) % size) for i in range(size)])
        graphs = Graphs([ring] * 20, [0, 1] * 10)
        model = GraphClassifier(readout=kind, hidden=8, depth=2, epochs=1, lr=1e-9, random_state=0)
        losses.append(model.fit(graphs).history_[0]["loss"])
    assert max(losses) < 1.5
    assert abs(losses[1] - losses[0]) < 0.5
