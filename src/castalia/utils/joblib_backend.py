"""Where joblib runs its tasks."""

from __future__ import annotations

from joblib.parallel import get_active_backend

__all__ = ["runs_elsewhere"]


def runs_elsewhere() -> bool:
    """Whether tasks of joblib may run on machines that do not see this one's files."""
    backend, _ = get_active_backend()
    return not type(backend).__module__.startswith("joblib.")
