"""What a gradient check found, and how it says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from castalia.utils.text import listing, plural

__all__ = ["GradientCheck", "Mismatch"]


@dataclass(frozen=True)
class Mismatch:
    """One entry whose gradient is not the slope of the function.

    Attributes
    ----------
    name, index
        The parameter or input, and the place in it.
    analytic, numeric
        What autograd says and what finite differences say, for one fixed random combination of
        the outputs (the output itself where it is one number).
    kind
        "wrong"; "detached" where autograd sees no dependence; "not finite".
    """

    name: str
    index: tuple[int, ...]
    analytic: float
    numeric: float
    kind: Literal["wrong", "detached", "not finite"]

    @property
    def error(self) -> float:
        """Difference over the larger of the two values."""
        size = max(abs(self.analytic), abs(self.numeric))
        gap = abs(self.analytic - self.numeric)
        return gap / size if size and gap == gap else float("inf")

    def __str__(self) -> str:
        place = f"`{self.name}`{list(self.index) if self.index else ''}"
        text = f"{place}: analytic {self.analytic:.6g}, numeric {self.numeric:.6g}"
        if self.kind == "wrong" and self.numeric:
            return f"{text} ({self.analytic / self.numeric:.4g} times)"
        return f"{text} ({self.kind})"


@dataclass(frozen=True)
class GradientCheck:
    """The result of `check_gradients`: true when no gradient was found to be wrong.

    Attributes
    ----------
    mismatches
        Wrong entries, worst first.
    checked
        How many entries of each parameter and input were compared.
    unresolved
        Entries that finite differences could not decide (kinks, noise); these accuse nobody.
    unused
        Parameters and inputs that the output does not depend on, by either account.
    skipped
        What was left out, and why.
    worst
        Largest relative error among the entries that agree.
    failure
        The message of a backward pass that broke down; empty otherwise.
    """

    mismatches: Sequence[Mismatch] = ()
    checked: Mapping[str, int] = field(default_factory=dict)
    unresolved: Sequence[tuple[str, tuple[int, ...]]] = ()
    unused: Sequence[str] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    worst: float = 0.0
    failure: str = ""

    def __bool__(self) -> bool:
        return not self.mismatches and not self.failure

    def __repr__(self) -> str:
        return f"GradientCheck({self._summary()})"

    def _summary(self) -> str:
        if self.failure:
            return f"backward failed: {self.failure}"
        entries = plural(sum(self.checked.values()), "entry").replace("entrys", "entries")
        seen = f"{entries} of {plural(len(self.checked), 'tensor')}"
        if self:
            return f"all agree: {seen}, largest relative error {self.worst:.1e}"
        names = dict.fromkeys(m.name for m in self.mismatches)
        return (
            f"wrong: {listing(names, last='and')} ({len(self.mismatches)} of {seen}); "
            f"worst {self.mismatches[0]}"
        )

    def report(self, most: int = 10) -> str:
        """Return the findings as lines of text, the worst entries first."""
        lines = [self._summary()]
        lines += [f"  {m}" for m in self.mismatches[:most]]
        if len(self.mismatches) > most:
            lines.append(f"  … and {len(self.mismatches) - most} more")
        if self.unresolved:
            names = dict.fromkeys(name for name, _ in self.unresolved)
            lines.append(
                f"  not decided, at a kink or in noise: {len(self.unresolved)} in "
                f"{listing(names, last='and')}"
            )
        if self.unused:
            lines.append(f"  the output does not depend on {listing(self.unused, last='and')}")
        lines += [f"  skipped `{name}`: {why}" for name, why in self.skipped.items()]
        return "\n".join(lines)
