"""Distributions of a whole row given a decoder's outputs: numbers, yes or no, categories, levels.

log p(x | z) = sum_j log p_j(x_j | decode(z)).  Shapes: B batch, D numbers of a row, P outputs.
References: 2014, Kingma, Welling, Auto-encoding variational Bayes, arXiv 1312.6114. 2017, Salimans,
Karpathy, Chen, Kingma, PixelCNN++, arXiv 1701.05517 (discretised logistic).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.errors import InvalidData
from castalia.utils.row_noise import RowNoise

__all__ = ["LevelLikelihood", "LogisticLikelihood", "MixedLikelihood", "RowLikelihood"]

LEVELS = 256  # of a byte
NARROWEST_NORMAL = -6.0  # log-deviation at which a constant column's density stops rising
NARROWEST = -7.0  # log-scale below which a logistic is narrower than a level


class RowLikelihood:
    """p(x | outputs) of rows (B, D).

    Attributes
    ----------
    outputs
        Number P of outputs that a decoder gives for a row.
    spreads
        How many of them, the last ones, are spreads that do not depend on the code.
    unit
        Whether numbers must lie between 0 and 1.
    """

    outputs: int
    spreads = 0
    unit = False

    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return -log p(x | outputs) of each row, (B,)."""
        raise NotImplementedError

    def mode(self, outputs: Tensor) -> Tensor:
        """Return the likeliest row, or the mean of yes or no, (B, D)."""
        raise NotImplementedError

    def sample(self, outputs: Tensor, noise: RowNoise) -> Tensor:
        """Draw rows, (B, D)."""
        raise NotImplementedError

    def check(self, x: Tensor, owner: str) -> None:
        """Refuse rows that have probability 0 whatever the outputs are."""
        if self.unit and not bool(((x >= 0) & (x <= 1)).all()):
            wrong = x[(x < 0) | (x > 1)][0].item()
            raise InvalidData(
                f"{owner}: values must lie between 0 and 1 for this likelihood; got {wrong:g}. "
                "Divide by the largest value, or use likelihood='gaussian'."
            )


class MixedLikelihood(RowLikelihood):
    """Normal numbers, then yes or no, then categories: the columns of a table, or pixels.

    Outputs are the means of the numbers, the log-odds of the flags, a logit for each code of each
    category, and, with ``spread``, the log-deviations of the numbers. Without ``spread`` these have
    deviation 1 and the constant D/2 log 2 pi is left out, so the loss of a row of numbers is
    1/2 ||x_hat - x||^2.

    Parameters
    ----------
    numbers, flags
        How many numbers, and how many columns of 0 and 1, a row has.
    categories
        Codes of each trailing categorical column.
    missing
        Of each flag that says that a number is missing, which number; it does not count then.
    spread
        Whether deviations are learnt.
    unit
        Whether flags may be any fraction between 0 and 1 and are grey values of images.

    Examples
    --------
    >>> likelihood = MixedLikelihood(numbers=2)
    >>> likelihood.rows(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 0.0]]))
    tensor([2.5000])
    """

    def __init__(
        self,
        numbers: int = 0,
        flags: int = 0,
        categories: Sequence[int] = (),
        *,
        missing: Sequence[int] = (),
        spread: bool = False,
        unit: bool = False,
    ) -> None:
        self.numbers, self.flags, self.categories = numbers, flags, tuple(categories)
        self.missing, self.unit = torch.tensor(missing, dtype=torch.long), unit
        self.spreads = numbers if spread else 0
        self.outputs = numbers + flags + sum(categories) + self.spreads

    def parts(self, outputs: Tensor) -> tuple[Tensor, Tensor, list[Tensor], Tensor]:
        """Return means, log-odds of flags, logits of each category, and log-deviations."""
        sizes = [self.numbers, self.flags, *self.categories, self.spreads]
        mean, odds, *logits, spread = _parted(outputs, sizes)
        return mean, odds, logits, spread

    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return -log p(x | outputs) of each row, (B,)."""
        mean, odds, logits, spread = self.parts(outputs)
        number, flag, codes = _parted(x, [self.numbers, self.flags, len(self.categories)])
        found: list[Tensor] = []
        if self.numbers:
            loss = (number - mean).square() / 2  # (B, numbers)
            if self.spreads:
                spread = spread.clamp_min(NARROWEST_NORMAL)
                loss = loss * (-2 * spread).exp() + spread + 0.5 * math.log(2 * math.pi)
            if len(self.missing):
                self.missing = self.missing.to(x.device)
                loss = loss * (1 - torch.zeros_like(loss).index_add(1, self.missing, flag))
            found.append(loss.sum(dim=1))
        if self.flags:
            found.append(F.binary_cross_entropy_with_logits(odds, flag, reduction="none").sum(1))
        for i, each in enumerate(logits):
            found.append(F.cross_entropy(each, codes[:, i].long(), reduction="none"))
        return reduce(torch.add, found)

    def mode(self, outputs: Tensor) -> Tensor:
        """Return means of numbers, probabilities of yes, and the likeliest codes."""
        mean, odds, logits, _ = self.parts(outputs)
        codes = [each.argmax(dim=1, keepdim=True).to(mean.dtype) for each in logits]
        return torch.cat([mean, odds.sigmoid(), *codes], dim=1)

    def sample(self, outputs: Tensor, noise: RowNoise) -> Tensor:
        """Draw numbers, yes or no, and codes; images keep the probabilities as grey values."""
        mean, odds, logits, spread = self.parts(outputs)
        number = noise.normal(self.numbers).to(mean)
        if self.spreads:
            number = number * spread.clamp_min(NARROWEST_NORMAL).exp()
        flag = (noise.uniform(self.flags).to(odds) < odds.sigmoid()).to(odds)
        codes = [pick(each, noise.uniform(1).to(each)).to(mean.dtype) for each in logits]
        return torch.cat([mean + number, flag, *codes], dim=1)


def _parted(x: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """Cut columns into parts; one that is all of them is x itself, whose gradient needs no copy."""
    if x.shape[1] in sizes:
        return [x if size else x[:, :0] for size in sizes]
    return list(x.split(sizes, dim=1))


class LogisticLikelihood(RowLikelihood):
    """Levels of a byte, k / 255, each the mass of a logistic distribution between half-levels.

    P(x) = s((x + h - m) / e^l) - s((x - h - m) / e^l), h = 1/510, the outermost levels taking all
    that lies beyond. Outputs are the means m; the last D are the log-scales l.

    Parameters
    ----------
    numbers
        Number D of values of a row.
    """

    unit = True

    def __init__(self, numbers: int) -> None:
        self.numbers, self.spreads, self.outputs = numbers, numbers, 2 * numbers

    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return -log P(x | outputs) of each row, (B,)."""
        mean, scale = outputs.chunk(2, dim=1)
        narrow, half = (-scale.clamp_min(NARROWEST)).exp(), 0.5 / (LEVELS - 1)
        x = (x * (LEVELS - 1)).round() / (LEVELS - 1)
        upper, lower = narrow * (x + half - mean), narrow * (x - half - mean)
        middle = (upper.sigmoid() - lower.sigmoid()).clamp_min(1e-12).log()
        found = torch.where(x >= 1, F.logsigmoid(-lower), middle)
        return -torch.where(x <= 0, F.logsigmoid(upper), found).sum(dim=1)

    def mode(self, outputs: Tensor) -> Tensor:
        """Return the means."""
        return outputs.chunk(2, dim=1)[0].clamp(0, 1)

    def sample(self, outputs: Tensor, noise: RowNoise) -> Tensor:
        """Draw levels."""
        mean, scale = outputs.chunk(2, dim=1)
        u = noise.uniform(self.numbers).to(mean).clamp(1e-6, 1 - 1e-6)
        drawn = mean + scale.clamp_min(NARROWEST).exp() * (u.log() - (-u).log1p())
        return (drawn.clamp(0, 1) * (LEVELS - 1)).round() / (LEVELS - 1)


class LevelLikelihood(RowLikelihood):
    """Each value one of some levels, k / (levels - 1), with a probability of its own for each.

    Parameters
    ----------
    numbers
        Number D of values of a row.
    levels
        How many there are.
    """

    unit = True

    def __init__(self, numbers: int, levels: int = LEVELS) -> None:
        self.numbers, self.levels, self.outputs = numbers, levels, numbers * levels

    def _logits(self, outputs: Tensor) -> Tensor:
        return outputs.unflatten(1, (self.levels, self.numbers))  # (B, levels, D)

    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return -log P(x | outputs) of each row, (B,)."""
        codes = (x * (self.levels - 1)).round().long()
        return F.cross_entropy(self._logits(outputs), codes, reduction="none").sum(dim=1)

    def mode(self, outputs: Tensor) -> Tensor:
        """Return the likeliest levels."""
        return self._logits(outputs).argmax(dim=1).to(outputs.dtype) / (self.levels - 1)

    def sample(self, outputs: Tensor, noise: RowNoise) -> Tensor:
        """Draw levels."""
        logits = self._logits(outputs)
        u = noise.uniform(self.numbers).to(logits)[:, None]  # (B, 1, D)
        codes = (u > logits.softmax(dim=1).cumsum(dim=1)).sum(dim=1).clamp_max(self.levels - 1)
        return codes.to(outputs.dtype) / (self.levels - 1)


def pick(logits: Tensor, u: Tensor) -> Tensor:
    """Return the code at which each row's cumulative probability passes u, (B, 1)."""
    passed = u > logits.softmax(dim=1).cumsum(dim=1)
    return passed.sum(dim=1, keepdim=True).clamp_max(logits.shape[1] - 1)
