"""Eigenvalues of 1,000 random matrices from products alone: none that converged may be wrong.

Wrong is what differs from the eigenvalue of the same rank (dense, float64) by more than the
tolerance that was asked for, or by more than the bound that came with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from castalia.autodiff import condition_number, hessian_spectrum
from evidence.rows import print_table

MATRICES, QUICK = 1000, 70


@dataclass(frozen=True)
class Trial:
    """One matrix and one question about it."""

    kind: str
    matrix: Tensor
    k: int
    which: str
    tol: float
    max_steps: int


@dataclass(frozen=True)
class Outcome:
    """What came back: errors are shares of the tolerance and of the bound."""

    converged: bool
    error: float
    beyond_bound: float
    steps: float  # products for each row of the matrix

    @property
    def wrong(self) -> bool:
        """Whether it says that it converged and did not."""
        return self.converged and max(self.error, self.beyond_bound) > 1


def uniform(n: int, source: torch.Generator, low: float, high: float) -> Tensor:
    return low + (high - low) * torch.rand(n, generator=source, dtype=torch.float64)


def clustered(n: int, source: torch.Generator) -> Tensor:
    """A few clusters, 1e-7 to 1e-2 wide."""
    centres = uniform(max(2, n // 12), source, -1, 1)
    width = 10 ** uniform(1, source, -7, -2)
    place = torch.randint(len(centres), (n,), generator=source)
    return centres[place] + width * uniform(n, source, -1, 1)


def repeated(n: int, source: torch.Generator) -> Tensor:
    """Every value two to seven times."""
    values = uniform(n, source, -1, 1)
    times = torch.randint(2, 8, (n,), generator=source)
    return values.repeat_interleave(times)[:n]


def ill_conditioned(n: int, source: torch.Generator) -> Tensor:
    """Ten to the power of 0 down to -6, -12 or so."""
    return 10 ** uniform(n, source, -uniform(1, source, 3, 14).item(), 0)


def low_rank(n: int, source: torch.Generator) -> Tensor:
    """Mostly zeros."""
    values = torch.zeros(n, dtype=torch.float64)
    values[: max(1, n // 10)] = uniform(max(1, n // 10), source, -0.3, 1)
    return values


def spiked(n: int, source: torch.Generator) -> Tensor:
    """A bulk near zero and some values far away, as in the Hessian of a network."""
    values = 0.01 * uniform(n, source, -1, 1).abs() ** 2
    values[:10] = uniform(10, source, 0.05, 1)
    return values


KINDS: dict[str, Callable[[int, torch.Generator], Tensor]] = {
    "clustered": clustered,
    "repeated": repeated,
    "ill-conditioned": ill_conditioned,
    "mostly zeros": low_rank,
    "bulk and spikes": spiked,
    "evenly spread": lambda n, source: torch.linspace(-0.2, 1, n, dtype=torch.float64),
}


def turned(values: Tensor, source: torch.Generator) -> Tensor:
    """Give a matrix with these eigenvalues a random basis."""
    square = torch.randn(len(values), len(values), generator=source, dtype=torch.float64)
    q = torch.linalg.qr(square).Q
    matrix = (q * values) @ q.T
    return (matrix + matrix.T) / 2


def trial(seed: int) -> Trial:
    """Draw a matrix and a question; one in seven is A A' + 0.01 I, one in four is float32."""
    source = torch.Generator().manual_seed(seed)

    def one_of(*choices: int) -> int:
        return choices[int(torch.randint(len(choices), (1,), generator=source))]

    n = one_of(20, 60, 60, 120, 250, 500)
    kind = ("A A' + 0.01 I", *KINDS)[seed % 7]
    if kind in KINDS:
        matrix = turned(KINDS[kind](n, source), source)
    else:
        a = torch.randn(n, n, generator=source, dtype=torch.float64)
        matrix = a @ a.T + 0.01 * torch.eye(n)
    if one_of(0, 0, 0, 1):
        matrix = matrix.float()
    tol = 10.0 ** -(one_of(1, 2, 3, 4) if matrix.dtype == torch.float32 else one_of(1, 2, 3, 5, 8))
    which = ("both", "largest", "smallest")[one_of(0, 1, 2)]
    return Trial(kind, matrix, one_of(1, 3, 5, 8), which, tol, one_of(60, 400, 400, 1200))


def outcome(asked: Trial, seed: int = 0) -> Outcome:
    """Ask, and compare with the dense eigenvalues."""
    a = asked.matrix
    found = hessian_spectrum(
        lambda x: x @ a @ x / 2,
        torch.zeros(len(a), dtype=a.dtype),
        k=asked.k,
        which=asked.which,  # type: ignore[arg-type]
        tol=asked.tol,
        max_steps=asked.max_steps,
        random_state=seed,
    )
    truth = torch.linalg.eigvalsh(a.double())
    ends = ((found.largest, found.largest_errors, truth.flip(0)),)
    ends += ((found.smallest, found.smallest_errors, truth),)
    allowed = asked.tol * truth.abs().max().item() + 1e-300
    off = [((v - t[: len(v)]).abs(), bound) for v, bound, t in ends if len(v)]
    error = max((distance.max() / allowed).item() for distance, _ in off)
    beyond = max((distance / (bound + 1e-300)).max().item() for distance, bound in off)
    return Outcome(found.converged, error, beyond, found.steps / len(a))


def condition_is_inside(seed: int) -> bool:
    """Whether the interval of ``condition_number`` holds the true one."""
    source = torch.Generator().manual_seed(seed)
    values = ill_conditioned(100, source)
    a = turned(values, source)
    few = int(torch.randint(10, 120, (1,), generator=source))
    found = condition_number(lambda x: x @ a @ x / 2, torch.zeros(100).double(), max_steps=few)
    sizes = torch.linalg.eigvalsh(a).abs()
    error = 1e-14 * sizes.max()
    least, most = sizes.max() / (sizes.min() + error), sizes.max() / (sizes.min() - error)
    return bool(found.low <= (most if most > 0 else torch.inf) and found.high >= least)


def run(quick: bool = False) -> None:
    """Ask about all matrices and count by kind."""
    torch.set_num_threads(1)
    found: dict[str, list[Outcome]] = defaultdict(list)
    for seed in range(QUICK if quick else MATRICES):
        asked = trial(seed)
        found[asked.kind].append(outcome(asked, seed))
    found["all"] = [one for kind in list(found) for one in found[kind]]
    columns = ["matrices", "number", "converged", "converged and wrong"]
    columns += ["largest error / tolerance", "products / rows, median"]
    print_table("Eigenvalues from products", columns, [_row(kind, found[kind]) for kind in found])
    held = [condition_is_inside(seed) for seed in range(10 if quick else 200)]
    print(f"\n`condition_number`: the true one is inside {sum(held)} of {len(held)} intervals.")


def _row(kind: str, found: list[Outcome]) -> list[str]:
    sure = [one for one in found if one.converged]
    largest = max((max(one.error, one.beyond_bound) for one in sure), default=0.0)
    wrong = sum(one.wrong for one in found)
    steps = median(one.steps for one in found)
    share = f"{len(sure) / len(found):.0%}".replace("%", " %")
    return [kind, str(len(found)), share, str(wrong), f"{largest:.2g}", f"{steps:.2g}"]
