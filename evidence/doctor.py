"""The doctor on its corpus: trainings with one planted fault each, and healthy ones.

The thresholds are set on the calibration part; the others are by authors who had not read the
rules (``PARTS`` of ``evidence.corpus.cases``). A fault counts as first if its code leads the
diagnosis, as anywhere if it is among the causes and symptoms; a healthy training should get
neither an error nor a warning.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections import Counter
from typing import NamedTuple

from castalia.diagnose import NAMES
from evidence.corpus.cases import PARTS, cases
from evidence.rows import print_table


class Seen(NamedTuple):
    """What the doctor said of one training.

    Attributes
    ----------
    part, name, code
        The case and the planted fault; None for a healthy training.
    right
        Codes that are a right first answer.
    said
        Codes of the diagnosis, the first cause first.
    alarms
        Codes of causes that are errors or warnings.
    """

    part: str
    name: str
    code: str | None
    right: tuple[str, ...]
    said: tuple[str, ...]
    alarms: tuple[str, ...]


def examine_case(job: tuple[str, str, int]) -> Seen:
    """Train one case and ask the doctor."""
    import torch

    torch.set_num_threads(1)
    part, name, seed = job
    case = next(found for found in cases(part) if found.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diagnosis = case.run(seed)
    alarms = tuple(f.code for f in diagnosis.findings if f.severity != "info")
    return Seen(part, name, case.code, case.right, diagnosis.codes, alarms)


def run(quick: bool = False) -> None:
    """Run all parts, two seeds of the calibration part and one of the others."""
    with multiprocessing.get_context("spawn").Pool() as pool:
        for part in reversed(PARTS):
            seeds = (0, 1) if part == "calibration" and not quick else (0,)
            jobs = [(part, case.name, seed) for seed in seeds for case in cases(part)]
            report(part, pool.map(examine_case, jobs, chunksize=4))


def report(part: str, seen: list[Seen]) -> None:
    """Print the rates, and for each code what was said first instead."""
    faulty = [s for s in seen if s.code is not None]
    healthy = [s for s in seen if s.code is None]
    first = sum(_is_first(s) for s in faulty)
    anywhere = sum(_is_anywhere(s) for s in faulty)
    alarmed = [s for s in healthy if s.alarms]
    rows = [_row(code, [s for s in faulty if s.code == code]) for code in NAMES]
    rows = [row for row in rows if row[1] != "0"]
    title = (
        f"{part}: right cause first in {first} of {len(faulty)} ({first / len(faulty):.0%}), "
        f"anywhere in {anywhere} ({anywhere / len(faulty):.0%}); "
        f"{len(alarmed)} of {len(healthy)} healthy trainings alarmed"
    )
    print_table(title, ["planted", "n", "first", "anywhere", "said first instead"], rows)
    for found in alarmed:
        print(f"healthy but alarmed: {found.name}: {', '.join(found.alarms)}")  # noqa: T201
    print()  # noqa: T201


def _row(code: str, seen: list[Seen]) -> list[str]:
    others = Counter((s.said[0] if s.said else "nothing") for s in seen if not _is_first(s))
    instead = ", ".join(f"{other} ×{n}" if n > 1 else other for other, n in others.most_common())
    counts = [len(seen), sum(map(_is_first, seen)), sum(map(_is_anywhere, seen))]
    return [f"{code} {NAMES[code]}", *map(str, counts), instead]


def _is_first(seen: Seen) -> bool:
    return bool(seen.said) and seen.said[0] in seen.right


def _is_anywhere(seen: Seen) -> bool:
    return any(code in seen.said for code in seen.right)
