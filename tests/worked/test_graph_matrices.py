"""The notes' graph of five nodes, number by number."""

import numpy as np
import torch
from torch.testing import assert_close

from castalia.data import Graph
from castalia.nn.graph import Adjacency, NN4GConv, fourier_basis, laplacian, walk_counts

EDGES = [(0, 1), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (3, 4)]
MATRIX = [[0, 1, 0, 0, 1], [1, 0, 1, 1, 1], [0, 1, 0, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 1, 0]]
SQUARE = [[2, 1, 1, 2, 1], [1, 4, 1, 2, 2], [1, 1, 2, 1, 2], [2, 2, 1, 3, 1], [1, 2, 2, 1, 3]]


def test_the_adjacency_matrix_of_five_nodes():
    graph = Graph(EDGES)
    assert graph.scipy().toarray().tolist() == MATRIX
    assert len(graph.edges) == 7
    assert graph.degrees.tolist() == [2, 4, 2, 3, 3]
    assert graph.adjacency.symmetric
    assert graph.adjacency.edges == 14
    directed = Graph(EDGES, directed=True, weight=np.arange(1.0, 8.0)).scipy().toarray()
    assert directed[4, 0] == 2
    assert directed[0, 4] == 0


def test_its_square_counts_walks_of_two_steps():
    assert walk_counts(Graph(EDGES).adjacency, 2).int().tolist() == SQUARE


def test_the_eigenvalues_of_its_laplacians():
    adjacency = Graph(EDGES).adjacency
    normalised = torch.tensor([0, 0.725708, 1.166667, 1.5, 1.607625]).double()
    assert_close(fourier_basis(adjacency).values, normalised, atol=1e-6, rtol=0)
    found = torch.linalg.eigvalsh(laplacian(adjacency, normalised=False))
    assert_close(found, torch.tensor([0, 1.585786, 3, 4.414214, 5]).double(), atol=1e-6, rtol=0)


def test_nn4g_with_nodes_as_columns_is_w_h_a():
    adjacency: Adjacency = Graph(EDGES).adjacency
    x, h = torch.randn(5, 2).double(), torch.randn(5, 3).double()
    layer = NN4GConv(2, (3,), 4).double()
    columns = layer.own.weight @ x.T + layer.own.bias[:, None]
    columns = columns + layer.near[0].weight @ h.T @ adjacency.dense()  # W H A; W A H has no shape
    assert_close(layer(x, [h], adjacency), columns.T)
