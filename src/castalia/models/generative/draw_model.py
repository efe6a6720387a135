"""DRAW: images painted step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from castalia.base import Interval
from castalia.errors import InvalidData
from castalia.models.generative.anomaly_methods import Anomalies, ScoredCodec
from castalia.models.generative.code_methods import Codes
from castalia.models.generative.row_estimator import RowEstimator, row_likelihood
from castalia.models.generative.sample_methods import Samples
from castalia.nets.generative import DRAWNetwork
from castalia.objectives import RowLikelihood, SequentialELBO, log_normal
from castalia.protocols import Spec
from castalia.train import Training
from castalia.utils.row_noise import BLOCK, RowNoise
from castalia.utils.seeds import generator

__all__ = ["DRAW"]

STREAM = 2**22  # numbers the seeds of estimates apart from those of samples


class ImageCodec(ScoredCodec):
    """No targets; refuses tables."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return zeros."""
        if adapter.tabular(X):
            raise InvalidData(
                "DRAW: X must hold images, an array (n, H, W); got a table. Flat images become "
                "images by X.reshape(-1, height, width)."
            )
        return super().check(est, adapter, X, y)


@dataclass(kw_only=True, eq=False, repr=False)
class DRAW(Samples, Anomalies, Codes, RowEstimator):
    """Recurrent variational autoencoder that paints images through an attention window.

    At each of T steps it reads a patch of the image and of what is still wrong, draws a code, and
    writes a patch onto a canvas; where to read and write is learnt. The bound
    E log p(x | canvas) - sum_t KL(q(z_t) || N(0, I)) is maximised.

    Parameters
    ----------
    code
        Width of the code of a step.
    steps
        Number T of steps.
    hidden
        Units of the two LSTM cells.
    window
        Side of the reading and writing windows, in filters.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.generative.DRAWNetwork``.
    code_ : int
        Width of the codes of all steps together.
    threshold_ : float
        Score below which an image is an anomaly.
    history_ : list of dict
        Loss, ``reconstruction`` and ``kl`` of every epoch, in nats an image.

    Shapes
    ------
    X: images (n, H, W) or (n, H, W, C), bytes or values between 0 and 1.  Codes: (n, T code).

    Notes
    -----
    Grey values are taken as probabilities of white. A step costs two LSTM cells and four products
    with the filters.

    References
    ----------
    2015, Gregor, Danihelka, Graves, Rezende, Wierstra, DRAW: a recurrent neural network for image
    generation, arXiv 1502.04623.

    See Also
    --------
    VariationalAutoencoder : one step, no window.

    Examples
    --------
    >>> X = np.eye(8)[None].repeat(20, axis=0)
    >>> model = DRAW(code=2, steps=3, hidden=16, window=3, epochs=2, random_state=0).fit(X)
    >>> model.sample(2).shape, model.attention(X[:1]).shape
    ((2, 8, 8), (1, 3, 4))
    """

    codec: ClassVar[Any] = ImageCodec()
    usual_training: ClassVar[Training] = Training(patience=20, clip=10.0)
    grey: ClassVar[bool] = True

    code: Annotated[int, Interval(1, whole=True)] = 10
    steps: Annotated[int, Interval(1, whole=True)] = 10
    hidden: Annotated[int, Interval(1, whole=True)] = 128
    window: Annotated[int, Interval(2, whole=True)] = 5

    @property
    def code_(self) -> int:
        """Width of the codes of all steps together."""
        return self.steps * self.code

    def _row_likelihood(self, spec: Spec | None = None) -> RowLikelihood:
        return row_likelihood("bernoulli", spec or self.spec_)

    def _network(self, spec: Spec) -> nn.Module:
        return DRAWNetwork(
            spec.inputs,
            spec.extra["size"],
            code=self.code,
            steps=self.steps,
            hidden=self.hidden,
            window=self.window,
        )

    def _objective(self, spec: Spec) -> SequentialELBO:
        return SequentialELBO(self._row_likelihood(spec))

    def _draw(self, noise: RowNoise, y: Tensor | None) -> Tensor:
        parameter = next(self.module_.parameters())
        return self._decoded(noise.normal(self.code_).to(parameter)).sigmoid()

    def _row_scores(self, x: Tensor) -> Tensor:
        """Return a bound of log p(x) of each image, (B,), by one draw."""
        return self._estimates(x, 1)

    def log_likelihood(self, X: Any, samples: int = 100) -> np.ndarray:
        """Estimate log p(x) of each image, (n,), by importance sampling from the posterior."""
        return torch.cat(list(self._each(X, lambda x: self._estimates(x, samples)))).numpy()

    def _estimates(self, x: Tensor, samples: int) -> Tensor:
        """Return log 1/k sum_i p(x, z_i) / q(z_i | x) of each image, (B,)."""
        chance = generator(self.settings_["seed"], STREAM)
        draws = [torch.randn(1, self.steps, self.code, generator=chance) for _ in range(samples)]
        found = []
        for part in x.split(BLOCK):
            noise = (draw.expand(len(part), -1, -1) for draw in draws)  # the same for every image
            each = torch.stack([self._weights(part, draw) for draw in noise])
            found.append(each.double().logsumexp(dim=0) - math.log(samples))
        return torch.cat(found)

    def _weights(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return log p(x, z) - log q(z | x) of one draw, (B,)."""
        found = self.module_(x, noise.to(x))
        fit = -self._row_likelihood().rows(found.canvas, x.flatten(1))
        prior = log_normal(found.z).sum(dim=1)
        return fit + prior - log_normal(found.z, found.mean, found.log_variance).sum(dim=1)

    def attention(self, X: Any) -> np.ndarray:
        """Return the writing windows, (n, T, 4): centre x and y, stride, deviation, in pixels."""

        def look(x: Tensor) -> Tensor:
            return self.module_(x, x.new_zeros(len(x), self.steps, self.code)).windows

        return torch.cat(list(self._each(X, look))).numpy()

    def canvases(self, n: int = 1, *, random_state: int = 0) -> np.ndarray:
        """Draw images and return the canvas after each step, (n, T, H, W) or (n, T, H, W, C)."""
        noise = RowNoise.blocks(n, random_state)
        return np.concatenate([self.painted(block.normal(self.code_)) for block in noise])

    @torch.inference_mode()
    def painted(self, Z: Any) -> np.ndarray:
        """Return the canvas after each step of codes (n, T code), as ``canvases`` does."""
        z = self._device_tensor(Z).view(-1, self.steps, self.code)
        shown = self._values(self.module_.paint(z)[0].sigmoid().flatten(0, 1))  # type: ignore[operator]
        return shown.reshape(len(z), self.steps, *shown.shape[1:])
