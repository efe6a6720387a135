"""The doctor's thresholds set anew without a part of its corpus, and judged on that part.

``python -m evidence doctor_calibration --records DIR`` trains every case once, keeps its record in
DIR, and from then on only judges. Each part is left out in turn: every threshold of origin "corpus"
is set on the other parts to the middle of the values that serve them best, and the part is judged
with these. The rules themselves were written by people who had seen all parts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import pickle
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from castalia.diagnose.monitor import loop_doctor
from castalia.diagnose.record import Record
from castalia.diagnose.rules import judge
from castalia.diagnose.script.joint_diagnosis import joined
from castalia.diagnose.thresholds import LIMITS
from castalia.utils.text import number
from evidence.corpus.cases import PARTS, cases
from evidence.doctor_effects import FACTORS, Outcome, effects, moved, with_limits
from evidence.rows import print_table

Chosen = dict[str, float]  # a factor for each threshold


def run(words: Sequence[str] = (), quick: bool = False) -> None:
    """Train what has no record yet, measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m evidence doctor_calibration")
    parser.add_argument("--records", type=Path, default=Path("runs/corpus"))
    parser.add_argument("--every", type=int, default=12 if quick else 1, help="one case of so many")
    parser.add_argument("--jobs", type=int, default=None)
    asked = parser.parse_args(list(words))
    asked.records.mkdir(parents=True, exist_ok=True)
    found = [case for part in PARTS for case in cases(part)][:: asked.every]
    jobs = [(str(asked.records), case.part, case.name) for case in found]
    with multiprocessing.get_context("spawn").Pool(asked.jobs) as pool:
        files = [one for one in pool.imap_unordered(kept, jobs, chunksize=2) if one]
        print(len(files), "records", flush=True)  # noqa: T201
        measured = pool.map(effects, sorted(files), chunksize=1)
        report(dict(measured), pool)


def kept(job: tuple[str, str, str]) -> str:
    """Train one case unless its record is there, and return its file; "" where nothing is kept."""
    import torch

    folder, part, name = job
    file = Path(folder) / f"{part}__{name}.pkl.gz"
    if file.exists():
        return str(file)
    torch.set_num_threads(1)
    case = next(found for found in cases(part) if found.name == name)
    records: dict[int, Record] = {}

    def keeping(record: Record, **options: Any) -> Any:
        records[id(record)] = record
        return judge(record, **options)

    loop_doctor.judge = keeping
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            diagnosis = case.run(0)
    finally:
        loop_doctor.judge = judge
    again = joined([(one.module, judge(one)) for one in records.values()])
    whole = again.codes == diagnosis.codes  # else more was asked than the rules
    line = {"part": part, "name": name, "right": case.right, "faulty": case.code is not None}
    line |= {"records": list(records.values()) if whole else [], "said": diagnosis.codes}
    line["alarms"] = tuple(one.code for one in diagnosis.findings if one.severity != "info")
    with gzip.open(file, "wb", compresslevel=1) as out:
        pickle.dump(line, out, protocol=4)
    return str(file)


def report(measured: dict[str, Any], pool: Any) -> None:
    """Print how each part is judged by the table, and by one that was made without it."""
    rows, totals = [], np.zeros((2, 3), int)
    parts = [part for part in PARTS if any(_part(file) == part for file in measured)]
    chosen: dict[str, Chosen] = {}
    for part in parts:
        rest = {file: one for file, one in measured.items() if _part(file) != part}
        mine = [file for file in measured if _part(file) == part]
        chosen[part] = best_factors(rest)
        as_is = [measured[file][0] for file in mine]
        anew = pool.starmap(with_limits, [(file, chosen[part]) for file in mine])
        counts = [_counts(outcomes) for outcomes in (as_is, anew)]
        totals += counts
        rows.append(_row(part, as_is, counts))
    every = [outcome for outcome, _ in measured.values()]
    rows.append(_row("**all**", every, totals))
    columns = ["part", "faulty", "first", "first, without the part", "anywhere"]
    columns += ["anywhere, without", "healthy", "alarmed", "alarmed, without"]
    print_table("Judged by the table, and by one that was made without the part", columns, rows)
    _print_limits(measured, chosen)


def _part(file: str) -> str:
    return Path(file).name.split("__")[0]


def _counts(outcomes: Sequence[Outcome]) -> list[int]:
    return [
        sum(getattr(one, what) for one in outcomes) for what in ("first", "anywhere", "alarmed")
    ]


def _row(part: str, outcomes: Sequence[Outcome], counts: Any) -> list[str]:
    faulty = sum(one.faulty for one in outcomes)
    healthy = len(outcomes) - faulty
    (a, b, c), (d, e, f) = counts
    shares = [f"{n} ({n / max(faulty, 1):.1%})" for n in (a, d, b, e)]
    alarms = [f"{n} ({n / max(healthy, 1):.1%})" for n in (c, f)]
    return [part, str(faulty), *shares, str(healthy), *alarms]


def best_factors(measured: dict[str, Any]) -> Chosen:
    """Return for each threshold the middle of the factors that serve these trainings best."""
    gains = _gains(measured)
    return {name: FACTORS[(low + high) // 2] for name, (low, high) in _ranges(gains).items()}


def _gains(measured: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return for each threshold what each factor gains: a share of the faulty ones named first.

    An alarm costs its share of the healthy ones.
    """
    outcomes = [outcome for outcome, _ in measured.values()]
    faulty = sum(one.faulty for one in outcomes)
    of = {True: 1 / max(faulty, 1), False: 1 / max(len(outcomes) - faulty, 1)}
    gains: dict[str, np.ndarray] = {}
    for outcome, changes in measured.values():
        for name, factor, other in changes:
            gain = gains.setdefault(name, np.zeros(len(FACTORS)))
            gain[FACTORS.index(factor)] += (other.worth - outcome.worth) * of[outcome.faulty]
    return gains


def _ranges(gains: dict[str, np.ndarray]) -> dict[str, tuple[int, int]]:
    """Return the first and the last of the best factors in a row, nearest to the middle."""
    found = {}
    for name, gain in gains.items():
        best = np.flatnonzero(gain > gain.max() - 1e-9)
        middle = len(FACTORS) // 2
        low = high = int(best[np.abs(best - middle).argmin()])
        while low - 1 in best:
            low -= 1
        while high + 1 in best:
            high += 1
        found[name] = (low, high)
    return found


def _print_limits(measured: dict[str, Any], chosen: dict[str, Chosen]) -> None:
    """Print each threshold that matters, the values that serve all, and those of the folds."""
    rows = []
    for name, (low, high) in sorted(_ranges(_gains(measured)).items()):
        value = LIMITS[name].value
        folds = [moved(value, one.get(name, 1.0)) for one in chosen.values()]
        best = [number(moved(value, FACTORS[i]), 2) for i in (low, high)]
        ends = [number(end, 2) for end in (min(folds), max(folds))]
        rows.append([name, number(value, 3), " to ".join(best), " to ".join(ends)])
    columns = ["threshold", "value", "best on all parts", "chosen without one part"]
    print_table("Thresholds that change a diagnosis within a third and three times", columns, rows)
    print(json.dumps(chosen))  # noqa: T201
