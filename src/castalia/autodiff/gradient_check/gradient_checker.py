"""Gradient checks: autograd's answer beside the slope of the function.

Every entry (or a sample of a large tensor) is compared with a central difference in float64. A
difference that does not fit is not yet an accusation: it must hold at two step sizes, with no kink
between them, and again at a neighbouring point. So ReLU at zero, ties of a maximum and rounding
stay silent. A large tensor is also moved as a whole along a random direction; if that does not fit,
halving the direction finds the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from castalia.autodiff.differences import Slope, slope
from castalia.autodiff.functional_calls import differentiating
from castalia.autodiff.gradient_check.checked_call import Subject
from castalia.autodiff.gradient_check.gradient_mismatch import GradientCheck, Mismatch
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.seeds import generator, seed_from

__all__ = ["check_gradients"]

SCALES = (1.0, 10.0, 0.1, 100.0, 0.01)  # of the best step, tried in turn before an accusation
NEIGHBOURS = 3
Gradients = Mapping[str, Tensor | None]


class Place(NamedTuple):
    """One number: a leaf and the flat position in it."""

    name: str
    entry: int


class Verdict(NamedTuple):
    """What the differences at one point say of one entry."""

    kind: Literal["agrees", "wrong", "not finite", "unresolved"]
    analytic: float
    numeric: float


@differentiating()
def check_gradients(
    fn: Callable[..., Any],
    *inputs: Any,
    n_samples: int = 20,
    rtol: float = 1e-5,
    random_state: Any = 0,
) -> GradientCheck:
    """Compare the gradients of a function or module with finite differences.

    Parameters of ``fn`` (a module or one of its methods) and of modules among the inputs are
    checked, and all floating point inputs. A copy is checked, in float64 and from fixed seeds, so
    dropout is no obstacle; weights, gradients, buffers, mode and random states stay as they were.

    Parameters
    ----------
    fn
        Called as ``fn(*inputs)``; returns a tensor or several.
    inputs
        Tensors, modules, and whatever else ``fn`` takes. Pass the modules that a function uses;
        one that it only closes over cannot be copied.
    n_samples
        Entries checked of each tensor; smaller tensors are checked whole, larger ones also as a
        whole along a random direction.
    rtol
        Relative difference that is still agreement.
    random_state
        Seed of the samples and of every evaluation.

    Returns
    -------
    GradientCheck
        True if nothing was found to be wrong; ``report()`` names the worst entries.

    Notes
    -----
    Costs two evaluations an entry. A mistake is found if it changes the gradient near the given
    point; branches that these inputs do not reach are not checked. Where the function itself
    computes in float32, steps and tolerance are those of float32.

    See Also
    --------
    finite_difference : the plain quotient.

    Examples
    --------
    >>> found = check_gradients(torch.nn.Linear(3, 2), torch.ones(4, 3))
    >>> bool(found), found.checked
    (True, {'weight': 6, 'bias': 2, 'input': 12})
    >>> check_gradients(lambda x: x**2 + (3 * x).detach(), torch.tensor(1.0)).mismatches[0].kind
    'wrong'
    """
    if not isinstance(n_samples, int) or n_samples < 1:
        raise InvalidParameter(
            f"check_gradients: `n_samples` must be a whole number of at least 1; got {n_samples!r}."
        )
    if not 0 < rtol < 1:
        raise InvalidParameter(
            f"check_gradients: `rtol` must be between 0 and 1, both excluded; got {rtol!r}."
        )
    subject = Subject(fn, inputs, seed_from(random_state))
    with subject.scope():
        _refuse_noise(subject)
        try:
            gradients = subject.gradient()
        except (RuntimeError, TypeError, ValueError) as error:  # the forward pass has just worked
            return GradientCheck(failure=str(error).strip().split("\n")[0])
        return _Check(subject, gradients, n_samples, rtol).run()


def _refuse_noise(subject: Subject) -> None:
    """Refuse functions that have no value, or not one value."""
    try:
        first, second = subject.value(), subject.value()
    except RuntimeError as error:
        if "dtype" not in str(error) and "Double" not in str(error):
            raise
        raise InvalidData(
            f"check_gradients: `fn` must work in float64; got {error}. Pass the modules and "
            "tensors it closes over as inputs, so that they can be copied: "
            "check_gradients(lambda net, x: …, net, x)."
        ) from error
    if not isfinite(first):
        raise InvalidData(f"check_gradients: the output of `fn` must be finite; got {first}.")
    if first != second:
        raise InvalidData(
            "check_gradients: `fn` must give the same value twice from the same seeds; got "
            f"{first:.9g} and {second:.9g}. Let it draw from torch's, NumPy's or Python's global "
            "generator instead of one of its own."
        )


@dataclass
class _Check:
    """One check: screens every entry, then judges the suspicious ones."""

    subject: Subject
    gradients: Gradients
    n_samples: int
    rtol: float
    suspects: list[Place] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    worst: float = 0.0

    def __post_init__(self) -> None:
        size, eps = self.subject.measure()
        self.step = eps ** (1 / 3)  # balances the errors of truncation and rounding
        self.rounding = 50 * eps * max(size, 1e-30)
        self.floor = self.rounding / self.step
        self.rtol = max(self.rtol, 10 * eps ** (2 / 3))

    def run(self) -> GradientCheck:
        for name in self.subject.leaves:
            self._screen(name)
        mismatches, unresolved = self._judge()
        return GradientCheck(
            mismatches=sorted(mismatches, key=lambda m: -m.error),
            checked=self.checked,
            unresolved=unresolved,
            unused=self.unused,
            skipped=self.subject.skipped,
            worst=self.worst,
        )

    # ---- screening ----

    def _screen(self, name: str) -> None:
        """Compare entries of one leaf with plain central differences; note those that differ."""
        places = self._sample(name)
        self.checked[name] = len(places)
        differ, moved = [], False
        for place in places:
            step = self._step(place)
            f = self.subject.at(*place)
            numeric = (f(step) - f(-step)) / (2 * step)
            moved |= abs(numeric) > self.floor
            if not self._agree(_entry(self.gradients, place), numeric, record=True):
                differ.append(place)
        if not differ and len(places) < len(self.subject.entries[name]):
            differ = list(self._search(name))
        if self.gradients[name] is None and not moved and not differ:
            self.unused.append(name)
        self.suspects += differ

    def _sample(self, name: str) -> list[Place]:
        entries = self.subject.entries[name]
        if len(entries) > self.n_samples:
            source = generator(self.subject.seed, len(self.checked))
            entries = entries[torch.randperm(len(entries), generator=source)[: self.n_samples]]
        return [Place(name, entry) for entry in entries.tolist()]

    def _search(self, name: str) -> Iterator[Place]:
        """Move the whole leaf along random signs; halve the set of entries while it does not fit.

        A wrong entry anywhere shows: the direction touches all of them.
        """
        entries = self.subject.entries[name]
        source = generator(self.subject.seed, len(self.checked))
        signs = torch.rand(len(entries), generator=source, dtype=torch.float64).sub(0.5).sign()
        gap, allowed = self._gap(name, entries, signs)
        if abs(gap) <= allowed:
            return
        while len(entries) > 1:
            half = len(entries) // 2
            parts = [(entries[:half], signs[:half]), (entries[half:], signs[half:])]
            gaps = [abs(self._gap(name, *part)[0]) for part in parts]
            entries, signs = parts[gaps.index(max(gaps))]
        yield Place(name, int(entries))

    def _gap(self, name: str, entries: Tensor, signs: Tensor) -> tuple[float, float]:
        """Return numeric minus analytic slope along signs of some entries, and what is allowed."""
        leaf, analytic = self.subject.leaves[name], self.gradients[name]
        direction = torch.zeros(leaf.numel(), dtype=leaf.dtype)
        direction[entries] = signs / len(entries) ** 0.5
        direction = direction.view(leaf.shape).to(leaf.device)
        f = self.subject.along(name, direction)
        numeric = (f(self.step) - f(-self.step)) / (2 * self.step)
        if analytic is None:
            return numeric, self.floor
        size = max(abs(numeric), analytic.square().mean().sqrt().item())
        gap = numeric - (analytic * direction).sum().item()
        return gap, self.rtol * size + self.floor

    # ---- judging ----

    def _judge(self) -> tuple[list[Mismatch], list[tuple[str, tuple[int, ...]]]]:
        here = {place: self._verdict(place, self.gradients) for place in self.suspects}
        final = {p: v for p, v in here.items() if v.kind in ("agrees", "not finite")}
        for number in range(NEIGHBOURS):
            left = [place for place in here if place not in final]
            if not left:
                break
            with self.subject.neighbour(number):
                gradients = self.subject.gradient()
                for place in left:
                    verdict = self._verdict(place, gradients)
                    if verdict.kind != "unresolved":
                        final[place] = verdict
        wrong = {p: v for p, v in final.items() if v.kind in ("wrong", "not finite")}
        # the numbers of the point that was asked about, where they are clear
        shown = {p: here[p] if here[p].kind == v.kind else v for p, v in wrong.items()}
        unresolved = [(p.name, self._index(p)) for p in here if p not in final]
        return [self._mismatch(p, v) for p, v in shown.items()], unresolved

    def _verdict(self, place: Place, gradients: Gradients) -> Verdict:
        """Differentiate at several step sizes; two that agree with each other decide."""
        analytic = _entry(gradients, place)
        f, middle, best = self.subject.at(*place), self.subject.value(), self._step(place)
        clear: list[Slope] = []
        for scale in SCALES:
            found = slope(f, middle, scale * best)
            if self._agree(analytic, found.value):
                return Verdict("agrees", analytic, found.value)
            gap = abs(analytic - found.value) if isfinite(analytic) else abs(found.value) + 1
            if not max(found.error, self.rounding / (scale * best)) < 0.1 * gap:
                continue
            if any(abs(found.value - other.value) < 0.1 * gap for other in clear):
                kind: Any = "wrong" if isfinite(analytic) else "not finite"
                return Verdict(kind, analytic, found.value)
            clear.append(found)
        return Verdict("unresolved", analytic, float("nan"))

    def _agree(self, analytic: float, numeric: float, record: bool = False) -> bool:
        size = max(abs(analytic), abs(numeric))
        gap = abs(analytic - numeric)
        agree = gap <= self.rtol * size + self.floor
        if agree and record and size > self.floor / self.rtol:  # more than rounding
            self.worst = max(self.worst, gap / size)
        return agree

    def _step(self, place: Place) -> float:
        size = self.subject.leaves[place.name].data.view(-1)[place.entry].abs().item()
        return self.step * max(1.0, size)

    def _index(self, place: Place) -> tuple[int, ...]:
        shape = self.subject.leaves[place.name].shape
        return tuple(int(i) for i in torch.unravel_index(torch.tensor(place.entry), shape))

    def _mismatch(self, place: Place, verdict: Verdict) -> Mismatch:
        _, analytic, numeric = verdict
        kind: Any = "detached" if analytic == 0 else verdict.kind
        return Mismatch(place.name, self._index(place), analytic, numeric, kind)


def _entry(gradients: Gradients, place: Place) -> float:
    found = gradients[place.name]
    return 0.0 if found is None else found.reshape(-1)[place.entry].item()
