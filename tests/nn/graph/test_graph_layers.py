"""Graph layers against dense matrices, and against PyTorch Geometric."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import check_gradients
from castalia.data import Graph
from castalia.models.graphs import LinkPredictor
from castalia.nn.graph import (
    Adjacency,
    ChebyshevConv,
    GATConv,
    GatedGraphConv,
    GCNConv,
    GINConv,
    GraphRecurrence,
    NN4GConv,
    SAGEConv,
    SparseFeatures,
    SpectralConv,
    edge_softmax,
    laplacian,
)
from castalia.nn.graph.sparse_products import product, weighted_product
from castalia.train import Training


def drawn(n=9, p=0.35, directed=False, seed=0):
    """A random graph as (2, E) edges, and its features, in float64."""
    torch.manual_seed(seed)
    dense = (torch.rand(n, n) < p).double().fill_diagonal_(0)
    dense = dense if directed else dense.triu() + dense.triu().T
    dense[-1] = dense[:, -1] = 0  # a node without edges
    target, source = dense.nonzero().T
    return torch.stack([source, target]), torch.randn(n, 4, dtype=torch.float64)


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def case(request):
    edges, x = drawn(directed=request.param)
    return Adjacency.of(edges, len(x)), x


def hat(a):
    """D^-1/2 (A + I) D^-1/2 of a dense matrix."""
    looped = a + torch.eye(len(a), dtype=a.dtype)
    root = looped.sum(1).rsqrt()
    return root[:, None] * looped * root


def test_the_matrix_has_an_entry_for_each_edge_and_knows_whether_it_is_symmetric(case):
    adjacency, x = case
    a = adjacency.dense()
    assert_close(adjacency @ x, a @ x)
    assert_close(adjacency.degree.double(), a.sum(1))
    assert adjacency.symmetric == torch.equal(a, a.T)
    assert_close(adjacency.transposed.dense(), a.T)


def test_products_have_the_gradients_of_dense_ones(case):
    adjacency, x = case
    weight = torch.rand(adjacency.edges, dtype=torch.float64)
    assert check_gradients(lambda x: product(adjacency, x).sin().sum(), x)
    assert check_gradients(lambda w, x: weighted_product(adjacency, w, x).sin().sum(), weight, x)


def test_gcn_is_its_formula(case):
    adjacency, x = case
    for outputs in (2, 7):  # products before and after mixing
        layer = GCNConv(4, outputs).double()
        layer.bias.data.normal_()
        expected = hat(adjacency.dense()) @ x @ layer.weight + layer.bias
        assert_close(layer(x, adjacency), expected)


def test_a_loop_that_is_there_is_not_added_again():
    adjacency = Adjacency.of(torch.tensor([[0, 1, 0], [1, 0, 0]]), 2)
    assert_close(adjacency.with_loops().dense(), torch.ones(2, 2).double())


def test_sage_takes_the_mean_of_neighbours(case):
    adjacency, x = case
    a = adjacency.dense()
    mean = a / a.sum(1, keepdim=True).clamp_min(1)
    for outputs in (2, 7):
        layer = SAGEConv(4, outputs).double()
        expected = layer.own(x) + mean @ x @ layer.near.weight.T
        assert_close(layer(x, adjacency), expected)


def test_gin_sums(case):
    adjacency, x = case
    layer = GINConv(nn.Linear(4, 3).double()).double()
    layer.eps.data.fill_(0.3)
    assert_close(layer(x, adjacency), layer.mlp(1.3 * x + adjacency.dense() @ x))


@pytest.mark.parametrize("join", ["concat", "mean"])
def test_attention_is_its_formula(case, join):
    adjacency, x = case
    layer = GATConv(4, 3, heads=2, join=join).double()
    near = (adjacency.dense() + torch.eye(len(x))).bool()
    parts = []
    for head in range(2):
        h = (x @ layer.weight)[:, 3 * head : 3 * head + 3]
        scores = (h @ layer.target_score[head])[:, None] + h @ layer.source_score[head]
        scores = F.leaky_relu(scores, 0.2).masked_fill(~near, -torch.inf)
        parts.append(scores.softmax(1) @ h)
    joined = torch.cat(parts, 1) if join == "concat" else torch.stack(parts).mean(0)
    assert_close(layer(x, adjacency), joined + layer.bias)
    assert check_gradients(lambda x: layer(x, adjacency).sin().sum(), x)


def test_attention_of_a_node_sums_to_one(case):
    adjacency, _ = case
    looped = adjacency.with_loops()
    weights = edge_softmax(looped, torch.randn(looped.edges, 3).double() * 50)
    total = torch.zeros(looped.nodes, 3).double().index_add(0, looped.target, weights)
    assert_close(total, torch.ones_like(total))


def test_chebyshev_filters_are_polynomials_of_the_laplacian():
    edges, x = drawn()
    adjacency = Adjacency.of(edges, len(x))
    shifted = laplacian(adjacency) - torch.eye(len(x))
    shifted[-1, -1] = 0  # a node without edges: the polynomials leave it out
    terms = [torch.eye(len(x)).double(), shifted]
    for _ in range(2):
        terms.append(2 * shifted @ terms[-1] - terms[-2])
    layer = ChebyshevConv(4, 3, terms=4).double()
    expected = sum(t @ x @ m.weight.T for t, m in zip(terms, layer.maps, strict=True))
    assert_close(layer(x, adjacency), expected + layer.maps[0].bias)


def test_gated_steps_are_those_of_a_gru_cell():
    edges, x = drawn()
    adjacency = Adjacency.of(edges, len(x))
    layer = GatedGraphConv(6, steps=2).double()
    h = F.pad(x, (0, 2))
    for _ in range(2):
        heard = adjacency.dense() @ (h @ layer.message.weight.T)
        gates = F.linear(heard, layer.cell.weight_ih, layer.cell.bias_ih).chunk(3, 1)
        past = F.linear(h, layer.cell.weight_hh, layer.cell.bias_hh).chunk(3, 1)
        reset, update = torch.sigmoid(gates[0] + past[0]), torch.sigmoid(gates[1] + past[1])
        h = (1 - update) * torch.tanh(gates[2] + reset * past[2]) + update * h
    assert_close(layer(x, adjacency), h)


def test_nn4g_in_matrix_form_is_the_form_of_nodes():
    edges, x = drawn()
    adjacency = Adjacency.of(edges, len(x))
    states = [torch.randn(len(x), 3).double(), torch.randn(len(x), 5).double()]
    layer = NN4GConv(4, (3, 5), 2).double()
    found = layer(x, states, adjacency)
    for v in range(len(x)):
        expected = layer.own(x[v])
        for near, h in zip(layer.near, states, strict=True):
            expected = expected + near(h[edges[0][edges[1] == v]]).sum(0)
        assert_close(found[v], expected)


def test_a_recurrent_step_is_a_sum_over_neighbours_and_contracts():
    edges, x = drawn()
    adjacency = Adjacency.of(edges, len(x))
    layer = GraphRecurrence(4, 3, contraction=0.7).double()
    layer.state.data.mul_(20)
    h, other = torch.randn(2, len(x), 3).double()
    weights = adjacency.normalised(loops=False).dense()
    expected = torch.zeros_like(h)
    for u, v in edges.T.tolist():
        sent = layer.matrix() @ h[u] + layer.target(x[v]) + layer.source(x[u])
        expected[v] += weights[v, u] * torch.tanh(sent)
    assert_close(layer(h, x, adjacency), expected)
    moved = (layer(h, x, adjacency) - layer(other, x, adjacency)).norm()
    assert moved <= 0.7 * (h - other).norm()


def test_a_spectral_filter_of_ones_changes_nothing_and_one_of_eigenvalues_is_the_laplacian():
    edges, x = drawn()
    adjacency = Adjacency.of(edges, len(x))
    layer = SpectralConv(4, 4, knots=5).double()
    layer.filters.data.copy_(torch.eye(4).expand(5, 4, 4))
    assert_close(layer(x, adjacency), x)
    knots = torch.linspace(0, 2, 5).double()[:, None, None]
    layer.filters.data.copy_(knots * torch.eye(4))
    assert_close(layer(x, adjacency), laplacian(adjacency) @ x)


LAYERS = {
    "gcn": lambda: GCNConv(4, 3),
    "sage": lambda: SAGEConv(4, 3),
    "gat": lambda: GATConv(4, 3, heads=2),
    "gin": lambda: GINConv(nn.Linear(4, 3)),
    "chebyshev": lambda: ChebyshevConv(4, 3, terms=3),
    "gated": lambda: GatedGraphConv(5, steps=2),
    "spectral": lambda: SpectralConv(4, 3),
}


@pytest.mark.parametrize("name", LAYERS)
def test_permuted_nodes_get_permuted_outputs(name):
    edges, x = drawn(seed=3)
    layer = LAYERS[name]().double()
    order = torch.randperm(len(x))
    place = order.argsort()
    found = layer(x, Adjacency.of(edges, len(x)))
    again = layer(x[order], Adjacency.of(place[edges], len(x)))
    assert (again - found[order]).abs().max() < 1e-10


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_sparse_features_give_the_outputs_and_gradients_of_dense_ones(name):
    edges, x = drawn()
    x[torch.rand(x.shape) < 0.6] = 0
    adjacency, layer = Adjacency.of(edges, len(x)), LAYERS[name]().double()
    row, column = x.nonzero().T
    counts = torch.bincount(row, minlength=len(x))
    pointer = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
    sparse = SparseFeatures(pointer, column, x[row, column], 4)
    assert_close(sparse.dense(), x)
    assert_close(sparse[torch.tensor([3, 1])], x[[3, 1]])
    found = []
    for features in (x, sparse):
        layer.zero_grad()
        layer(features, adjacency).sin().sum().backward()
        found.append([layer(features, adjacency), *(p.grad.clone() for p in layer.parameters())])
    for one, other in zip(*found, strict=True):
        assert_close(one, other)


def test_a_mask_of_half_halves_messages_but_not_what_a_node_says_to_itself():
    edges, x = drawn()
    adjacency, layer = Adjacency.of(edges, len(x)), GCNConv(4, 3, bias=False).double()
    half = adjacency.masked(torch.full((adjacency.edges,), 0.5).double())
    a = hat(adjacency.dense())
    own = torch.diag(a.diagonal())
    assert_close(layer(x, half), ((a - own) / 2 + own) @ x @ layer.weight)


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_the_product_with_features_that_never_change_is_found_once(name):
    edges, x = drawn()
    adjacency, layer = Adjacency.of(edges, len(x)), LAYERS[name]().double()
    beside = adjacency.beside(x)
    assert_close(layer(x, beside), layer(x, adjacency))
    mixed = beside.normalised() if name == "gcn" else beside.averaged()
    assert mixed.mixed(x) is mixed.mixed(x)
    assert_close(mixed.mixed(x), mixed.dense() @ x)
    assert mixed.mixed(x.clone()) is None
    assert mixed.masked(torch.ones(mixed.edges)).mixed(x) is None
    assert adjacency.beside(x.clone().requires_grad_()).mixed(x) is None
    other = x + 1  # such as after dropout
    assert_close(layer(other, beside), layer(other, adjacency))


def weights_into(theirs, **pairs):
    with torch.no_grad():
        for name, value in pairs.items():
            found = theirs.get_parameter(name.replace("__", "."))
            found.copy_(value.reshape(found.shape))
    return theirs


def test_layers_equal_those_of_pytorch_geometric(case, pyg):
    adjacency, x = case
    edges = torch.stack([adjacency.source, adjacency.target])
    gcn = GCNConv(4, 3).double()
    theirs = weights_into(pyg.GCNConv(4, 3).double(), lin__weight=gcn.weight.T, bias=gcn.bias)
    assert_close(gcn(x, adjacency), theirs(x, edges), atol=1e-6, rtol=0)
    sage = SAGEConv(4, 3).double()
    theirs = weights_into(
        pyg.SAGEConv(4, 3).double(),
        lin_l__weight=sage.near.weight,
        lin_l__bias=sage.own.bias,
        lin_r__weight=sage.own.weight,
    )
    assert_close(sage(x, adjacency), theirs(x, edges), atol=1e-6, rtol=0)
    gat = GATConv(4, 3, heads=2).double()
    theirs = weights_into(
        pyg.GATConv(4, 3, heads=2).double(),
        lin__weight=gat.weight.T,
        att_src=gat.source_score,
        att_dst=gat.target_score,
        bias=gat.bias,
    )
    assert_close(gat(x, adjacency), theirs(x, edges), atol=1e-6, rtol=0)
    gin = GINConv(nn.Linear(4, 3)).double()
    theirs = pyg.GINConv(gin.mlp).double()  # which draws its weights again
    assert_close(gin(x, adjacency), theirs(x, edges), atol=1e-6, rtol=0)
    gated = GatedGraphConv(6, steps=2).double()
    theirs = pyg.GatedGraphConv(6, 2).double()
    theirs.rnn.load_state_dict(gated.cell.state_dict())
    theirs.weight.data.copy_(gated.message.weight.T.expand(2, 6, 6))
    assert_close(gated(x, adjacency), theirs(x, edges), atol=1e-6, rtol=0)
    if adjacency.symmetric:
        cheb = ChebyshevConv(4, 3, terms=3).double()
        theirs = pyg.ChebConv(4, 3, K=3).double()
        for ours, their in zip(cheb.maps, theirs.lins, strict=True):
            their.weight.data.copy_(ours.weight)
        theirs.bias.data.copy_(cheb.maps[0].bias)
        assert_close(cheb(x, adjacency)[:-1], theirs(x, edges)[:-1], atol=1e-6, rtol=0)


def test_weights_of_edges_count():
    rng = np.random.default_rng(0)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weight = torch.tensor([2.0, 2.0, 0.5, 0.5]).double()
    adjacency = Adjacency.of(edges, 3, weight)
    x = torch.from_numpy(rng.normal(size=(3, 4)))
    layer = GCNConv(4, 2).double()
    assert adjacency.symmetric
    assert_close(layer(x, adjacency), hat(adjacency.dense()) @ x @ layer.weight + layer.bias)


def test_sparse_products_are_exact_under_autocast_which_asks_for_formats_they_lack():
    edges, x = drawn()
    x = x.float()
    adjacency = Adjacency.of(edges, len(x)).normalised()
    counts = torch.full((len(x),), 4).cumsum(0)
    pointer = torch.cat([counts.new_zeros(1), counts])
    sparse = SparseFeatures(pointer, torch.arange(4).repeat(len(x)), x.flatten(), 4)
    weight = torch.randn(4, 3, requires_grad=True)
    mask = torch.full((adjacency.edges,), 0.5, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = sparse @ weight
        found = adjacency.masked(mask) @ (adjacency @ h)
        found.sum().backward()
        small = adjacency @ h.bfloat16()  # of a dense layer before
    a = adjacency.dense(torch.float32)
    assert_close(found, 0.5 * a @ (a @ (x @ weight)))
    assert_close(weight.grad, (0.5 * a @ a @ x).sum(0)[:, None].expand(4, 3))
    assert small.dtype == torch.float32
    assert mask.grad.isfinite().all()


@pytest.mark.gpu
@pytest.mark.parametrize("network", ["gcn", "sage", "gat", "gin"])
def test_graphs_are_learnt_in_bf16_on_a_gpu(network):
    x = csr_array(np.eye(60))
    graph = Graph([(i, (i + k) % 60) for i in range(60) for k in (1, 2)], x)
    training = Training(precision="bf16", device="cuda", watch=False)
    model = LinkPredictor(network=network, epochs=3, random_state=0, training=training).fit(graph)
    assert np.isfinite(model.predict_proba(graph)).all()
