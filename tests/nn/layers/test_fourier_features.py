"""Random Fourier features as a plain map."""

import torch
from torch.testing import assert_close

from castalia.nn import FourierFeatures, draw_frequencies, fourier_features


def seeded():
    return torch.Generator().manual_seed(0)


def test_every_feature_vector_has_length_one():
    phi = FourierFeatures(draw_frequencies(3, 7, generator=seeded()))(torch.randn(5, 3).double())
    assert_close(phi.norm(dim=1), torch.ones(5, dtype=torch.float64))


def test_inner_products_are_the_real_part_of_the_complex_waves():
    v = draw_frequencies(2, 50, generator=seeded())
    x, z = torch.randn(4, 2, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
    waves = [torch.exp(1j * (rows @ v.T)) for rows in (x, z)]
    inner = fourier_features(x, v) @ fourier_features(z, v).T
    assert_close(inner, (waves[0] @ waves[1].conj().T).real / 50)


def test_inner_products_tend_to_the_gaussian_kernel():
    v = draw_frequencies(2, 200_000, length_scale=0.7, generator=seeded())
    x = torch.tensor([[0.0, 0.0], [0.3, -0.4], [1.0, 1.0]], dtype=torch.float64)
    phi = fourier_features(x, v)
    kernel = torch.exp(-torch.cdist(x, x).square() / (2 * 0.7**2))
    assert_close(phi @ phi.T, kernel, atol=0.01, rtol=0)


def test_the_same_generator_draws_the_same_frequencies_and_the_global_one_is_left_alone():
    before = torch.get_rng_state()
    assert_close(
        draw_frequencies(2, 3, generator=seeded()), draw_frequencies(2, 3, generator=seeded())
    )
    assert torch.equal(before, torch.get_rng_state())
