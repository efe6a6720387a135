"""What estimators on reservoirs share: how reservoirs are drawn, kept and run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf
from castalia.errors import CastaliaWarning
from castalia.models.sequence.direct_sequences import Bucket, Observations
from castalia.models.sequence.reservoir import (
    ACTIVATIONS,
    TOPOLOGIES,
    Reservoir,
    random_reservoir,
)
from castalia.models.sequence.reservoir_pieces import run_in_pieces
from castalia.models.sequence.reservoir_plasticity import intrinsic_plasticity
from castalia.utils.seeds import derive, generator, seed_from

__all__ = ["EchoStateBase"]


@dataclass(kw_only=True, eq=False, repr=False)
class EchoStateBase(DirectEstimator):
    """Base of estimators on reservoirs: how reservoirs are drawn, kept and run.

    Parameters
    ----------
    units
        Units of each reservoir; more remember more and cost more.
    depth
        Reservoirs on top of each other; the readout sees the states of all.
    bidirectional
        Whether a second stack reads from the end.
    spectral_radius
        Of the recurrent weights; larger remembers longer. Above 1 it may not forget where it began.
    input_scale, bias_scale
        Weights of inputs and biases are uniform between minus and plus these.
    connections
        Mean number of units that a unit receives.
    topology
        ``"random"``, ``"ring"`` or ``"orthogonal"``.
    leak
        Share of the new state in each step; smaller is slower.
    activation
        ``"tanh"``, ``"sigmoid"`` or ``"identity"``.
    plasticity
        Passes of intrinsic plasticity over the training sequences before the readout is fitted.
    plasticity_target
        Mean of sigmoid units, or deviation of tanh units, that it aims at.
    alpha
        Penalty of the readout; larger is steadier in noise.
    """

    units: Annotated[int, Interval(1, whole=True)] = 200
    depth: Annotated[int, Interval(1, whole=True)] = 1
    bidirectional: Annotated[bool, OneOf(True, False)] = False
    spectral_radius: Annotated[float, Interval(0)] = 0.9
    input_scale: Annotated[float, Interval(0)] = 1.0
    bias_scale: Annotated[float, Interval(0)] = 0.5
    connections: Annotated[int, Interval(1, whole=True)] = 10
    topology: Annotated[str, OneOf(*TOPOLOGIES)] = "random"
    leak: Annotated[float, Interval(0, 1, closed="right")] = 1.0
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "tanh"
    plasticity: Annotated[int, Interval(0, whole=True)] = 0
    plasticity_target: Annotated[float, Interval(0, closed="neither")] = 0.2
    alpha: Annotated[float, Interval(0)] = 1e-6

    def _draw(self, inputs: int, feedback: float = 0.0, outputs: int = 0) -> list[Reservoir]:
        """Draw all reservoirs, the forward stack before the backward one."""
        if self.spectral_radius > 1:
            warnings.warn(
                f"{type(self).__name__}: `spectral_radius` is {self.spectral_radius:g}; above 1 a "
                "reservoir may keep or amplify its first state. Check it with "
                "`echo_state_property`.",
                CastaliaWarning,
                stacklevel=4,
            )
        seed = seed_from(self.random_state)
        return [
            random_reservoir(
                self.units,
                self.units if layer else inputs,
                radius=self.spectral_radius,
                scale=self.input_scale,
                bias=self.bias_scale,
                connections=self.connections,
                feedback=feedback,
                outputs=0 if layer else outputs,
                topology=self.topology,
                leak=self.leak,
                activation=self.activation,
                seed=derive(seed, direction, layer),
            )
            for direction in range(2 if self.bidirectional else 1)
            for layer in range(self.depth)
        ]

    def _adapted(self, reservoirs: list[Reservoir], found: Observations) -> list[Reservoir]:
        """Let intrinsic plasticity adapt each reservoir to what drives it."""
        if not self.plasticity:
            return reservoirs
        adapted: list[Reservoir] = []
        for number, reservoir in enumerate(reservoirs):
            for bucket in found.buckets():
                x = torch.nan_to_num(bucket.values)
                below = adapted[number - number % self.depth :] if number % self.depth else []
                for lower in below:
                    x = lower.run(x)
                reservoir = intrinsic_plasticity(
                    reservoir, x, target=self.plasticity_target, epochs=self.plasticity
                )
            adapted.append(reservoir)
        return adapted

    def _keep(self, reservoirs: list[Reservoir]) -> None:
        """Keep weights as arrays: what is saved is data."""
        parts: dict[str, list[np.ndarray]] = {}
        for reservoir in reservoirs:
            w = reservoir.weights
            sparse = {"data": w.data, "indices": w.indices, "indptr": w.indptr}
            dense = ("inputs", "bias", "feedback", "gain", "threshold")
            for name, array in {**sparse, **{n: getattr(reservoir, n) for n in dense}}.items():
                parts.setdefault(name, []).append(np.asarray(array))
        self.reservoirs_ = parts

    @property
    def _reservoirs(self) -> list[Reservoir]:
        kept, n = self.reservoirs_, self.units
        return [
            Reservoir(
                sp.csr_array((data, indices, indptr), shape=(n, n)),
                inputs,
                bias,
                feedback,
                gain,
                threshold,
                leak=self.leak,
                activation=self.activation,
            )
            for data, indices, indptr, inputs, bias, feedback, gain, threshold in zip(
                *kept.values(), strict=True
            )
        ]

    def reservoir(self, number: int = 0) -> Reservoir:
        """Return a fitted reservoir, for ``memory_capacity`` or ``echo_state_property``."""
        check_is_fitted(self, "reservoirs_")
        return self._reservoirs[number]

    def _states(self, bucket: Bucket, fed: Tensor | None = None, noise: float = 0.0) -> Tensor:
        """Return the states of all reservoirs side by side, (B, T, depth N directions)."""
        x, found = torch.nan_to_num(bucket.values), []
        reservoirs = self._reservoirs
        for direction in range(2 if self.bidirectional else 1):
            part = _reversed(x, bucket.lengths) if direction else x
            stack = []
            for layer in range(self.depth):
                reservoir = reservoirs[direction * self.depth + layer]
                shaken = self._noise(part, noise, layer) if noise else None
                part = run_in_pieces(reservoir, part, fed=None if layer else fed, noise=shaken)
                stack.append(part)
            joined = torch.cat(stack, dim=2) if len(stack) > 1 else stack[0]
            found.append(_reversed(joined, bucket.lengths) if direction else joined)
        return torch.cat(found, dim=2) if len(found) > 1 else found[0]

    def _noise(self, like: Tensor, noise: float, layer: int) -> Tensor:
        random = generator(seed_from(self.random_state), 2**20, layer)
        shape = (*like.shape[:2], self.units)
        return (noise * torch.randn(shape, generator=random, dtype=torch.float64)).to(like.device)


def _reversed(x: Tensor, lengths: Tensor) -> Tensor:
    """Return sequences (B, T, D) from their ends; padding stays where it is."""
    steps = torch.arange(x.shape[1], device=x.device)
    back = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return x.gather(1, back[..., None].expand_as(x))
