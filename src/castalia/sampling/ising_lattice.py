"""The Ising model on a grid, sampled in two blocks like the squares of a checkerboard.

p(s) = exp(J sum_<ij> s_i s_j + h sum_i s_i) / Z, s_i = +-1, on a torus. The four neighbours of a
white square are black, so all white ones are drawn at once, then all black ones. Each colour is
kept as a (rows, columns / 2) array: the neighbours are three shifted copies and the array itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.utils.seeds import generator, seed_from

__all__ = ["IsingLattice"]


class IsingLattice:
    """Spins on a torus, many lattices at once.

    Parameters
    ----------
    rows, columns
        Size of the grid, both even.
    coupling
        J: above 0 neighbours agree; the transition is at log(1 + sqrt(2)) / 2 = 0.4407.
    field
        h: what every spin is drawn towards.

    Examples
    --------
    >>> lattice = IsingLattice(16, 16, coupling=1.0)
    >>> state = lattice.sweep(lattice.start(chains=2, random_state=0), 50, random_state=0)
    >>> lattice.grid(state).shape, bool(lattice.magnetisation(state).abs().min() > 0.5)
    (torch.Size([2, 16, 16]), True)
    """

    def __init__(self, rows: int, columns: int, *, coupling: float, field: float = 0.0) -> None:
        if rows % 2 or columns % 2 or rows < 2 or columns < 2:
            raise InvalidParameter(
                f"IsingLattice: `rows` and `columns` must be even; got {rows} and {columns}."
            )
        self.rows, self.columns = rows, columns
        self.coupling, self.field = coupling, field

    def start(self, *, chains: int = 1, random_state: Any = None, device: Any = "cpu") -> Tensor:
        """Draw every spin with equal chances: states (2, chains, rows, columns / 2)."""
        source = generator(seed_from(random_state), device=device)
        shape = (2, chains, self.rows, self.columns // 2)
        return 2 * torch.randint(2, shape, generator=source, device=device, dtype=torch.int8) - 1

    def grid(self, state: Tensor) -> Tensor:
        """Return spins as grids, (chains, rows, columns)."""
        white, black = state
        even = torch.stack([white[:, ::2], black[:, ::2]], dim=-1).flatten(-2)
        odd = torch.stack([black[:, 1::2], white[:, 1::2]], dim=-1).flatten(-2)
        return torch.stack([even, odd], dim=2).flatten(1, 2)

    def magnetisation(self, state: Tensor) -> Tensor:
        """Return the mean spin of each lattice, (chains,)."""
        return state.float().mean(dim=(0, 2, 3))

    def sweep(self, state: Tensor, sweeps: int = 1, *, random_state: Any = None) -> Tensor:
        """Draw all spins again, both colours, ``sweeps`` times; returns a new state."""
        source = generator(seed_from(random_state), device=state.device)
        state, chance = state.clone(), torch.empty(state.shape[1:], device=state.device)
        spins = torch.arange(-4, 5, device=state.device)
        up = torch.sigmoid(2 * (self.coupling * spins + self.field))  # of a sum of neighbours
        for _ in range(sweeps):
            for colour in (0, 1):
                total = self._neighbours(state[1 - colour], colour).add_(4).int()
                chance.uniform_(generator=source)
                drawn = chance < up.take(total.long())
                torch.sub(drawn.to(torch.int8).mul_(2), 1, out=state[colour])
        return state

    @staticmethod
    def _neighbours(other: Tensor, colour: int) -> Tensor:
        """Return the sum of the four neighbours, all of the other colour."""
        total = other + other.roll(1, dims=1) + other.roll(-1, dims=1)
        # Left of a white square in an even row is the black one before; in an odd row after.
        side = (1, -1) if colour == 0 else (-1, 1)
        total[:, ::2] += other[:, ::2].roll(side[0], dims=2)
        total[:, 1::2] += other[:, 1::2].roll(side[1], dims=2)
        return total
