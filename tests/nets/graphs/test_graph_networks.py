"""What every network over graphs owes: order, packing and size do not matter; k layers, k hops."""

import pytest
import torch
from torch.testing import assert_close

from castalia.data.graphs import GraphSetRows
from castalia.data.graphs.graph_adapters import _side_by_side
from castalia.nets.graphs import (
    GAT,
    GCN,
    GIN,
    NN4G,
    ChebyshevNetwork,
    GatedGraphNetwork,
    GraphHead,
    GraphSAGE,
    LinkHead,
    NodeInputs,
    ScarselliNetwork,
    SpectralNetwork,
)
from castalia.nn.graph import Adjacency, PackedGraph

NETWORKS = {
    "gcn": GCN,
    "sage": GraphSAGE,
    "gat": GAT,
    "gin": GIN,
    "nn4g": NN4G,
    "chebyshev": ChebyshevNetwork,
    "spectral": SpectralNetwork,
    "scarselli": ScarselliNetwork,
    "gated": GatedGraphNetwork,
}
HOPS = {"gcn": 2, "sage": 2, "gat": 2, "gin": 2, "nn4g": 2, "chebyshev": 4, "gated": 4}


def drawn(n, seed):
    source = torch.Generator().manual_seed(seed)
    a = (torch.rand(n, n, generator=source) < 0.4).triu(1)
    edges = torch.cat([a.nonzero().T, a.nonzero().T.flip(0)], dim=1)
    return torch.randn(n, 5, generator=source).double(), edges


def make(name, outputs=3):
    torch.manual_seed(0)
    settings = {"tolerance": 1e-13} if name == "scarselli" else {}
    return NETWORKS[name](5, outputs, hidden=8, **settings).double().eval()


@pytest.mark.parametrize("name", NETWORKS)
def test_permuted_nodes_permute_outputs_and_leave_readouts_alone(name):
    x, edges = drawn(10, 1)
    order = torch.randperm(10)
    again = Adjacency.of(order.argsort()[edges], 10)
    net = make(name)
    found = net(x, Adjacency.of(edges, 10))
    assert (net(x[order], again) - found[order]).abs().max() < 1e-10
    head = GraphHead(NodeInputs(5), make(name, None), 2).double().eval()
    whole = head(PackedGraph(x, Adjacency.of(edges, 10)))
    assert (head(PackedGraph(x[order], again)) - whole).abs().max() < 1e-10


@pytest.mark.parametrize("name", NETWORKS)
def test_a_graph_in_a_batch_gets_the_output_it_gets_alone(name):
    graphs = [drawn(n, n) for n in (4, 7, 5)]
    matrices = [Adjacency.of(edges, len(x), symmetric=True) for x, edges in graphs]
    rows = GraphSetRows(_side_by_side([x for x, _ in graphs], matrices))
    head = GraphHead(NodeInputs(5), make(name, None), 2).double().eval()
    alone = torch.cat([head(PackedGraph(x, a)) for (x, _), a in zip(graphs, matrices, strict=True)])
    together = head(rows.take(torch.tensor([2, 0, 1])))
    assert (together - alone[[2, 0, 1]]).abs().max() < 1e-9


@pytest.mark.parametrize("name", HOPS)
def test_a_node_sees_as_many_hops_as_there_are_layers(name):
    n, hops = 9, HOPS[name]
    here = torch.arange(n - 1)
    path = torch.stack([here, here + 1])
    adjacency = Adjacency.of(torch.cat([path, path.flip(0)], dim=1), n)
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(0)).double()
    x.requires_grad_()
    make(name)(x, adjacency)[0].square().sum().backward()
    seen = x.grad.abs().sum(dim=1) > 0
    assert seen[: hops + 1].any()
    assert seen[hops]
    assert not seen[hops + 1 :].any()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_weights_serve_graphs_of_any_size(name):
    net = make(name)
    count = sum(p.numel() for p in net.parameters())
    for n in (4, 11):
        x, edges = drawn(n, 2)
        assert net(x, Adjacency.of(edges, n)).shape == (n, 3)
    assert count == sum(p.numel() for p in make(name).parameters())
    assert count < 5000


def test_nn4g_without_skips_is_nn4g_whose_further_weights_are_zero():
    x, edges = drawn(8, 0)
    adjacency = Adjacency.of(edges, 8)
    plain = NN4G(5, 2, hidden=4, depth=3, skip=False).double()
    skipping = NN4G(5, 2, hidden=4, depth=3).double()
    for layer, other in zip(plain.layers, skipping.layers, strict=True):
        other.own.load_state_dict(layer.own.state_dict())
        for near in other.near[:-1]:
            near.weight.data.zero_()
        if other.near:
            other.near[-1].load_state_dict(layer.near[0].state_dict())
    skipping.head.load_state_dict(plain.head.state_dict())
    assert_close(skipping(x, adjacency), plain(x, adjacency))
    skipping.layers[2].near[0].weight.data.fill_(1.0)
    assert (skipping(x, adjacency) - plain(x, adjacency)).abs().max() > 1e-3


@pytest.mark.parametrize("readout", ["sum", "mean"])
def test_the_output_of_nn4g_is_a_sum_over_layers_of_weighted_readouts(readout):
    x, edges = drawn(6, 3)
    adjacency = Adjacency.of(edges, 6)
    body = NN4G(5, None, hidden=4, depth=3).double()
    head = GraphHead(NodeInputs(5), body, 2, readout=readout).double().eval()
    k = 1 if readout == "sum" else len(x)
    states = body.encode(x, adjacency).unflatten(1, (3, 4))  # (N, layers, states)
    weights = head.head.weight.unflatten(1, (3, 4))
    expected = sum(weights[:, i] @ (states[:, i].sum(0) / k) for i in range(3)) + head.head.bias
    assert_close(head(PackedGraph(x, adjacency))[0], expected)


def test_states_come_to_the_same_rest_from_anywhere_and_geometrically():
    x, edges = drawn(8, 4)
    adjacency, net = Adjacency.of(edges, 8), make("scarselli")
    net.recurrence.state.data.mul_(10)  # the contraction is enforced
    first = net.rest(x, adjacency, acceleration=0)
    other = net.rest(x, adjacency, start=5 * torch.randn(8, 8).double())  # accelerated
    assert (first.z - other.z).abs().max() < 1e-10
    assert_close(net.recurrence(first.z, x, adjacency), first.z)
    changes = torch.tensor(first.changes[:20])
    assert (changes[1:] <= 0.9 * changes[:-1] + 1e-12).all()


def test_acceleration_saves_iterations_and_memory_does_not_grow_with_them():
    x, _ = drawn(40, 4)
    here = torch.arange(39)
    path = torch.stack([here, here + 1])
    adjacency = Adjacency.of(torch.cat([path, path.flip(0)], dim=1), 40)
    net = make("scarselli")
    net.recurrence.contraction = 0.98
    net.recurrence.state.data.mul_(10)
    plain, fast = (net.rest(x, adjacency, acceleration=m) for m in (0, 5))
    assert len(fast.changes) < 0.9 * len(plain.changes)
    assert (plain.z - fast.z).abs().max() < 1e-10
    kept = []
    for tolerance in (1e-1, 1e-12):
        net.tolerance, sizes = tolerance, []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, sizes=sizes: sizes.append(t.nbytes) or t, lambda t: t
        ):
            found = net.rest(x, adjacency)
        kept.append((len(found.changes), sum(sizes)))
    assert kept[1][0] > 3 * kept[0][0]
    assert kept[1][1] == kept[0][1]


def test_scores_are_a_dense_layer_on_the_states_that_plain_steps_come_to():
    x, edges = drawn(12, 3)
    net, adjacency = make("scarselli"), Adjacency.of(edges, 12)
    h = torch.zeros(12, 8).double()
    for _ in range(300):
        h = net.recurrence(h, x, adjacency)
    assert_close(net.encode(x, adjacency), h, atol=1e-9, rtol=0)
    assert_close(net(x, adjacency), h @ net.head.weight.T + net.head.bias, atol=1e-9, rtol=0)
    loose = ScarselliNetwork(5, hidden=8, tolerance=0.5)
    assert len(loose.rest(x.float(), adjacency).changes) < 8
    assert loose.width == 8
    assert loose.recurrence.contraction == 0.9


def test_the_gradient_at_rest_is_that_of_many_unrolled_steps():
    x, edges = drawn(6, 5)
    adjacency, net = Adjacency.of(edges, 6), make("scarselli")
    net(x, adjacency).sin().sum().backward()
    found = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    h = torch.zeros(6, 8).double()
    for _ in range(300):
        h = net.recurrence(h, x, adjacency)
    net.head(h).sin().sum().backward()
    for one, p in zip(found, net.parameters(), strict=True):
        assert_close(one, p.grad, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("score", ["dot", "bilinear", "mlp"])
def test_a_pair_is_scored_the_same_in_either_order(score):
    x, edges = drawn(6, 6)
    net = LinkHead(NodeInputs(5), make("gcn", 4), score=score).double()
    graph, pairs = PackedGraph(x, Adjacency.of(edges, 6)), torch.tensor([[0, 3], [5, 1]])
    assert_close(net(graph.asking(pairs)), net(graph.asking(pairs.flip(1))))
    if score == "dot":
        h = net.encode(graph)
        expected = (h[pairs[:, 0]] * h[pairs[:, 1]]).sum(1)
        assert_close(net(graph.asking(pairs)), expected)
