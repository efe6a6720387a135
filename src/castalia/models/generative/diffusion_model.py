"""Denoising diffusion of tables and small images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import Interval, OneOf
from castalia.models.generative.implicit_methods import Implicit, one_hot_rows
from castalia.models.generative.row_estimator import RowEstimator, row_width
from castalia.nets.generative import DenseDenoiser, ImageDenoiser, OneHotRows
from castalia.objectives import VelocityPrediction, ddim_step, signal_shares
from castalia.protocols import Spec
from castalia.train import Training
from castalia.utils.row_noise import RowNoise

__all__ = ["DiffusionModel"]


class DiffusionNetwork(nn.Module):
    """A denoiser, and how rows become columns around 0.

    Parameters
    ----------
    denoiser
        v(x_t, t, y).
    rows
        How rows of a table become columns; None: grey values of images.
    columns
        How many there are.

    Attributes
    ----------
    low, high
        Smallest and largest value of each column seen in training; draws stay between them.
    """

    def __init__(
        self, denoiser: DenseDenoiser | ImageDenoiser, rows: OneHotRows | None, columns: int
    ) -> None:
        super().__init__()
        self.denoiser, self.rows, self.classes = denoiser, rows, denoiser.classes
        self.low: Tensor
        self.high: Tensor
        self.register_buffer("low", torch.full((columns,), torch.inf))
        self.register_buffer("high", torch.full((columns,), -torch.inf))

    def expand(self, x: Tensor) -> Tensor:
        """Return columns: images from -1 to 1."""
        wide = 2 * x.flatten(1) - 1 if self.rows is None else self.rows.expand(x)
        if self.training:
            torch.minimum(self.low, wide.amin(dim=0), out=self.low)
            torch.maximum(self.high, wide.amax(dim=0), out=self.high)
        return wide

    def codes(self, wide: Tensor) -> Tensor:
        """Return columns as encoded rows."""
        return ((wide + 1) / 2).clamp(0, 1) if self.rows is None else self.rows.codes(wide)

    def forward(self, x: Tensor, t: Tensor | None = None, y: Tensor | None = None) -> Tensor:
        """Return v of noised columns at steps t; without t, that of rows as they are."""
        if t is None:
            x, t = self.expand(x), torch.zeros(len(x), dtype=torch.long, device=x.device)
        return self.denoiser(x, t, y)


@dataclass(kw_only=True, eq=False, repr=False)
class DiffusionModel(Implicit, RowEstimator):
    """Draws rows of a table, or small images, by removing noise step by step.

    Rows are mixed with noise, x_t = sqrt(a_t) x + sqrt(1 - a_t) eps, and a network learns to tell
    them apart by v = sqrt(a_t) eps - sqrt(1 - a_t) x, E ||v - v(x_t, t)||^2: a denoising
    autoencoder at every level of noise. Sampling starts from noise and takes it out again (DDIM).
    Steadier to train than a GAN; drawing takes ``sample_steps`` passes.

    Parameters
    ----------
    steps
        Levels of noise T in training.
    sample_steps
        Passes for a draw, at most ``steps``; more are finer.
    width
        For images: channels of the U-Net's first stage; 0 takes dense layers.
    hidden
        For tables: width of the dense blocks.
    depth
        For tables: how many there are.
    conditional
        Whether y is given, and rows of a class are drawn.
    guidance
        Of a conditional model: how far draws are pushed from those without a class, (1 + w) v(y)
        - w v(); larger values give more typical and less varied rows.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``denoiser``.
    classes_ : ndarray
        Classes of a conditional model.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images.

    Notes
    -----
    Where ``training`` is None the weights are averaged (EMA). Categories are drawn as columns of 0
    and 1, of which the largest counts. ``score`` is minus the energy distance between samples and
    rows.

    References
    ----------
    2020, Ho, Jain, Abbeel, Denoising diffusion probabilistic models, arXiv 2006.11239. 2021, Song,
    Meng, Ermon, Denoising diffusion implicit models, arXiv 2010.02502. 2022, Salimans, Ho,
    Progressive distillation, arXiv 2202.00512. 2022, Ho, Salimans, Classifier-free diffusion
    guidance, arXiv 2207.12598.

    See Also
    --------
    DenoisingAutoencoder : one level of noise.
    GenerativeAdversarialNetwork : draws in one pass.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(3, 1, size=(200, 2))
    >>> model = DiffusionModel(hidden=16, epochs=2, sample_steps=5, random_state=0).fit(X)
    >>> model.sample(5).shape
    (5, 2)
    """

    usual_training: ClassVar[Training] = Training(average=("ema", 0.995))

    steps: Annotated[int, Interval(2, whole=True)] = 1000
    sample_steps: Annotated[int, Interval(1, whole=True)] = 50
    width: Annotated[int, Interval(0, whole=True)] = 32
    hidden: Annotated[int, Interval(2, whole=True)] = 128
    depth: Annotated[int, Interval(1, whole=True)] = 3
    conditional: Annotated[bool, OneOf(True, False)] = False
    guidance: Annotated[float, Interval(0)] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        rows, size = one_hot_rows(spec), tuple(spec.extra.get("size") or ())
        classes = spec.outputs
        if size and self.width:
            net: DenseDenoiser | ImageDenoiser = ImageDenoiser(
                spec.inputs, size, width=self.width, classes=classes
            )
        else:
            inputs = row_width(spec) if rows is None else rows.width
            net = DenseDenoiser(inputs, hidden=self.hidden, depth=self.depth, classes=classes)
        return DiffusionNetwork(net, rows, row_width(spec) if rows is None else rows.width)

    def _objective(self, spec: Spec) -> VelocityPrediction:
        return VelocityPrediction(self.steps)

    def _draw(self, noise: RowNoise, y: Tensor | None) -> Tensor:
        for x in self._stages(noise, y):
            last = x
        return self.module_.codes(last)  # type: ignore[operator]

    def _stages(self, noise: RowNoise, y: Tensor | None) -> Iterator[Tensor]:
        """Yield noise, and what is left of it after each step."""
        net: Any = self.module_
        parameter = next(net.parameters())
        x = noise.normal(len(net.low)).to(parameter)
        yield x
        for step, now, then in self._levels(parameter):
            t = torch.full((len(x),), step, device=x.device)
            x = ddim_step(x, self._velocity(x, t, y), now, then, net.low, net.high)
            yield x

    @torch.inference_mode()
    def stages(
        self, n: int = 1, y: Any = None, *, stages: int = 6, random_state: int = 0
    ) -> list[Any]:
        """Return n rows or images as they come out of noise, at so many moments of their draw.

        Parameters
        ----------
        n
            How many, at most 256.
        y
            For conditional models: a class for all, or one for each.
        stages
            How many moments, evenly spaced, from the noise to the draw.
        random_state
            Seed of the noise.
        """
        check_is_fitted(self, "module_")
        labels = self._labels(n, y)
        seen = list(self._stages(next(RowNoise.blocks(n, random_state)), labels))
        places = np.linspace(0, len(seen) - 1, stages).round().astype(int)
        return [self._values(self.module_.codes(seen[i])) for i in places]  # type: ignore[operator]

    def _levels(self, like: Tensor) -> list[tuple[int, Tensor, Tensor]]:
        """Return the steps of a draw: t, and the shares of signal before and after."""
        shares = signal_shares(self.steps).to(like)
        count = min(self.sample_steps, self.steps)
        places = torch.linspace(self.steps - 1, 0, count).round().long().tolist()
        after = [shares[t] for t in places[1:]] + [torch.ones_like(shares[0])]
        return [(t, shares[t], then) for t, then in zip(places, after, strict=True)]

    def _velocity(self, x: Tensor, t: Tensor, y: Tensor | None) -> Tensor:
        """Return the predicted v, guided towards a class."""
        net: Any = self.module_
        found = net(x, t, y)
        if y is None or not self.guidance:
            return found
        return (1 + self.guidance) * found - self.guidance * net(x, t, None)
