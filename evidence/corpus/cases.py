"""The registry of the doctor's corpus: every training, with what is wrong with it.

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
# Each folder in the order in which the doctor met it. Rules and thresholds are made on the first;
# every other one is by an author who had not read them, and is run once before it improves them.
PARTS = {
    "calibration": "the trainings that the thresholds are set on",
    "exercises": "one fault on small data of every kind; the first to be held out",
    "styles": "three people's training loops, each with its own way to report; the second part",
    "posts": "trainings as in homework, notebooks and questions; the third part",
    "programs": "whole programs and scripts that do not know the doctor; the fourth part",
    "tutorials": "tutorials of all kinds, done wrong and done right; the fifth part",
    "pairs": "posted programs, each with its mistake and as its answers mend it; the sixth part",
    "regimes": "every scale of loss, gradient and weight at right and wrong rates; seventh part",
}
Run = Callable[[int], Diagnosis]


@dataclass(frozen=True)
class Case:
    """One training of the corpus.

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
        The folder of the case, a key of PARTS.
    accept
        Further codes that are an equally right first answer for this very training.
    run
        Trains with the given seed, watched by the doctor, and returns the diagnosis.
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

    def is_first(self, diagnosis: Diagnosis) -> bool:
        """Whether the diagnosis leads with a right answer."""
        return bool(diagnosis.codes) and diagnosis.codes[0] in self.right


_CASES: dict[tuple[str, str], Case] = {}


def case(
    code: str | None,
    *,
    dose: str = "none",
    data: str = "tabular",
    net: str = "mlp",
    accept: tuple[str, ...] = (),
) -> Callable[[Run], Run]:
    """Put the decorated training into the corpus and leave it as it is."""
    unknown = {code, *accept} - {None, *NAMES}
    if unknown:
        raise ValueError(f"case: codes must be of castalia.diagnose.NAMES; got {sorted(unknown)}.")
    if dose not in DOSES or (code is None) != (dose == "none"):
        raise ValueError(f"case: `dose` must be mild or severe, or none if healthy; got {dose!r}.")

    def register(run: Run) -> Run:
        *_, part, file = run.__module__.split(".")
        if part not in PARTS:
            raise ValueError(f"case: a case must lie in a folder of {list(PARTS)}; got {part!r}.")
        name = f"{file}.{run.__name__}"
        if (part, name) in _CASES:
            raise ValueError(f"case: names must be unique within a part; got {name!r} twice.")
        _CASES[part, name] = Case(name, code, dose, data, net, part, tuple(accept), run)
        return run

    return register


def cases(part: str | None = None) -> list[Case]:
    """Import the files of the corpus, or of one part, and return their cases ordered by name."""
    if part not in (None, *PARTS):
        raise ValueError(f"cases: `part` must be None or one of {list(PARTS)}; got {part!r}.")
    wanted = list(PARTS) if part is None else [part]
    for folder in wanted:
        for file in sorted((Path(__file__).parent / folder).glob("[!_]*.py")):
            import_module(f"{__package__}.{folder}.{file.stem}")
    return [found for (of, _), found in sorted(_CASES.items()) if of in wanted]
