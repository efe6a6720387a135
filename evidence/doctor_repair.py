"""Repairable faults planted in our estimators, and what ``diagnose(…).apply()`` makes of them.

Every case has a healthy estimator, spoilt by one setting (or by a scaler or class weights left
out). Scores are accuracy, balanced accuracy where classes are rare, or R², on rows held out from
everybody. Repaired: at least 95 % of the healthy score. ``JOBS=8`` treats so many at a time.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

from evidence.corpus.repairs import ENOUGH, FAULTS
from evidence.rows import print_table


def run(quick: bool = False) -> None:
    """Diagnose and repair every case."""
    chosen = [i for i, fault in enumerate(FAULTS) if fault.quick or not quick]
    with ProcessPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        rows = list(pool.map(_treated, chosen))
    hurt = [row for row in rows if row[4] != "no harm"]
    repaired = sum(row[4] == "yes" for row in hurt)
    columns = ["fault", "healthy", "spoilt", "repaired", "≥ 95 %", "first finding", "remedy"]
    print_table(f"Repair: {repaired} of {len(hurt)} that did harm", columns, rows)


def _treated(i: int) -> list[str]:
    healthy, spoilt, treated, found = FAULTS[i].treat()
    good = "yes" if treated >= ENOUGH * healthy else "no"
    good = "no harm" if spoilt >= ENOUGH * healthy and good == "yes" else good
    first = found.findings[0] if found.findings else None
    return [
        FAULTS[i].name,
        *(f"{score:.3f}" for score in (healthy, spoilt, treated)),
        good,
        "none" if first is None else f"{first.code} {first.name}",
        "" if first is None else str(first.remedy),
    ]
