"""Forecasters: recurrent, convolutional over time, on a window, and with patches as tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from torch import nn

from castalia.base import Estimator, Interval, OneOf, Sizes, fields_for
from castalia.errors import InvalidParameter
from castalia.models.sequence.forecaster import Forecaster
from castalia.models.sequence.window_ridge import ridge_stages
from castalia.nets.dense import MLP
from castalia.nets.sequence import (
    CELL_NAMES,
    TCN,
    FlatWindow,
    LastState,
    PatchEncoder,
    RecurrentStack,
)
from castalia.objectives import ForecastLoss
from castalia.protocols import Spec, Stage

__all__ = ["RNNForecaster", "TemporalConvNet", "TransformerForecaster", "WindowRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class RNNForecaster(Forecaster):
    """Recurrent network that forecasts series.

    Reads the steps of the context one after the other, relative to the last one, and gives all
    steps of the horizon at once. Right for many series, or where several channels act on each other
    over time; ``WindowRegressor`` is the one to beat.

    Parameters
    ----------
    cell, hidden, depth, residual, dropout, without, memory
        The recurrent layers, as for ``RNNClassifier``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.sequence.ForecastNetwork``.
    spread_ : ndarray (101, H, K)
        Percentiles of how far the validation windows were missed, by step.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: (S,), (S, C) or a frame is one series; a list of such arrays, or (n, S, C), several.
    ``predict`` gives (H, K), or (n, H, K) of several.

    Notes
    -----
    The last windows of each series are held out for validation, and nothing of their future is
    trained on.

    References
    ----------
    2020, Salinas et al., DeepAR: probabilistic forecasting with autoregressive recurrent networks,
    arXiv 1704.04110. Departs from it: all steps are forecast at once.

    See Also
    --------
    WindowRegressor : a linear map, or a dense network, of the window.
    RNNRegressor : another quantity, from sequences.

    Examples
    --------
    >>> import numpy as np
    >>> series = np.sin(np.arange(400) / 5)
    >>> model = RNNForecaster(horizon=5, context=30, hidden=16, epochs=8, lr=0.01, random_state=0)
    >>> ahead = model.fit(series).predict(series)
    >>> ahead.shape, bool(np.abs(ahead[:, 0] - np.sin(np.arange(400, 405) / 5)).max() < 0.2)
    ((5, 1), True)
    """

    cell: Annotated[str, OneOf(*CELL_NAMES)] = "lstm"
    hidden: Annotated[int, Interval(1, whole=True)] = 64
    depth: Annotated[int, Interval(1, whole=True)] = 1
    residual: Annotated[bool, OneOf(True, False)] = False
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    without: tuple[str, ...] = ()
    memory: Annotated[int | None, Interval(2, whole=True, optional=True)] = None

    def _body(self, spec: Spec) -> Callable[[int, int], nn.Module]:
        def make(channels: int, outputs: int) -> nn.Module:
            stack = RecurrentStack(
                channels,
                cell=self.cell,
                hidden=self.hidden,
                depth=self.depth,
                residual=self.residual,
                dropout=self.dropout,
                without=self.without,
                memory=self.memory,
            )
            return LastState(stack, outputs, self.dropout)

        return make


@dataclass(kw_only=True, eq=False, repr=False)
class TemporalConvNet(Forecaster):
    """Dilated causal convolutions that forecast series.

    Block l convolves steps 2^l apart, so few blocks reach far back; all steps of a window are
    computed at once, which makes it faster to train than a recurrent network.

    Parameters
    ----------
    hidden
        Channels of each block.
    depth
        Blocks; they reach 1 + 2 (kernel - 1) (2^depth - 1) steps back.
    kernel
        Taps of a convolution.
    dropout
        Probability after each convolution.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.sequence.ForecastNetwork``.
    spread_ : ndarray (101, H, K)
        Percentiles of how far the validation windows were missed, by step.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    As for ``RNNForecaster``.

    Notes
    -----
    Steps further back than the blocks reach change nothing.

    References
    ----------
    2018, Bai, Kolter, Koltun, An empirical evaluation of generic convolutional and recurrent
    networks for sequence modeling, arXiv 1803.01271.

    See Also
    --------
    RNNForecaster : a state instead of a reach.

    Examples
    --------
    >>> import numpy as np
    >>> series = np.sin(np.arange(400) / 5)
    >>> model = TemporalConvNet(
    ...     horizon=5, context=30, hidden=16, depth=3, epochs=6, lr=0.01, random_state=0
    ... )
    >>> model.fit(series).score(series) > 0.8
    True
    """

    hidden: Annotated[int, Interval(1, whole=True)] = 32
    depth: Annotated[int, Interval(1, whole=True)] = 5
    kernel: Annotated[int, Interval(2, whole=True)] = 3
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _body(self, spec: Spec) -> Callable[[int, int], nn.Module]:
        def make(channels: int, outputs: int) -> nn.Module:
            steps = TCN(channels, **fields_for(self, TCN))
            return LastState(steps, outputs, self.dropout)

        return make


@dataclass(kw_only=True, eq=False, repr=False)
class WindowRegressor(Forecaster):
    """A map of the last steps, without memory beyond them: linear, or a dense network.

    Without hidden layers the next steps are a linear function of the window, relative to its last
    step, one for all channels: an autoregression of every horizon at once. Trains in seconds, or is
    solved in one by ``solver="ridge"``, and is hard to beat on series with a steady rhythm.

    Parameters
    ----------
    hidden
        Widths of hidden layers; empty: a linear map.
    dropout
        Probability of zeroing a hidden unit.
    solver
        ``"sgd"``: the training loop; ``"ridge"``: the linear map in closed form, of least squared
        error plus ``alpha`` times its squared weights, with the output ``"mean"``.
    alpha
        Penalty of ``"ridge"``; None: of 0.01, 0.1 … 100,000 the best on the validation windows, 1
        where there are none.
    shared
        Whether one map forecasts every channel from its own past, instead of all from all.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.sequence.ForecastNetwork``.
    spread_ : ndarray (101, H, K)
        Percentiles of how far the validation windows were missed, by step.
    history_ : list of dict
        Loss and validation loss of every epoch; of ``"ridge"`` one line, with its ``alpha``.

    Shapes
    ------
    As for ``RNNForecaster``.

    Notes
    -----
    What lies further back than ``context`` steps cannot be used. ``"ridge"`` does not read
    ``epochs``, ``batch_size`` and ``lr``.

    References
    ----------
    2023, Zeng, Chen, Zhang, Xu, Are transformers effective for time series forecasting?, AAAI,
    arXiv 2205.13504 (there NLinear).

    See Also
    --------
    RNNForecaster : a state that is carried through the window.

    Examples
    --------
    >>> import numpy as np
    >>> series = np.sin(np.arange(400) / 5)
    >>> model = WindowRegressor(horizon=5, context=30, epochs=15, lr=0.01, random_state=0)
    >>> model.fit(series).score(series) > 0.9
    True
    >>> WindowRegressor(horizon=5, context=30, solver="ridge").fit(series).score(series) > 0.999
    True
    """

    hidden: Annotated[tuple[int, ...], Sizes()] = ()
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    shared: Annotated[bool, OneOf(True, False)] = True
    solver: Annotated[str, OneOf("sgd", "ridge")] = "sgd"
    alpha: Annotated[float | None, Interval(0, optional=True)] = None

    def _body(self, spec: Spec) -> Callable[[int, int], nn.Module]:
        def make(channels: int, outputs: int) -> nn.Module:
            width = channels * self.context
            return FlatWindow(MLP(width, outputs, hidden=self.hidden, dropout=self.dropout))

        return make

    def _objective(self, spec: Spec) -> ForecastLoss | Sequence[Stage]:
        return self._loss() if self.solver == "sgd" else ridge_stages(self)

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Estimator:
        """Train for one epoch on some series, and go on from there in the next call."""
        if self.solver != "sgd":
            raise InvalidParameter(
                "WindowRegressor: `solver` must be 'sgd' to go on from weights; got 'ridge'."
            )
        return super().partial_fit(X, y, classes, sample_weight)


@dataclass(kw_only=True, eq=False, repr=False)
class TransformerForecaster(Forecaster):
    """Transformer encoder on patches of a window, which forecasts series.

    Patches of a few steps are tokens; what attention makes of them goes to one linear layer for the
    whole horizon. One network for all channels, each relative to the mean and deviation of its
    window. Wants long contexts and thousands of windows.

    Parameters
    ----------
    patch
        Steps of a patch.
    every
        Steps from one patch to the next.
    dim, heads, depth
        Width of the tokens, attention heads and blocks.
    dropout
        Probability in attention and after each part.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.sequence.ForecastNetwork``.
    spread_ : ndarray (101, H, K)
        Percentiles of how far the validation windows were missed, by step.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    As for ``RNNForecaster``.

    Notes
    -----
    The cost of attention grows with the square of context / every.

    References
    ----------
    2023, Nie, Nguyen, Sinthong, Kalagnanam, A time series is worth 64 words: long-term forecasting
    with transformers, ICLR, arXiv 2211.14730.

    See Also
    --------
    WindowRegressor : a linear map of the window.

    Examples
    --------
    >>> import numpy as np
    >>> series = np.sin(np.arange(300) / 5)
    >>> model = TransformerForecaster(
    ...     horizon=5, context=32, patch=8, every=8, dim=16, depth=1, epochs=2, lr=0.01,
    ...     random_state=0,
    ... )
    >>> model.fit(series).predict(series).shape
    (5, 1)
    """

    patch: Annotated[int, Interval(1, whole=True)] = 16
    every: Annotated[int, Interval(1, whole=True)] = 8
    dim: Annotated[int, Interval(1, whole=True)] = 64
    heads: Annotated[int, Interval(1, whole=True)] = 4
    depth: Annotated[int, Interval(1, whole=True)] = 2
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.2
    level: Annotated[str, OneOf("last", "window", "none")] = "window"
    shared: Annotated[bool, OneOf(True, False)] = True

    def _body(self, spec: Spec) -> Callable[[int, int], nn.Module]:
        if self.dim % self.heads:
            raise InvalidParameter(
                f"TransformerForecaster: `dim` must be a multiple of heads={self.heads}; got "
                f"{self.dim}."
            )
        make = partial(
            PatchEncoder,
            patch=self.patch,
            stride=self.every,
            dim=self.dim,
            heads=self.heads,
            depth=self.depth,
            dropout=self.dropout,
        )
        return lambda channels, outputs: make(channels, self.context, outputs)
