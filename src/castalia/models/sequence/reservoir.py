"""A reservoir: a fixed random recurrent network whose states are features of the past.

h_t = (1 - a) h_{t-1} + a g(gain (U x_t + W h_{t-1} + V y_{t-1} + c) + threshold)

U and V are dense and uniform, W is sparse and uniform with a given spectral radius. Nothing in it
is trained but, by intrinsic plasticity, gain and threshold of each unit.
Shapes: B sequences, T steps, D inputs, N units, O outputs fed back.
Reference: 2001, Jaeger, The echo state approach to analysing and training recurrent neural
networks; 2007, Jaeger et al., echo state networks with leaky-integrator neurons.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import ArpackNoConvergence, eigs
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.nn.graph.sparse_products import csr_tensor

__all__ = ["ACTIVATIONS", "TOPOLOGIES", "Reservoir", "random_reservoir", "spectral_radius"]

ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "identity": lambda x, out=None: x if out is None else out.copy_(x),
}
TOPOLOGIES = ("random", "ring", "orthogonal")
DENSE = 400  # units up to which all eigenvalues are computed
ROWS = 256  # of drives that are computed at once


@dataclass(frozen=True)
class Reservoir:
    """Weights and rule of a reservoir.

    Attributes
    ----------
    weights
        W, (N, N), sparse.
    inputs
        U, (N, D).
    bias
        c, (N,).
    feedback
        V, (N, O); O may be 0.
    gain, threshold
        Of each unit, (N,).
    leak
        a, above 0 and at most 1.
    scaled
        Whether g is multiplied by a; without, a constant drive d settles at d / a.
    activation
        ``"tanh"``, ``"sigmoid"`` or ``"identity"``.

    Examples
    --------
    >>> reservoir = random_reservoir(50, 1, seed=0)
    >>> reservoir.run(torch.zeros(2, 7, 1)).shape
    torch.Size([2, 7, 50])
    """

    weights: sp.csr_array
    inputs: np.ndarray
    bias: np.ndarray
    feedback: np.ndarray
    gain: np.ndarray
    threshold: np.ndarray
    leak: float = 1.0
    scaled: bool = True
    activation: str = "tanh"

    @property
    def units(self) -> int:
        """Number of units N."""
        return len(self.bias)

    def run(
        self,
        x: Tensor,
        *,
        fed: Tensor | None = None,
        state: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the states, (B, T, N), driven by x (B, T, D).

        Parameters
        ----------
        x
            Inputs.
        fed
            What is fed back into each step, the outputs of the step before, (B, T, O).
        state
            Where to begin, (B, N); None: at zero.
        noise
            Added to the state of each step, (B, T, N).
        """
        states = x.new_empty(*x.shape[:2], self.units, dtype=torch.float64)
        for some, found in self._blocks(x.double(), fed, state, noise):
            states[:, some] = found
        return states

    def end(self, x: Tensor, **parts: Any) -> Tensor:
        """Return the last state of ``run``, (B, N); the others are not kept."""
        given = (parts.get(name) for name in ("fed", "state", "noise"))
        ((_, found),) = deque(self._blocks(x.double(), *given), maxlen=1)
        return found[:, -1]

    def _blocks(
        self, x: Tensor, fed: Tensor | None, state: Tensor | None, noise: Tensor | None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield the states of some steps after others, (B, t, N), and where they belong."""
        step, block = self.stepper(x.device), max(1, ROWS // len(x))
        h = x.new_zeros(self.units, len(x)) if state is None else state.double().T.contiguous()
        for start in range(0, x.shape[1], block):
            some = slice(start, start + block)
            drives = self.drive(x[:, some], None if fed is None else fed[:, some])
            for t, drive in enumerate(drives.unbind(dim=1), start):
                h = step(drive.T, h)
                if noise is not None:
                    h.add_(noise[:, t].T)
            yield some, drives  # which are states now

    def drive(self, x: Tensor, fed: Tensor | None = None) -> Tensor:
        """Return U x + V y + c of all steps, (B, …, N), whose sequences lie side by side."""
        inputs, bias = torch.from_numpy(self.inputs).to(x), torch.from_numpy(self.bias).to(x)
        found = (inputs @ x.movedim(0, -1)).add_(bias[:, None])
        if fed is not None:
            found += torch.from_numpy(self.feedback).to(x) @ fed.to(x).movedim(0, -1)
        return found.movedim(-1, 0)

    def stepper(self, device: torch.device) -> Callable[[Tensor, Tensor], Tensor]:
        """Return one step: from a drive, (N, B), which becomes the new state, and the old one."""
        weights = _matrix(self.weights, device)
        gain, threshold = (
            torch.from_numpy(a).to(device)[:, None] for a in (self.gain, self.threshold)
        )
        tuned = bool((self.gain != 1).any() or (self.threshold != 0).any())
        squash, leak = ACTIVATIONS[self.activation], self.leak

        def step(drive: Tensor, before: Tensor) -> Tensor:
            torch.addmm(drive, weights, before, out=drive)
            if tuned:
                drive.mul_(gain).add_(threshold)
            squash(drive, out=drive)
            if leak != 1:
                drive.mul_(leak if self.scaled else 1.0).add_(before, alpha=1 - leak)
            return drive

        return step

    def tuned(self, gain: np.ndarray, threshold: np.ndarray) -> Reservoir:
        """Return the reservoir with other gains and thresholds."""
        return replace(self, gain=gain, threshold=threshold)


def _matrix(weights: sp.csr_array, device: torch.device) -> Tensor:
    """Return W as a tensor, sparse where few units are connected."""
    if weights.nnz > 0.25 * weights.shape[0] ** 2:
        return torch.from_numpy(weights.toarray()).to(device)
    parts = (weights.indptr.astype(np.int32), weights.indices.astype(np.int32), weights.data)
    rows, columns, values = (torch.from_numpy(part).to(device) for part in parts)
    return csr_tensor(rows, columns, values, weights.shape)


def random_reservoir(
    units: int,
    inputs: int,
    *,
    radius: float = 0.9,
    scale: float = 1.0,
    bias: float = 0.0,
    connections: int = 10,
    feedback: float = 0.0,
    outputs: int = 0,
    topology: str = "random",
    leak: float = 1.0,
    scaled: bool = True,
    activation: str = "tanh",
    seed: int = 0,
) -> Reservoir:
    """Draw a reservoir.

    Parameters
    ----------
    units, inputs
        Widths N and D.
    radius
        Spectral radius of W.
    scale, bias, feedback
        Weights of inputs, biases and feedback are uniform between minus and plus these.
    connections
        Mean number of units that a unit receives, in a random topology.
    outputs
        Width of what is fed back.
    topology
        ``"random"``; ``"ring"``: each unit receives one other; ``"orthogonal"``: dense.
    leak, scaled, activation
        As in ``Reservoir``.
    seed
        Another one draws another reservoir.

    Examples
    --------
    >>> reservoir = random_reservoir(100, 1, radius=0.8, seed=0)
    >>> round(spectral_radius(reservoir.weights), 6)
    0.8
    """
    random = np.random.default_rng(seed)
    weights = _topology(units, connections, topology, random)
    found = spectral_radius(weights)
    if found < 1e-12 and radius > 0:
        raise InvalidParameter(
            "random_reservoir: `connections` must be enough for a loop among the units; got "
            f"{connections} for {units} units, which have none. Raise `connections`."
        )
    weights = sp.csr_array(weights * (radius / found if radius > 0 else 0.0))
    wide = scale * random.uniform(-1, 1, (units, inputs))
    back = feedback * random.uniform(-1, 1, (units, outputs))
    shift = bias * random.uniform(-1, 1, units)
    ones, zeros = np.ones(units), np.zeros(units)
    return Reservoir(weights, wide, shift, back, ones, zeros, leak, scaled, activation)


def _topology(
    units: int, connections: int, topology: str, random: np.random.Generator
) -> sp.csr_array:
    if topology == "ring":
        return sp.csr_array(np.roll(np.eye(units), 1, axis=0))
    if topology == "orthogonal":
        return sp.csr_array(np.linalg.qr(random.normal(size=(units, units)))[0])
    density = min(1.0, connections / units)
    pattern = sp.random_array((units, units), density=density, rng=random, format="csr")
    pattern.data = random.uniform(-1, 1, pattern.nnz)
    return pattern


def spectral_radius(weights: Any) -> float:
    """Return the largest modulus of an eigenvalue, of a dense or sparse matrix.

    >>> spectral_radius(np.array([[0.5, 10.0], [0.0, 0.5]]))
    0.5
    """
    n = weights.shape[0]
    if n > DENSE and sp.issparse(weights):
        try:
            start = np.random.default_rng(0).normal(size=n)
            found = eigs(weights, k=6, ncv=40, v0=start, tol=1e-6, return_eigenvectors=False)
            return float(np.abs(found).max())
        except ArpackNoConvergence:
            pass
    dense = weights.toarray() if sp.issparse(weights) else np.asarray(weights)
    return float(np.abs(np.linalg.eigvals(dense)).max())
