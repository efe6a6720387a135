"""A long sequence through a reservoir, many pieces of it at once.

A reservoir forgets where it began: after enough steps its state depends on the inputs only. So a
sequence is cut into pieces, each is led in by the last steps of the piece before it, from zero, and
all run side by side. Where the ends do not meet to rounding, the sequence is run step by step.
Shapes: B sequences, T steps, D inputs, N units, K pieces, L steps of a piece.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.models.sequence.reservoir import Reservoir

__all__ = ["run_in_pieces"]

FORGOTTEN, MEETS = 1e-13, 1e-11  # distances, relative to the largest state
CHUNK = 128  # steps between checks of what is forgotten
MOST, FEWEST = 16, 4  # pieces side by side


def run_in_pieces(
    reservoir: Reservoir, x: Tensor, *, fed: Tensor | None = None, noise: Tensor | None = None
) -> Tensor:
    """Return the states from zero, (B, T, N), as ``Reservoir.run`` does but for rounding.

    Parameters
    ----------
    reservoir
        The reservoir.
    x, fed, noise
        As for ``Reservoir.run``.

    Examples
    --------
    >>> from castalia.models.sequence.reservoir import random_reservoir
    >>> reservoir, x = random_reservoir(20, 1, radius=0.5), torch.sin(torch.arange(2000.0))
    >>> found, wanted = run_in_pieces(reservoir, x[None, :, None]), reservoir.run(x[None, :, None])
    >>> torch.allclose(found, wanted, atol=1e-12)
    True
    """
    parts = {"x": x, "fed": fed, "noise": noise}
    given = {name: part.double() for name, part in parts.items() if part is not None}
    rows, steps = x.shape[:2]
    lead = _lead(reservoir, given) if MOST // rows >= FEWEST else 0
    pieces = min(MOST // rows, steps // (3 * lead)) if lead else 0
    found = _joined(reservoir, given, pieces, lead) if pieces >= FEWEST else None
    return reservoir.run(**given) if found is None else found


def _lead(reservoir: Reservoir, given: dict[str, Tensor]) -> int:
    """Return after how many steps two far states are one, by the beginning of x; 0: too many."""
    x = given["x"]
    state = torch.stack([torch.zeros(reservoir.units), torch.ones(reservoir.units)]).to(x)
    for start in range(0, x.shape[1] // (3 * FEWEST), CHUNK):
        some = {k: v[:1, start : start + CHUNK].expand(2, -1, -1) for k, v in given.items()}
        state = reservoir.end(**some, state=state)
        if float((state[0] - state[1]).abs().max()) <= FORGOTTEN * float(state.abs().max()):
            return start + CHUNK
    return 0


def _joined(
    reservoir: Reservoir, given: dict[str, Tensor], pieces: int, lead: int
) -> Tensor | None:
    """Run all pieces side by side; None where their ends do not meet."""
    rows, steps = given["x"].shape[:2]
    cut = {name: _cut(part, pieces) for name, part in given.items()}
    led = reservoir.end(**{name: part[:, -lead:] for name, part in cut.items()})
    led = led.unflatten(0, (rows, pieces))
    begin = torch.cat([torch.zeros_like(led[:, :1]), led[:, :-1]], dim=1)  # (B, K, N)
    states = reservoir.run(**cut, state=begin.flatten(0, 1)).unflatten(0, (rows, pieces))
    apart = (states[:, :-1, -1] - begin[:, 1:]).abs().max()
    if float(apart) > MEETS * float(begin.abs().max()):
        return None
    return states.flatten(1, 2)[:, :steps]


def _cut(x: Tensor, pieces: int) -> Tensor:
    """Return pieces as rows, (B K, L, D), zeros after the end."""
    length = -(-x.shape[1] // pieces)
    padded = F.pad(x, (0, 0, 0, pieces * length - x.shape[1]))
    return padded.unflatten(1, (pieces, length)).flatten(0, 1)
