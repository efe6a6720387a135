"""A network that forecasts: windows brought to a common level, a body, the level put back.

Each window is seen relative to its own level: z = (x - shift) / scale. With ``"last"`` the shift is
the last step, with ``"window"`` shift and scale are mean and deviation of the window, so that a
series that wanders is forecast from where it is. Outputs are in units of z; shift and scale come
with them.
Shapes: B batch, L context, C channels, K channels forecast, H horizon, P numbers a value.
References: 2022, Kim et al., Reversible instance normalization, ICLR; 2023, Zeng et al., Are
transformers effective for time series forecasting?, arXiv 2205.13504.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.utils.text import listing

__all__ = ["LEVELS", "Forecast", "ForecastNetwork"]

LEVELS = ("last", "window", "none")
FLOOR = 1e-5  # of a deviation: constant windows have none


class Forecast(NamedTuple):
    """Outputs, and what they are relative to.

    Attributes
    ----------
    values
        (B, H, K, P), in units of the scale.
    shift, scale
        (B, 1, K).
    """

    values: Tensor
    shift: Tensor
    scale: Tensor


class ForecastNetwork(nn.Module):
    """Level, body, level.

    Parameters
    ----------
    body
        Makes from (channels, outputs) the network from windows (B, L, channels) to (B, outputs).
    channels
        Channels of a window.
    targets
        Numbers of those to forecast.
    horizon
        Steps to forecast.
    values
        Numbers for each value: one for a mean, two for mean and spread ….
    level
        ``"last"``, ``"window"`` or ``"none"``.
    shared
        Whether one body forecasts every channel from its own past.
    units
        Shift and scale of each channel forecast, (K,) each, where those of the window must not be
        taken: counts keep their units.

    Examples
    --------
    >>> def body(channels, outputs):
    ...     return nn.Sequential(nn.Flatten(), nn.Linear(8 * channels, outputs))
    >>> net = ForecastNetwork(body, 3, [0, 2], 4)
    >>> net(torch.zeros(5, 8, 3)).values.shape
    torch.Size([5, 4, 2, 1])
    """

    def __init__(
        self,
        body: Callable[[int, int], nn.Module],
        channels: int,
        targets: Sequence[int],
        horizon: int,
        *,
        values: int = 1,
        level: str = "last",
        shared: bool = False,
        units: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> None:
        super().__init__()
        if level not in LEVELS:
            raise InvalidParameter(
                f"ForecastNetwork: `level` must be {listing(LEVELS)}; got {level!r}."
            )
        self.horizon, self.values, self.level, self.shared = horizon, values, level, shared
        self.register_buffer("targets", torch.tensor(list(targets)), persistent=False)
        fixed: Any = None if units is None else torch.tensor(units)[:, None, None]  # (2, 1, 1, K)
        self.register_buffer("units", fixed, persistent=False)
        count = 1 if shared else len(targets)
        self.body = body(1 if shared else channels, horizon * count * values)

    def forward(self, x: Any) -> Forecast:  # (B, L, C), or with the future beside it
        """Return the forecast of each window."""
        x = x[0] if isinstance(x, tuple) else x
        z, shift, scale = self.seen(x)
        size = (self.horizon, shift.shape[2])
        found = self.body(z)
        if self.shared:
            found = found.view(len(x), *size[::-1], self.values).transpose(1, 2)
        else:
            found = found.view(len(x), *size, self.values)
        if self.units is not None:
            units: Any = self.units.to(x.dtype)
            return Forecast(found, *units.expand(2, len(x), 1, size[1]).unbind(0))
        return Forecast(found, shift, scale)

    def seen(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # (B, L, C)
        """Return what the body reads, and shift and scale of what is forecast, (B, 1, K).

        The body reads (B, L, C), or where it is shared a row for each channel, (B K, L, 1).
        """
        chosen: Any = self.targets
        shift, scale = self._level(x)  # (B, 1, C)
        z = (x - shift) / scale
        if self.shared:
            z = z.index_select(2, chosen).transpose(1, 2).flatten(0, 1)[..., None]
        return z, shift.index_select(2, chosen), scale.index_select(2, chosen)

    def _level(self, x: Tensor) -> tuple[Tensor, Tensor]:
        one = torch.ones_like(x[:, :1])
        if self.level == "none":
            return torch.zeros_like(one), one
        if self.level == "last":
            return x[:, -1:], one
        shift = x.mean(dim=1, keepdim=True)
        return shift, (x.var(dim=1, keepdim=True, correction=0) + FLOOR).sqrt()
