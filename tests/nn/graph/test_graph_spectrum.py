"""Graphs as matrices: walks, Laplacians, Fourier transforms."""

from itertools import pairwise, product

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidData, InvalidParameter
from castalia.nn.graph import Adjacency, fourier_basis, graph_fourier, laplacian, walk_counts


def ring(n):
    here = torch.arange(n)
    edges = torch.stack([here, (here + 1) % n])
    return Adjacency.of(torch.cat([edges, edges.flip(0)], dim=1), n)


def drawn(n=7):
    a = (torch.rand(n, n, generator=torch.Generator().manual_seed(1)) < 0.5).triu(1).double()
    return a + a.T


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_powers_of_the_matrix_count_walks(length):
    a = drawn(5)
    counted = torch.zeros(5, 5)
    for walk in product(range(5), repeat=length + 1):
        counted[walk[0], walk[-1]] += all(a[u, v] for u, v in pairwise(walk))
    assert_close(walk_counts(a, length), counted.double())
    with pytest.raises(InvalidParameter, match="`length` must be at least 0; got -1"):
        walk_counts(a, -1)


def test_eigenvalues_of_the_laplacian_lie_in_0_to_2_and_the_smallest_is_0():
    values = fourier_basis(drawn()).values
    assert abs(values[0]) < 1e-10
    assert values[-1] <= 2 + 1e-10
    even = fourier_basis(ring(6)).values  # two sides: the largest is 2
    assert_close(even[-1], torch.tensor(2.0).double())


def test_a_laplacian_needs_both_directions():
    with pytest.raises(InvalidData, match="must be undirected, its matrix symmetric"):
        laplacian(torch.tensor([[0, 1], [0, 0]]))


def test_the_transform_keeps_lengths_and_can_be_undone():
    a, x = drawn(), torch.randn(7, 3).double()
    basis = fourier_basis(a)
    assert_close(graph_fourier(a, x), basis.transform(x))
    assert_close(basis.transform(x).norm(), x.norm())
    assert_close(basis.inverse(basis.transform(x)), x)


def test_convolution_over_a_ring_is_circular_convolution():
    n = 7
    basis, x = fourier_basis(ring(n)), torch.randn(n, 2).double()
    taps = torch.tensor([0.5, 0.25, 0, 0, 0, 0, 0.25]).double()
    circular = torch.fft.ifft(torch.fft.fft(taps)[:, None] * torch.fft.fft(x, dim=0), dim=0).real
    cosines = (1 - basis.values).clamp(-1, 1)  # eigenvalues 1 - cos(2 pi k / n)
    assert_close(basis.inverse((0.5 + 0.5 * cosines)[:, None] * basis.transform(x)), circular)


def test_convolution_is_a_product_of_coefficients():
    basis, x, f = fourier_basis(drawn()), torch.randn(7, 2).double(), torch.randn(7).double()
    u = basis.vectors
    assert_close(basis.convolve(f, x), u @ torch.diag(u.T @ f) @ u.T @ x)


def test_graphs_that_are_too_large_are_refused_with_a_remedy():
    large = Adjacency(torch.zeros(5002, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    with pytest.raises(InvalidData, match="at most 5,000 nodes.*got 5,001.*chebyshev"):
        fourier_basis(large)
