"""The registry of the doctor's suite: every training, with what is wrong with it.

A case is a function from a seed to a diagnosis, written down with what was planted in it::

    @case("CST101", dose="severe", data="tabular", net="mlp")
    def a_rate_of_ten(seed):
        ...
        return doctor.diagnosis()
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from castalia.diagnose import NAMES, Diagnosis

__all__ = ["PARTS", "Case", "case", "cases"]

DOSES = ("mild", "severe", "none")
PARTS = ("calibration", "held_out", "second", "third", "programs", "fifth", "sixth")
Run = Callable[[int], Diagnosis]


@dataclass(frozen=True)
class Case:
    """One training of the suite.

    Attributes
    ----------
    name
        File and function: "optimisation.a_rate_of_ten"; unique within its part.
    code
        The planted fault; None for a healthy training.
    dose
        "mild" or "severe"; "none" for a healthy training.
    data, net
        Kind of data and of network, in a word: "tabular", "images"; "mlp", "lstm".
    part
        One of PARTS: the folder of the case.
    accept
        Further codes that are an equally right first answer for this very training.
    run
        Trains with the given seed under the doctor's eyes and returns what the doctor says.
    """

    name: str
    code: str | None
    dose: str
    data: str
    net: str
    part: str
    accept: tuple[str, ...]
    run: Run

    @property
    def right(self) -> tuple[str, ...]:
        """The codes that are a right first answer; empty for a healthy training."""
        return (*(() if self.code is None else (self.code,)), *self.accept)


_CASES: dict[tuple[str, str], Case] = {}


def case(
    code: str | None,
    *,
    dose: str = "none",
    data: str = "tabular",
    net: str = "mlp",
    accept: tuple[str, ...] = (),
) -> Callable[[Run], Run]:
    """Put the decorated training into the suite and leave it as it is."""
    unknown = {code, *accept} - {None, *NAMES}
    if unknown:
        raise ValueError(f"case: codes must be of castalia.diagnose.NAMES; got {sorted(unknown)}.")
    if dose not in DOSES or (code is None) != (dose == "none"):
        raise ValueError(f"case: `dose` must be mild or severe, or none if healthy; got {dose!r}.")

    def register(run: Run) -> Run:
        *_, part, file = run.__module__.split(".")
        if part not in PARTS:
            raise ValueError(f"case: a case must lie in a folder of {PARTS}; got {part!r}.")
        name = f"{file}.{run.__name__}"
        if (part, name) in _CASES:
            raise ValueError(f"case: names must be unique within a part; got {name!r} twice.")
        _CASES[part, name] = Case(name, code, dose, data, net, part, tuple(accept), run)
        return run

    return register


def cases(part: str | None = None) -> list[Case]:
    """Import the files of the suite, or of one part, and return their cases ordered by name."""
    if part not in (None, *PARTS):
        raise ValueError(f"cases: `part` must be None or one of {PARTS}; got {part!r}.")
    wanted = PARTS if part is None else (part,)
    for folder in wanted:
        for file in sorted((Path(__file__).parent / folder).glob("[!_]*.py")):
            import_module(f"{__package__}.{folder}.{file.stem}")
    return [found for (of, _), found in sorted(_CASES.items()) if of in wanted]
