"""What the rules on learning rates are calibrated on: their quantities in every training.

One line of JSON for each training of the corpus, printed and, where ``CALIBRATION`` names a file,
written there: what was planted, what was said, and the numbers that CST101, CST102, CST104 and
CST111 compare with the limits of ``castalia.diagnose.thresholds``.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import warnings
from typing import Any

import numpy as np

from castalia.diagnose.monitor import loop_doctor
from castalia.diagnose.record import Look, Record
from castalia.diagnose.rules.case import Case
from evidence.corpus.cases import PARTS, cases
from evidence.corpus.regimes._rates import SCORES

NUMBERS = [
    "lr",
    "steps",
    "learnt",
    "poor",
    "stuck",
    "broken",
    "nearly_right",
    "initial",
    "start",
    "final",
    "guess",
    "noise",
    "ratio",
    "early_ratio",
    "turning",
    "spike",
    "annealed",
    "normalised",
    "adversarial",
    "pooled",
    "comparable",
    "narrow",
]


def run(quick: bool = False) -> None:
    """Train every case with seed 0; every sixth only where it is to be quick."""
    jobs = [(c.part, c.name) for part in PARTS for c in cases(part)][:: 6 if quick else 1]
    path = os.environ.get("CALIBRATION", os.devnull)
    with multiprocessing.get_context("spawn").Pool() as pool, open(path, "w") as file:
        for line in pool.imap_unordered(measured, jobs, chunksize=2):
            file.write(line + "\n")
            if path == os.devnull:
                print(line)  # noqa: T201


def measured(job: tuple[str, str]) -> str:
    """Train one case and return its line."""
    import torch

    torch.set_num_threads(1)
    part, name = job
    case = next(found for found in cases(part) if found.name == name)
    records: list[Record] = []
    judge = loop_doctor.judge

    def keeping(record: Record, **options: Any) -> Any:
        if not any(record is known for known in records):  # it may be judged while it is made
            records.append(record)
        return judge(record, **options)

    loop_doctor.judge = keeping
    SCORES.clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            diagnosis = case.run(0)
    finally:
        loop_doctor.judge = judge
    said = [(f.code, f.severity, round(f.confidence, 2)) for f in diagnosis.findings]
    line = {"part": part, "name": name, "code": case.code, "right": case.right, "said": said}
    line |= {"codes": diagnosis.codes, "score": SCORES[-1] if SCORES else None}
    return json.dumps(line | {"records": [quantities(record) for record in records[-3:]]})


def quantities(record: Record) -> dict[str, Any]:
    """Return the numbers of one record."""
    case = Case(record)
    with np.errstate(all="ignore"):
        found = {name: _plain(getattr(case, name)) for name in NUMBERS}
        found["levels"] = [case.level(i / 10, (i + 1) / 10) for i in range(10)]
    found["optimizer"] = case.optimizer.kind if case.optimizer else None
    found["losses"] = [round(float(x), 5) for x in case.losses[:12]]
    found["held"] = [e.loss for e in record.evaluations][-12:]
    found["travelled"] = [w.travelled for w in record.weights if len(w.shape) >= 2]
    found["looks"] = [_look(case, look) for look in record.looks]
    found["head"] = (case.head.loss, case.head.reduction, case.head.scale, case.task)
    return found


def _look(case: Case, look: Look) -> dict[str, Any]:
    g, h, d = look.gradient, look.next_gradient, look.update
    found = {"step": look.step, "loss": look.loss, "lr": look.lr, "size": look.size}
    if len(ratios := case.ratios(look)):
        found["ratios"] = [float(x) for x in np.quantile(ratios, (0, 0.5, 1))]
    if g is not None:
        found["g"] = float(np.linalg.norm(g))
    if g is not None and d is not None and len(g) == len(d):
        found |= {"gd": float(g @ d), "d": float(np.linalg.norm(d))}
    if h is not None and d is not None and len(h) == len(d):
        found |= {"hd": float(h @ d), "h": float(np.linalg.norm(h))}
    if g is not None and h is not None and len(g) == len(h):
        found["gh"] = float(g @ h)
    return found


def _plain(value: Any) -> float:
    return float(value)
