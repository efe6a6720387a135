"""Changes of targets: mixed rows and wrong labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.data.augment.augmentation import Augmentation, Generator, Pair, uniform
from castalia.errors import InvalidData, InvalidParameter

__all__ = ["LabelNoise", "Mixup"]


@dataclass(frozen=True)
class Mixup(Augmentation):
    """Replaces rows by points between two rows, and targets by the same mixture.

    x = m x_i + (1 - m) x_j and y = m y_i + (1 - m) y_j with m ~ Beta(alpha, alpha) for each row and
    j a random row. Class codes become distributions over the classes, which
    ``castalia.objectives.CrossEntropy`` takes as targets. The first part is the larger one, m >=
    1/2, so that a row keeps most of itself and its weight.

    Parameters
    ----------
    alpha
        Above 0; small values stay near one of the two rows.
    classes
        Number of classes, needed where targets are class codes.

    References
    ----------
    2018, Zhang, Cisse, Dauphin, Lopez-Paz, mixup: beyond empirical risk minimization, arXiv
    1710.09412.
    """

    alpha: float = 0.2
    classes: int | None = None

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise InvalidParameter(f"Mixup: `alpha` must be above 0; got {self.alpha}.")

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return mixed inputs, (B, …), and mixed targets."""
        alphas = torch.full((len(x), 2), self.alpha, dtype=x.dtype, device=x.device)
        share = torch._sample_dirichlet(alphas, generator=generator).amax(dim=1)  # (B,)
        other = uniform(x, 0, 1, generator).argsort()
        mixed = _mix(x, other, share)
        return mixed, None if y is None else _mix(self._soft(y, x.dtype), other, share)

    def _soft(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        if y.is_floating_point():
            return y
        if self.classes is None:
            raise InvalidParameter(
                "Mixup: `classes` must be the number of classes where targets are class codes; got "
                f"None with {y.dtype} targets. Set Mixup(classes=…)."
            )
        _check_codes("Mixup", y, self.classes)
        return F.one_hot(y.long(), self.classes).movedim(-1, 1).to(dtype)  # (B, K, …)


def _check_codes(owner: str, y: Tensor, classes: int) -> None:
    if y.device.type != "cpu":
        return  # looking would make the host wait for the device in every step
    if y.numel() and not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise InvalidData(
            f"{owner}: class codes must be from 0 to {classes - 1}; got {int(y.min())} to "
            f"{int(y.max())}. Set `classes` to the number of classes."
        )


def _mix(values: Tensor, other: Tensor, share: Tensor) -> Tensor:
    share = share.view(-1, *[1] * (values.ndim - 1))
    return torch.lerp(values[other], values, share.to(values.dtype))


@dataclass(frozen=True)
class LabelNoise(Augmentation):
    """Replaces some class codes by another class, each of the others equally likely.

    Parameters
    ----------
    share
        Probability for a label to be wrong.
    classes
        Number of classes, at least 2.
    """

    share: float
    classes: int

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidParameter(f"LabelNoise: `share` must be from 0 to 1; got {self.share}.")
        if self.classes < 2:
            raise InvalidParameter(f"LabelNoise: `classes` must be at least 2; got {self.classes}.")

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return the same inputs and class codes of which some are wrong."""
        if y is None or y.is_floating_point():
            found = "None" if y is None else str(y.dtype)
            raise InvalidData(f"LabelNoise: targets must be class codes (B,); got {found}.")
        _check_codes("LabelNoise", y, self.classes)
        steps = torch.randint(1, self.classes, y.shape, generator=generator, device=y.device)
        wrong = torch.rand(y.shape, generator=generator, device=y.device) < self.share
        return x, torch.where(wrong, (y + steps) % self.classes, y)
