"""A backend of joblib whose tasks are tasks of Ray.

Ray's own backend makes a pool of new processes for every call, which import everything again, and
loses the call with any of them. Tasks go to processes that stay, and begin again when the process
or its machine is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, SequentialBackend

from castalia import __version__
from castalia.errors import CastaliaError, InvalidParameter
from castalia.utils.imports import require
from castalia.utils.text import shorten

__all__ = ["RayTasks", "Stored"]

AGAIN = 8  # times that a task begins again when its process is gone
LARGE = 100_000  # bytes of an argument that is sent once for all tasks


class Stored:
    """A value in Ray's object store, whose arrays tasks read without copying them."""

    def __init__(self, value: Any) -> None:
        try:
            self.place = _ray().put(value)
        except TypeError as error:
            raise _unsendable(error) from error
        except _ray().exceptions.RayError as error:
            raise CastaliaError(
                f"cluster: {_size(value) / 1e9:.3g} GB of rows must fit into the memory and disk "
                f"that Ray has for objects; {shorten(' '.join(str(error).split()), 160)}. Start it "
                "with a larger `--object-store-memory`, or send fewer rows."
            ) from error

    def __call__(self) -> Any:
        """Return the value."""
        return _ray().get(self.place)


class _Argument(Stored):
    """A large argument, which a task gets as it was."""


class RayTasks(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs the calls of ``joblib.Parallel`` on the Ray cluster that was joined.

    Parameters
    ----------
    cpus, gpus
        Cores and devices of a task; parts of one are allowed.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, cpus: float = 1, gpus: float = 0, **others: Any) -> None:
        super().__init__(**others)
        self.cpus, self.gpus = cpus, gpus
        self.threads: ThreadPoolExecutor | None = None
        self.running: set[Any] = set()
        self.sent: dict[int, tuple[Any, _Argument]] = {}  # what is large, by its identity

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many tasks run at a time."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 has no meaning")
        if n_jobs is None or n_jobs > 0:
            return n_jobs or 1
        return max(self.room() + 1 + n_jobs, 1)

    def room(self) -> int:
        """Return how many tasks the cluster has room for; one that has none is refused."""
        there, rooms = _ray().cluster_resources(), []
        for kind, share in {"CPU": self.cpus, "GPU": self.gpus}.items():
            found = there.get(kind, 0)
            if found < share:
                raise InvalidParameter(
                    f"cluster: the cluster has {found:g} {kind}, and a task needs {share:g}."
                )
            rooms += [int(found / share)] if share else []
        return min(rooms)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """Make ready for a call, or for several."""
        self.parallel, workers = parallel, self.effective_n_jobs(n_jobs)
        self.threads = ThreadPoolExecutor(workers)  # each waits for a task
        self.task = (
            _ray()
            .remote(_carry_out)
            .options(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=AGAIN)
        )
        return workers

    def submit(self, func: Any, callback: Callable[..., Any] | None = None) -> Future[Any]:
        """Send calls to a worker, and what is large among their arguments once."""
        batch = copy(func)
        batch.items = [
            (call, [*map(self._light, words)], {n: self._light(v) for n, v in named.items()})
            for call, words, named in func.items
        ]
        future = self.threads.submit(self._outcome, batch)  # type: ignore[union-attr]
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """Return what the calls gave, or raise what they raised."""
        return out.result()

    def _light(self, value: Any) -> Any:
        if _size(value) < LARGE:
            return value
        if id(value) not in self.sent:
            self.sent[id(value)] = value, _Argument(value)
        return self.sent[id(value)][1]

    def _outcome(self, batch: Any) -> Any:
        errors = _ray().exceptions
        try:
            place = self.task.remote((batch, _versions(), os.getcwd()))
        except TypeError as error:
            raise _unsendable(error) from error
        self.running.add(place)
        try:
            return _ray().get(place)
        except errors.RayTaskError as error:
            raise error.cause from error
        except errors.RayError as error:
            raise CastaliaError(
                f"cluster: a task was lost: {shorten(' '.join(str(error).split()), 300)}"
            ) from error
        finally:
            self.running.discard(place)

    def stop_call(self) -> None:
        """Let go of what was sent for a call."""
        self.sent.clear()

    def terminate(self) -> None:
        """Let the threads end."""
        if self.threads is not None:
            self.threads.shutdown(wait=False, cancel_futures=True)
            self.threads = None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what runs: one of the tasks has failed."""
        self.terminate()
        for place in list(self.running):
            _ray().cancel(place)
        if ensure_ready:
            self.configure(self.parallel.n_jobs, self.parallel)

    def get_nested_backend(self) -> tuple[Any, None]:
        """Return what calls inside a task run by: one after the other."""
        return SequentialBackend(nesting_level=(self.nesting_level or 0) + 1), None


def _unsendable(error: TypeError) -> InvalidParameter:
    """Return Ray's long words for what pickle refuses as a sentence."""
    return InvalidParameter(
        "cluster: what a task needs must be such that it can be sent; "
        f"{shorten(str(error.__cause__ or error), 200)}."
    )


def _carry_out(sent: tuple[Any, dict[str, str], str]) -> Any:
    """Call what a worker was sent, where it has the same versions; paths mean what they mean here.

    A machine that does not have the folder stays in its own.
    """
    batch, wanted, folder = sent
    for name, here in _versions().items():
        if here != wanted[name]:
            raise InvalidParameter(
                f"cluster: the workers must have {name} {wanted[name]}, as this process has; one "
                f"has {here}. Install the same versions on all machines."
            )
    with suppress(OSError):
        os.chdir(folder)
    batch.items = [
        (call, [*map(_opened, words)], {n: _opened(v) for n, v in named.items()})
        for call, words, named in batch.items
    ]
    return batch()


@cache
def _versions() -> dict[str, str]:
    """Return the versions that a worker must share; builds for other devices may differ."""
    others = {name: version(name).split("+")[0] for name in ("torch", "scikit-learn")}
    return {"castalia": __version__, **others}


def _opened(value: Any) -> Any:
    return value() if isinstance(value, _Argument) else value


def _size(value: Any) -> int:
    """Return the bytes of an array or a table; of others, none."""
    pandas = sys.modules.get("pandas")  # no frame where it is not loaded
    if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series):
        return int(np.sum(value.memory_usage(index=False)))
    return value.nbytes if isinstance(value, np.ndarray) else 0


def _ray() -> Any:
    return require("ray", caller="cluster", extra="cluster")
