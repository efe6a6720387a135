"""Repairable faults planted in our estimators, and what ``diagnose(…).apply()`` makes of them.

Every case has a healthy estimator, spoilt by one setting (or by a scaler or class weights left
out). Scores are accuracy, balanced accuracy where classes are rare, or R², on rows held out from
everybody. Repaired: at least 95 % of the healthy score.
"""

from __future__ import annotations

from evidence.corpus.repairs import ENOUGH, FAULTS
from evidence.rows import print_table


def run(quick: bool = False) -> None:
    """Diagnose and repair every case."""
    rows, repaired = [], 0
    chosen = [fault for fault in FAULTS if fault.quick or not quick]
    for fault in chosen:
        healthy, spoilt, treated, found = fault.treat()
        good = treated >= ENOUGH * healthy
        repaired += good
        first = found.findings[0] if found.findings else None
        rows.append(
            [
                fault.name,
                f"{healthy:.3f}",
                f"{spoilt:.3f}",
                f"{treated:.3f}",
                "yes" if good else "no",
                "none" if first is None else f"{first.code} {first.name}",
                "" if first is None else str(first.remedy),
            ]
        )
    columns = ["fault", "healthy", "spoilt", "repaired", "≥ 95 %", "first finding", "remedy"]
    print_table(f"Repair: {repaired} of {len(chosen)}", columns, rows)
