"""Memory that runs out and devices that fail in a training, in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from castalia.errors import CastaliaError, DeviceFailed, OutOfMemory
from castalia.train.recorder import Recorder
from castalia.train.state import TrainState
from castalia.utils.memory_errors import is_out_of_memory

__all__ = ["faults_explained"]


@contextmanager
def faults_explained(state: TrainState, device: torch.device, recorder: Recorder) -> Iterator[None]:
    """Raise what a device does to a training as an error of ours, which says how to go on."""
    try:
        yield
    except CastaliaError:
        raise
    except Exception as error:
        where = f"in epoch {state.epoch + 1}, at step {state.total + 1}"
        if is_out_of_memory(error):
            raise OutOfMemory(
                f"Training: the memory of {device} ran out {where}. Lower `batch_size`, take a "
                f"smaller network, or free memory. {_remains(recorder)}"
            ) from error
        if _is_fault(error):
            said = str(error).strip().splitlines()[0]
            raise DeviceFailed(
                f"Training: {device} failed {where} ({said}). This process cannot use it any "
                f"more: start a new one. {_remains(recorder)}"
            ) from error
        raise


def _is_fault(error: Exception) -> bool:
    """Say whether a device itself failed: its errors name it first."""
    return isinstance(error, torch.AcceleratorError) or (
        isinstance(error, RuntimeError) and str(error).startswith(("CUDA error", "NCCL error"))
    )


def _remains(recorder: Recorder) -> str:
    if recorder.run is None:
        return "With Training(run=…) a training keeps checkpoints to go on from."
    return f"The same fit goes on from the last checkpoint in `{recorder.run.folder}`."
