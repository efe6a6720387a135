"""One training in several processes that it starts itself, here or on a Ray cluster."""

from __future__ import annotations

import os
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import torch.distributed as dist
from joblib import Parallel, delayed, effective_n_jobs

from castalia.errors import InvalidParameter
from castalia.train.training import Training
from castalia.utils.imports import require
from castalia.utils.joblib_backend import runs_elsewhere

__all__ = ["joint_fit"]


def joint_fit(est: Any, training: Training, *rows: Any, target: str | None = None) -> None:
    """Fit an estimator in processes that this one starts, and take what they learnt.

    Inside ``castalia.cluster(address)`` each is a task of Ray, otherwise a process of this machine.

    Parameters
    ----------
    est
        The estimator.
    training
        Its ``workers`` says how many; all must run at a time, since they wait for each other.
    rows
        What ``fit`` takes.
    target
        The column to predict: each process reads what it needs itself.
    """
    workers = training.workers or 1
    elsewhere = runs_elsewhere()
    room = effective_n_jobs(-1 if elsewhere else workers)
    if room < workers:
        raise InvalidParameter(
            f"Training: `workers={workers}` needs room for as many tasks at a time; there is room "
            f"for {room}. Use fewer workers or a larger cluster."
        )
    host = "localhost"
    if elsewhere:
        host = require("ray", caller="Training", extra="cluster").util.get_node_ip_address()
    # where they meet
    store = dist.TCPStore(  # type: ignore[attr-defined]
        host, 0, is_master=True, wait_for_workers=False
    )
    given, twin = est.training, copy(est)
    twin.training = replace(training, workers=None)
    named = {} if target is None else {"target": target}
    ranks = (
        delayed(fit_rank)(rank, workers, (host, store.port), twin, rows, named, local=not elsewhere)
        for rank in range(workers)
    )
    fitted = Parallel(n_jobs=workers, batch_size=1, pre_dispatch="all")(ranks)[0]
    vars(est).update(vars(deepcopy(fitted)))  # what comes from Ray's store cannot be written to
    est.training = given


def fit_rank(
    rank: int,
    world: int,
    meeting: tuple[str, int],
    est: Any,
    rows: Any,
    named: dict[str, Any],
    *,
    local: bool = True,
) -> Any:
    """Fit as one of several processes; the first returns the fitted estimator.

    Those of one machine share its devices; a task of Ray sees its own only.
    """
    before = dict(os.environ)
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": str(rank if local else 0),
        "MASTER_ADDR": meeting[0],
        "MASTER_PORT": str(meeting[1]),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the process that started them holds the store
    }
    try:
        est.fit(*rows, **named)
        return est if rank == 0 else None
    finally:
        os.environ.clear()
        os.environ |= before
        if dist.is_initialized():  # the others must not wait for one that has failed
            dist.destroy_process_group()
