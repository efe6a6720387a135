"""Gibbs sampling of a 256 x 256 Ising lattice: checkerboard blocks against a numba loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Contender, Report, installed, main, race, ratio, table

COUPLING = 0.44


@dataclass(frozen=True)
class Size:
    side: int
    sweeps: int
    rounds: int


SIZES = {"full": Size(256, 1000, 5), "quick": Size(128, 200, 2), "tiny": Size(16, 5, 1)}


def run(scale: str = "full") -> Report:
    """Time sweeps over all spins; the score is the mean energy a spin of the last state."""
    import torch

    size = SIZES[scale]
    contenders = [Contender("castalia", lambda: ours(size))]
    if installed("numba"):
        loop = numba_loop()
        loop(np.ones((4, 4), dtype=np.int8), COUPLING, 1)  # compiled before it is timed
        contenders.append(Contender("numba", lambda: looped(loop, size)))
    found = race(contenders, size.rounds)
    figures: dict[str, Any] = {
        name: {**vars(r), "sweeps_per_second": size.sweeps / float(np.median(r.wall))}
        for name, r in found.items()
    }
    bars = []
    if "numba" in found:
        faster = ratio(found["numba"], found["castalia"], "wall").median
        bars.append(Bar("sweeps a second over numba's", faster, ">=", 1.0))
    text = table(found, "castalia", "energy a spin")
    if torch.cuda.is_available():
        for chains in (1, 64):
            figures[f"cuda, {chains}"] = on_cuda(size, chains)
            text += f"\n\nOn {torch.cuda.get_device_name()}, {chains} lattices at once: "
            text += f"{figures[f'cuda, {chains}']:,.0f} sweeps a second."
    setting = f"{size.side} x {size.side}, J = {COUPLING}, {size.sweeps} sweeps."
    return Report("ising", setting, text, bars, figures)


def energy(grid: np.ndarray) -> float:
    grid = grid.astype(np.float64)
    return float(-(grid * (np.roll(grid, 1, 0) + np.roll(grid, 1, 1))).mean())


def ours(size: Size) -> Callable[[], float]:
    from castalia.sampling import IsingLattice

    lattice = IsingLattice(size.side, size.side, coupling=COUPLING)
    state = lattice.sweep(lattice.start(random_state=0), size.sweeps, random_state=1)
    return lambda: energy(lattice.grid(state)[0].numpy())


def on_cuda(size: Size, chains: int) -> float:
    import torch

    from castalia.sampling import IsingLattice

    lattice = IsingLattice(size.side, size.side, coupling=COUPLING)
    state = lattice.start(chains=chains, random_state=0, device="cuda")
    lattice.sweep(state, 10, random_state=0)
    torch.cuda.synchronize()
    start = time.perf_counter()
    lattice.sweep(state, size.sweeps, random_state=1)
    torch.cuda.synchronize()
    return chains * size.sweeps / (time.perf_counter() - start)


def numba_loop() -> Any:
    import numba

    @numba.njit
    def loop(grid: Any, coupling: float, sweeps: int) -> None:
        rows, columns = grid.shape
        up = 1 / (1 + np.exp(-2 * coupling * np.arange(-4, 5)))
        for _ in range(sweeps):
            for i in range(rows):
                for j in range(columns):
                    near = grid[i - 1, j] + grid[i, j - 1]
                    near += grid[(i + 1) % rows, j] + grid[i, (j + 1) % columns]
                    grid[i, j] = 1 if np.random.random() < up[near + 4] else -1

    return loop


def looped(loop: Any, size: Size) -> Callable[[], float]:
    spins = np.random.default_rng(0).integers(0, 2, (size.side, size.side))
    grid = (2 * spins - 1).astype(np.int8)
    loop(grid, COUPLING, size.sweeps)
    return lambda: energy(grid)


if __name__ == "__main__":
    main(run)
