"""Extreme eigenvalues of a Hessian from its products, without the Hessian itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from castalia.autodiff.arguments import Arguments
from castalia.autodiff.derivatives import Wrt
from castalia.autodiff.functional_calls import differentiating
from castalia.autodiff.hessians import hessian_product
from castalia.autodiff.spectra.extreme_eigenvalues import Search
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.seeds import generator, seed_from
from castalia.utils.text import number

__all__ = [
    "HessianOperator",
    "Spectrum",
    "check_counts",
    "extremes",
    "hessian_spectrum",
]


class HessianOperator:
    """v -> H v on flat vectors, at one point, with draws of its own."""

    def __init__(self, asked: Arguments, random_state: Any, allow_unused: bool) -> None:
        self.asked = asked
        self._product = hessian_product(asked, allow_unused)
        self._sizes = [leaf.numel() for leaf in asked.leaves]
        self.n = sum(self._sizes)
        self._source = generator(seed_from(random_state))

    def __call__(self, v: Tensor) -> Tensor:
        """Return H v."""
        found = torch.cat([part.reshape(-1) for part in self._product(self.split(v))])
        if not found.isfinite().all():
            raise InvalidData(
                f"{self.asked.owner}: second derivatives must be finite; got NaN or infinity. "
                "Look for a square root, a norm or a logarithm at zero."
            )
        return found

    def split(self, v: Tensor) -> list[Tensor]:
        """Cut a flat vector into tensors shaped like the leaves."""
        parts = zip(v.split(self._sizes), self.asked.leaves, strict=True)
        return [part.view(leaf.shape).to(leaf.dtype) for part, leaf in parts]

    def unit_vectors(self) -> Iterator[Tensor]:
        """Yield the rows of the identity, one after the other."""
        leaf = self.asked.leaves[0]
        for i in range(self.n):
            row = torch.zeros(self.n, dtype=leaf.dtype, device=leaf.device)
            row[i] = 1
            yield row

    def draw(self) -> Tensor:
        """Draw a standard normal vector; the same on every device."""
        leaf = self.asked.leaves[0]
        return torch.randn(self.n, generator=self._source, dtype=leaf.dtype).to(leaf.device)


def check_counts(owner: str, **counts: int) -> None:
    """Refuse counts that are not whole numbers of at least one."""
    for name, value in counts.items():
        if not isinstance(value, int) or value < 1:
            raise InvalidParameter(
                f"{owner}: `{name}` must be a whole number of at least 1; got {value!r}."
            )


def _nothing() -> Tensor:
    return torch.zeros(0, dtype=torch.float64)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues at both ends of a spectrum.

    Attributes
    ----------
    largest, smallest
        The k algebraically largest in descending, the k smallest in ascending order, each as often
        as it occurs; (k,), float64. Empty at an end that was not asked for.
    largest_errors, smallest_errors
        Bounds on the distance to the eigenvalue of the same rank; infinite where values may be
        missing because the steps did not suffice.
    largest_vectors, smallest_vectors
        Eigenvectors of length one, each shaped like what was differentiated by (a dict for a
        module); empty unless asked for.
    steps
        Hessian-vector products used.
    converged
        Whether the bounds of the ends that were asked for are below the tolerance.
    """

    steps: int
    converged: bool
    largest: Tensor = field(default_factory=_nothing)
    smallest: Tensor = field(default_factory=_nothing)
    largest_errors: Tensor = field(default_factory=_nothing)
    smallest_errors: Tensor = field(default_factory=_nothing)
    largest_vectors: Sequence[Any] = ()
    smallest_vectors: Sequence[Any] = ()

    def __repr__(self) -> str:
        def line(values: Tensor) -> str:
            return ", ".join(number(v) for v in values.tolist())

        state = "" if self.converged else ", not converged"
        return (
            f"Spectrum(largest=[{line(self.largest)}], smallest=[{line(self.smallest)}], "
            f"steps={self.steps}{state})"
        )


@differentiating()
def hessian_spectrum(
    fn: Callable[..., Tensor],
    *inputs: Any,
    wrt: Wrt = 0,
    k: int = 5,
    which: Literal["both", "largest", "smallest"] = "both",
    tol: float = 1e-3,
    max_steps: int = 400,
    vectors: bool = False,
    allow_unused: bool = False,
    random_state: Any = 0,
) -> Spectrum:
    """Extreme eigenvalues of the Hessian of a function that returns one number.

    Lanczos from random vectors. What a run finds is locked, and the next one begins in the rest of
    the space, until one shows that no eigenvalue is missing, so repeated ones are found as often
    as they occur. What comes back is either right or said not to have converged, up to a chance
    of about one in a million.

    Parameters
    ----------
    fn, inputs, wrt, allow_unused
        As for `gradient`: ``hessian_spectrum(lambda net: loss(net(x), y), net)``.
    k
        How many eigenvalues at each end.
    which
        The ends to find.
    tol
        Largest error of a value, as a share of the largest absolute eigenvalue; the values are
        usually far closer.
    max_steps
        Most Hessian-vector products; twice as many as there are inputs always suffice. About half
        of them go into the proof that nothing is missing, which takes the longer the closer the
        next eigenvalues lie. Each keeps a vector of the size of what is differentiated by.
    vectors
        Also return eigenvectors.
    random_state
        Seed of the first vectors.

    Notes
    -----
    A step costs about as much as two gradients on the same rows. The graph of the gradient is built
    once, so dropout and other noise is the same in all products.

    See Also
    --------
    hessian_density : the whole spectrum, smoothed.

    Examples
    --------
    >>> curvature = torch.tensor([4.0, 1.0, -2.0])
    >>> hessian_spectrum(lambda x: (curvature * x**2).sum() / 2, torch.ones(3), k=1)
    Spectrum(largest=[4], smallest=[-2], steps=3)
    """
    check_counts("hessian_spectrum", k=k, max_steps=max_steps)
    if which not in ("both", "largest", "smallest"):
        raise InvalidParameter(
            f"hessian_spectrum: `which` must be 'both', 'largest' or 'smallest'; got {which!r}."
        )
    asked = Arguments("hessian_spectrum", fn, inputs, wrt, twice=True)
    operator = HessianOperator(asked, random_state, allow_unused)
    return extremes(operator, k, which, tol, max_steps, vectors)


def extremes(
    operator: HessianOperator, k: int, which: str, tol: float, max_steps: int, vectors: bool
) -> Spectrum:
    """Search the wanted ends and put what was found into order."""
    signs = {"largest": [1], "smallest": [-1], "both": [1, -1]}[which]
    found = Search(operator, operator.draw, min(k, operator.n), signs, tol, max_steps)
    fields: dict[str, Any] = {}
    for end in found.ends:
        name, places = "largest" if end.sign > 0 else "smallest", found.top(end)
        rows = found.locked[places.to(found.locked.device)] if vectors else ()
        fields[name], fields[f"{name}_errors"] = found.values[places], found.errors(end)
        fields[f"{name}_vectors"] = [
            operator.asked.pack(operator.split(row / row.norm())) for row in rows
        ]
    return Spectrum(steps=found.steps, converged=found.converged, **fields)
