"""Autoencoders: minimise -log p(x | decode(encode(x))), on clean or corrupted rows.

1/2 ||x_hat - x||^2 for numbers, cross-entropies for flags and categories.
References: 2010, Vincent, Larochelle, Lajoie, Bengio, Manzagol, Stacked denoising autoencoders,
JMLR 11. 2011, Ng, Sparse autoencoder, CS294A notes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from castalia.objectives.objective import BatchPenalty, Objective, weighted_mean
from castalia.objectives.row_likelihoods import RowLikelihood
from castalia.protocols import Batch

__all__ = ["CodeSparsity", "Reconstruction", "corrupted"]


def corrupted(x: Tensor, noise: float, corruption: str, numbers: int) -> Tensor:
    """Return rows with noise on their first numbers.

    ``"gaussian"`` adds noise of that deviation, ``"mask"`` sets that share of all values to 0, in
    categories the code of unseen values.
    """
    if corruption == "mask":
        return x * (torch.rand_like(x) >= noise)
    flat = x.flatten(1)
    drawn = noise * torch.randn_like(flat[:, :numbers])
    return torch.cat([flat[:, :numbers] + drawn, flat[:, numbers:]], dim=1).view_as(x)


class Reconstruction(Objective):
    """-log p(x | net(x)), a mean over rows; of corrupted rows with ``noise``.

    Parameters
    ----------
    likelihood
        Distribution of a row given the network's outputs.
    noise, corruption
        How rows are corrupted before they are encoded: ``corrupted`` says how. 0: not at all.

    Examples
    --------
    >>> from castalia.objectives import MixedLikelihood
    >>> batch = Batch(torch.tensor([[3.0, 4.0]]))
    >>> Reconstruction(MixedLikelihood(2)).terms(lambda x: 0 * x, batch, "train")["loss"]
    tensor(12.5000)
    """

    def __init__(
        self, likelihood: RowLikelihood, *, noise: float = 0.0, corruption: str = "gaussian"
    ) -> None:
        self.likelihood, self.noise, self.corruption = likelihood, noise, corruption

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss."""
        x = batch.x
        if self.noise:
            numbers = getattr(self.likelihood, "numbers", 0) or x[0].numel()
            x = corrupted(x, self.noise, self.corruption, numbers)
        losses = self.likelihood.rows(net(x), batch.x.flatten(1))
        return {"loss": weighted_mean(losses, batch.weight)}


class CodeSparsity(BatchPenalty):
    """Alpha sum_j KL(rho || rho_j) of a code between 0 and 1, rho_j the mean of unit j.

    Parameters
    ----------
    alpha
        Strength.
    target
        Mean activation rho that every unit is drawn to.

    Notes
    -----
    The mean is that of the batch, so micro-batches give a slightly other penalty than whole ones.
    """

    name = "sparsity"

    def __init__(self, alpha: float, target: float = 0.05) -> None:
        self.alpha, self.target = alpha, target

    def rows(self, net: nn.Module, batch: Batch, seen: None) -> Tensor:
        """Return the penalty, the same for every row of the batch."""
        code = net.encode(batch.x)  # type: ignore[operator]
        weight = torch.ones_like(code[:, 0]) if batch.weight is None else batch.weight
        mean = (code * weight[:, None]).sum(dim=0) / weight.sum()
        mean, rho = mean.clamp(1e-6, 1 - 1e-6), self.target
        each = rho * (rho / mean).log() + (1 - rho) * ((1 - rho) / (1 - mean)).log()
        return (self.alpha * each.sum()).expand(len(code))
