"""DRAW: a recurrent variational autoencoder that paints on a canvas through an attention window.

For t = 1 … T, with x the image and c the canvas:
  e_t = x - sigmoid(c_{t-1}),            r_t = read(x, e_t, d_{t-1}),
  h_t = LSTM_enc(h_{t-1}, [r_t, d_{t-1}]),  z_t ~ Q(z | h_t) = N(mu(h_t), s(h_t)^2),
  d_t = LSTM_dec(d_{t-1}, z_t),          c_t = c_{t-1} + write(d_t).
read and write use N x N Gaussian filters whose centre, stride, width and intensity d_t decides.
Shapes: B batch, C channels, H and W size, N window, K code, T steps.
Reference: 2015, Gregor, Danihelka, Graves, Rezende, Wierstra, DRAW, arXiv 1502.04623.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from castalia.nets.generative.draw_compiled import Between, paint_together
from castalia.nets.generative.draw_window import read, write

__all__ = ["DRAWNetwork", "Painted"]

SMALL = 0.1  # of the usual weights by which windows begin to move
State = tuple[Tensor, Tensor]  # of a cell, (B, hidden) each
Steps = Callable[[Tensor, Tensor], tuple[Tensor, ...]]


class Painted(NamedTuple):
    """What came of a pass: the canvas (B, C H W), the mean codes and log-variances, the draws."""

    canvas: Tensor
    mean: Tensor  # (B, T, K)
    log_variance: Tensor  # (B, T, K)
    z: Tensor  # (B, T, K)
    windows: Tensor  # (B, T, 4): centre x and y, stride, deviation, of the writing window


class DRAWNetwork(nn.Module):
    """Encoder and decoder cells, the two windows, and a canvas.

    Parameters
    ----------
    channels, size
        Of images.
    code
        Width K of the code of a step.
    steps
        Number T of steps.
    hidden
        Units of each cell.
    window
        Side N of the reading and writing windows.
    """

    def __init__(
        self,
        channels: int,
        size: Sequence[int],
        *,
        code: int = 10,
        steps: int = 10,
        hidden: int = 256,
        window: int = 5,
    ) -> None:
        super().__init__()
        self.channels, self.size = channels, (int(size[0]), int(size[1]))
        self.code, self.steps, self.hidden, self.window = code, steps, hidden, window
        self.reading, self.writing = nn.Linear(hidden, 5), nn.Linear(hidden, 5)
        self.encoder = nn.LSTMCell(2 * channels * window**2 + hidden, hidden)
        self.posterior_head = nn.Linear(hidden, 2 * code)
        self.decoder = nn.LSTMCell(code, hidden)
        self.patch = nn.Linear(hidden, channels * window**2)
        self.canvas = nn.Parameter(torch.zeros(channels, *self.size))  # c_0
        self._spread_windows()

    @torch.no_grad()
    def _spread_windows(self) -> None:
        """Begin with windows that cover the image without gaps, and write what the patch says.

        Filters a stride s apart have the deviation s / 2. Those that write add up to 1 / s along
        each axis, so that the intensity is 1 / s^2.
        """
        stride = (max(self.size) - 1) / max(1, self.window - 1)
        for head, log_intensity in ((self.reading, 0.0), (self.writing, -2 * math.log(stride))):
            head.weight.mul_(SMALL)
            head.bias.copy_(torch.tensor([0, 0, 2 * math.log(stride / 2), 0, log_intensity]))

    def _start(self, x: Tensor) -> tuple[Tensor, State, State]:
        zero = x.new_zeros(len(x), self.hidden)
        canvas = self.canvas.expand(len(x), -1, -1, -1)
        return canvas, (zero, zero), (zero, zero)

    def read(self, x: Tensor, error: Tensor, d: Tensor) -> Tensor:
        """Return what the window shows of the image and of the error, (B, 2 C N N)."""
        return read(x, error, self.reading(d), self.window)

    def write(self, d: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is added to the canvas, (B, C, H, W), and where the window was, (B, 4)."""
        return write(self.patch(d), self.writing(d), self.window, self.size)

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Painted:
        """Encode and paint images (B, C, H, W); noise (B, T, K) of the draws, random where None."""
        return self._painted(self._steps, x, noise)

    def compile(self, **options: Any) -> None:
        """Compile what a step does: unrolled, the steps would take minutes to compile."""
        between = Between.compiled(**options)
        self._compiled_call_impl = partial(self._painted, partial(paint_together, between, self))

    def _painted(self, steps: Steps, x: Tensor, noise: Tensor | None = None) -> Painted:
        """Take all steps, in single precision: a window may move by less than bf16 can say."""
        with torch.autocast(x.device.type, enabled=False):
            if noise is None:
                noise = x.new_empty(len(x), self.steps, self.code).normal_()
            return Painted(*steps(x, noise))

    def _steps(self, x: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        """Return what ``Painted`` holds."""
        canvas, enc, dec = self._start(x)
        kept: list[tuple[Tensor, ...]] = []
        for draw in noise.unbind(dim=1):
            canvas, enc, dec, found = self._step(x, draw, canvas, enc, dec)
            kept.append(found)
        return canvas.flatten(1), *(torch.stack(each, dim=1) for each in zip(*kept, strict=True))

    def _step(
        self, x: Tensor, draw: Tensor, canvas: Tensor, enc: State, dec: State
    ) -> tuple[Tensor, State, State, tuple[Tensor, ...]]:
        """Read, code, draw and write once; also return mean, log-variance, z and window."""
        seen = self.read(x, x - canvas.sigmoid(), dec[0])
        enc = self.encoder(torch.cat([seen, dec[0]], dim=1), enc)
        mean, log_variance = self.posterior_head(enc[0]).chunk(2, dim=1)  # (B, K) each
        z = mean + (log_variance / 2).exp() * draw
        dec = self.decoder(z, dec)
        added, place = self.write(dec[0])
        return canvas + added, enc, dec, (mean, log_variance, z, place)

    def paint(self, z: Tensor) -> tuple[Tensor, Tensor]:  # (B, T, K)
        """Return the canvas after each step of codes, (B, T, C H W), and the windows, (B, T, 4)."""
        canvas, _, dec = self._start(z)
        shown, places = [], []
        for t in range(self.steps):
            dec = self.decoder(z[:, t], dec)
            added, place = self.write(dec[0])
            canvas = canvas + added
            shown.append(canvas.flatten(1))
            places.append(place)
        return torch.stack(shown, dim=1), torch.stack(places, dim=1)

    def encode(self, x: Tensor) -> Tensor:
        """Return the mean codes of all steps, (B, T K), every draw at its mean."""
        return self(x, x.new_zeros(len(x), self.steps, self.code)).mean.flatten(1)

    def decode(self, z: Tensor) -> Tensor:
        """Return the last canvas of codes (B, T K)."""
        return self.paint(z.view(len(z), self.steps, self.code))[0][:, -1]
