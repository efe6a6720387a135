"""The plan of a finished fit, to be carried out again with the doctor's remedies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from castalia.errors import InvalidData
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_result import FitResult

__all__ = ["cure_plan"]


def cure_plan(
    run: str | os.PathLike[str], out: str | None = None, *, verbose: Any = False
) -> FitPlan:
    """Return the plan of a run with the doctor called in."""
    folder = Path(run)
    found = FitResult.load(folder)
    settings = found.summary.get("plan")
    if found.summary.get("task") == "generation":
        raise InvalidData(
            f"cure: `{folder}` must be a fit that predicts, whose remedies scores can decide; it "
            "draws. Fit it again with other settings (--set)."
        )
    if settings is None:
        raise InvalidData(
            f"cure: `{folder}` must be a fit of a file, which can be read again; its data were in "
            "memory. Call `castalia.diagnose.cure(est, X, y, X_val, y_val)` on them."
        )
    own = {name: tuple(v) if isinstance(v, list) else v for name, v in settings["settings"].items()}
    target = out if out is not None else str(folder.with_name(f"{folder.name}-cured"))
    fresh = {
        "settings": own,
        "drop": tuple(settings.get("drop", ())),
        "run": target,
        "doctor": True,
        "verbose": verbose,
    }
    return FitPlan(**{**settings, **fresh})
