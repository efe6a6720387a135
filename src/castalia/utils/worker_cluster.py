"""Many trainings on many machines: whatever joblib would run in processes runs on a Ray cluster.

Searches, cross-validation, ensembles and scikit-learn's own ``n_jobs`` all go through joblib, so
one context serves local processes and a cluster.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend

from castalia.errors import InvalidParameter
from castalia.utils.imports import require
from castalia.utils.ray_tasks import RayTasks, Stored
from castalia.utils.text import public, shorten

__all__ = ["cluster", "held"]

WAIT = 10.0  # seconds for a head to answer


@contextmanager
def cluster(
    address: str | None = None, *, workers: int | None = None, cpus: float = 1, gpus: float = 0
) -> Iterator[int]:
    """Run what is parallel inside the block on a cluster, or in processes of this machine.

    ``n_jobs`` need not be set: what leaves it at None takes all workers. Trials, folds and members
    that no worker has begun wait; what fails there is raised here. On Ray, a task whose process or
    machine is gone begins again elsewhere.

    Parameters
    ----------
    address
        None: processes of this machine. ``"local"``: Ray, started on this machine and ended with
        the block. ``"auto"``, ``"host:6379"`` or ``"ray://host:10001"``: a Ray cluster that runs;
        its machines need the same versions of Python, Ray and Castalia.
    workers
        Most tasks at a time; None: as many as there is room for.
    cpus, gpus
        Cores and devices of a task on Ray; ``gpus=0.25`` puts four tasks on a device, and a task
        without one does not see any.

    Yields
    ------
    int
        How many tasks run at a time.

    Examples
    --------
    >>> from castalia import cluster
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.model_selection import cross_val_score
    >>> with cluster(workers=1):
    ...     len(cross_val_score(DummyClassifier(), [[0], [1]] * 4, [0, 1] * 4, cv=4))
    4
    """
    if workers is not None and workers < 1:
        raise InvalidParameter(f"cluster: `workers` must be at least 1 or None; got {workers}.")
    with ExitStack() as stack:
        backend: Any = "loky"
        if address is not None:
            stack.enter_context(_ray(address, workers))
            backend = RayTasks(cpus, gpus)
            backend.room()
        elif gpus:
            raise InvalidParameter(f"cluster: `gpus` needs an `address` of Ray; got {gpus}.")
        stack.enter_context(parallel_config(backend, n_jobs=workers or -1))
        yield effective_n_jobs(None)


@contextmanager
def _ray(address: str, workers: int | None) -> Iterator[None]:
    """Join a Ray cluster, or start one; what was joined before stays joined."""
    ray: Any = require("ray", caller="cluster", extra="cluster")
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        if address == "local":
            # without the address, Ray would join a cluster that was here before, dead or not
            ray.init(address="local", num_cpus=workers, include_dashboard=False, **options)
        else:
            _reach(address)
            ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, ImportError) as error:
        hint = ""
        if "timeout" in str(error):  # all that Ray's client says to one without the right token
            hint = " Where the cluster asks for a token, set RAY_AUTH_MODE and RAY_AUTH_TOKEN."
        raise InvalidParameter(
            f"cluster: `address` must be that of a Ray cluster that answers; got "
            f"'{public(address)}': {shorten(public(error), 160).rstrip('.')}.{hint}"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Raise ConnectionError where nobody listens: Ray would try for minutes."""
    match = re.fullmatch(r"(?:ray://)?(?:[^/@]*@)?([^/:@]+):(\d+)", address)
    if match is None:
        return
    try:
        socket.create_connection((match[1], int(match[2])), WAIT).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConnectionError(f"nothing answers there ({reason})") from error


def held(value: Any) -> Callable[[], Any]:
    """Return a function that gives a value in any task; on a cluster the value is sent there once.

    >>> held([1, 2])()
    [1, 2]
    """
    backend, _ = get_active_backend()
    return Stored(value) if isinstance(backend, RayTasks) else _Here(value)


class _Here:
    """A value that travels with its task."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value
