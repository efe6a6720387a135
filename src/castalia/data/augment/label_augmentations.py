"""Changes of targets: mixed rows, exchanged parts and wrong labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.data.augment.augmentation import Augmentation, Generator, Pair, check_images, uniform
from castalia.errors import InvalidData, InvalidParameter

__all__ = ["CutMix", "LabelNoise", "Mixup"]


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
        share = _beta(x, self.alpha, generator).amax(dim=1)  # (B,)
        other = uniform(x, 0, 1, generator).argsort()
        mixed = _mix(x, other, share)
        return mixed, None if y is None else _mix(_soft(self, y, x.dtype), other, share)


@dataclass(frozen=True)
class CutMix(Augmentation):
    """Replaces a rectangle of each image by that of another one, and mixes targets by area.

    y = m y_i + (1 - m) y_j, where m is the share of the image that is its own. Drawn from
    Beta(alpha, alpha), at least 1/2, so that an image keeps most of itself and its weight.

    Parameters
    ----------
    alpha
        Above 0; small values exchange nearly nothing or nearly a half.
    classes
        Number of classes, needed where targets are class codes.

    References
    ----------
    2019, Yun et al., CutMix: regularization strategy to train strong classifiers with localizable
    features, arXiv 1905.04899.

    Examples
    --------
    >>> x, y = CutMix(classes=3)(torch.rand(6, 3, 8, 8), torch.tensor([0, 1, 2, 0, 1, 2]))
    >>> x.shape, bool((y.sum(dim=1) - 1).abs().max() < 1e-6)
    (torch.Size([6, 3, 8, 8]), True)
    """

    alpha: float = 1.0
    classes: int | None = None

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise InvalidParameter(f"CutMix: `alpha` must be above 0; got {self.alpha}.")

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return images, (B, C, H, W), with parts of others, and mixed targets."""
        check_images(self, x)
        side = _beta(x, self.alpha, generator).amin(dim=1).sqrt()  # (B,)
        other = uniform(x, 0, 1, generator).argsort()
        down = _span(x, x.shape[2], side, generator)[:, None, :, None]
        given = down & _span(x, x.shape[3], side, generator)[:, None, None, :]  # (B, 1, H, W)
        share = 1 - given.to(x.dtype).mean(dim=(1, 2, 3))
        mixed = torch.where(given, x[other], x)
        return mixed, None if y is None else _mix(_soft(self, y, x.dtype), other, share)


def _beta(x: Tensor, alpha: float, generator: Generator) -> Tensor:
    """Draw a share from Beta(alpha, alpha) and its rest for each row of x, (B, 2)."""
    alphas = torch.full((len(x), 2), alpha, dtype=x.dtype, device=x.device)
    return torch._sample_dirichlet(alphas, generator=generator)


def _span(x: Tensor, size: int, share: Tensor, generator: Generator) -> Tensor:
    """Mark a share of neighbouring lines of each image, around any of them, (B, size)."""
    length = share * size
    first = (uniform(x, 0, 1, generator) * size - length / 2).round()[:, None]
    lines = torch.arange(size, device=x.device)
    return (lines >= first) & (lines < first + length.round()[:, None])


def _soft(owner: Mixup | CutMix, y: Tensor, dtype: torch.dtype) -> Tensor:
    """Return targets as distributions over the classes, (B, K, …)."""
    if y.is_floating_point():
        return y
    name = type(owner).__name__
    if owner.classes is None:
        raise InvalidParameter(
            f"{name}: `classes` must be the number of classes where targets are class codes; got "
            f"None with {y.dtype} targets. Set {name}(classes=…)."
        )
    _check_codes(name, y, owner.classes)
    return F.one_hot(y.long(), owner.classes).movedim(-1, 1).to(dtype)


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
