"""A command in several processes of this machine, as ``torchrun`` runs it."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import uuid

from castalia.cli.error_exit import BUG, SAID
from castalia.utils.preemption import REQUEUE
from castalia.utils.process_ranks import rank_and_world

__all__ = ["in_processes"]


def in_processes(workers: int | None) -> None:
    """Run this very command in so many processes and leave with their exit code.

    One of those processes, and a command that wants one only, goes on.

    Parameters
    ----------
    workers
        How many; None: one, or as many as ``torchrun`` started.
    """
    if workers in (None, 1) or rank_and_world()[1] > 1:
        return
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // workers, 1)))
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # they say it
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=workers,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
    )
    try:
        with tempfile.TemporaryDirectory() as os.environ[SAID]:  # a mistake is said once
            elastic_launch(config, sys.executable)("-m", "castalia", *sys.argv[1:])
    except ChildFailedError as error:
        code = error.get_first_failure()[1].exitcode
        raise SystemExit(code if code > 0 else BUG) from None
    except SignalException:  # it was passed on to them
        raise SystemExit(REQUEUE) from None
    raise SystemExit(0)
