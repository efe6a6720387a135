"""Random Fourier features: a random map whose inner products tend to the Gaussian kernel.

phi(x) = (cos v_1.x, …, cos v_M.x, sin v_1.x, …, sin v_M.x) / sqrt(M) with v_m ~ N(0, I / l^2), the
real form of exp(i v.x) / sqrt(M). Then phi(x).phi(z) is the mean of cos v_m.(x - z), whose
expectation is exp(-|x - z|^2 / (2 l^2)), and |phi(x)| = 1.
Shapes: B batch, D inputs, M frequencies.

Reference: 2007, Rahimi, Recht, Random features for large-scale kernel machines, NeurIPS 20.
"""

import torch
from torch import Tensor, nn

__all__ = ["FourierFeatures", "draw_frequencies", "fourier_features"]


def draw_frequencies(
    inputs: int,
    n_frequencies: int,
    *,
    length_scale: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw v_m ~ N(0, I / length_scale^2), (M, D) in float64, on the generator's device.

    >>> draw_frequencies(3, 5, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([5, 3])
    """
    device = None if generator is None else generator.device
    normal = torch.randn(
        n_frequencies, inputs, dtype=torch.float64, generator=generator, device=device
    )
    return normal / length_scale


def fourier_features(x: Tensor, frequencies: Tensor) -> Tensor:
    """Map rows (B, D) to (B, 2M): cosines first, then sines.

    >>> fourier_features(torch.zeros(1, 2), torch.ones(1, 2))
    tensor([[1., 0.]])
    """
    phase = x @ frequencies.T  # (B, M)
    return torch.cat([phase.cos(), phase.sin()], dim=1) / len(frequencies) ** 0.5


class FourierFeatures(nn.Module):
    """The map as a module with fixed frequencies.

    Parameters
    ----------
    frequencies
        One frequency a row, (M, D); ``draw_frequencies`` makes them.

    Examples
    --------
    >>> FourierFeatures(draw_frequencies(3, 5))(torch.zeros(2, 3, dtype=torch.float64)).shape
    torch.Size([2, 10])
    """

    frequencies: Tensor

    def __init__(self, frequencies: Tensor) -> None:
        super().__init__()
        self.register_buffer("frequencies", frequencies)

    def forward(self, x: Tensor) -> Tensor:  # (B, D)
        """Return cosines and sines, (B, 2M)."""
        return fourier_features(x, self.frequencies)
