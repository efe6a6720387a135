"""Choosing a device, and how a CPU should work on small steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from castalia.errors import InvalidParameter
from castalia.utils.process_lock import exclusive, is_forked

__all__ = [
    "cpu_scope",
    "forked_threads",
    "has_triton",
    "piecewise",
    "resolve_device",
    "wait_policy",
]

# Below this many multiply-adds a step, a second thread costs more in waiting than it computes, and
# oneDNN's dispatch more than it saves (on ARM it breaks even at about 5e7).
SMALL_STEP = 2**26


def resolve_device(device: Any) -> torch.device:
    """Turn ``"auto"``, a name or a device into a usable ``torch.device``."""
    if device == "auto":
        if torch.cuda.is_available():
            return _own_gpu()
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidParameter(
            f"Training: `device` must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'; got {device!r}."
        ) from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise InvalidParameter(
            f"Training: `device` is {device!r}, but torch sees no CUDA device. Use device='cpu'."
        )
    return _own_gpu() if found.type == "cuda" and found.index is None else found


def _own_gpu() -> torch.device:
    """Return the GPU of this process: by local rank under ``torchrun``, else the current one."""
    rank = os.environ.get("LOCAL_RANK")
    if rank is not None:
        torch.cuda.set_device(int(rank) % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())


def has_triton(device: torch.device) -> bool:
    """Say whether Triton can write kernels for a device: the current NVIDIA GPU, from Ampere on."""
    if device.type != "cuda" or torch.version.hip or device.index != torch.cuda.current_device():
        return False
    return _triton_installed() and torch.cuda.get_device_capability(device) >= (8, 0)


@cache
def _triton_installed() -> bool:
    return find_spec("triton") is not None


def wait_policy() -> str:
    """Say how idle OpenMP threads wait in this process; 'passive' shares cores well."""
    passive = (
        os.environ.get("OMP_WAIT_POLICY", "").upper() == "PASSIVE"
        or os.environ.get("GOMP_SPINCOUNT") == "0"
    )
    return "passive" if passive else "default"


def forked_threads() -> None:
    """Keep torch to one thread in a forked process, where it would wait for threads not there."""
    if is_forked() and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@contextmanager
def cpu_scope(device: torch.device, work: float, *, wait: bool = True) -> Iterator[dict[str, Any]]:
    """Run small CPU steps on one thread and on plain BLAS; restore both afterwards.

    A spinning second thread slows a small step many times over when another process wants the core,
    and the oneDNN dispatch costs more than a small matrix product. oneDNN is switched for the whole
    process, so one thread at a time may do it.

    Parameters
    ----------
    device
        Where the steps run; nothing changes on other devices than the CPU.
    work
        Multiply-adds of a step.
    wait
        Whether to wait for a thread inside such a scope; if not, oneDNN stays as it is there, as
        suits predictions beside a training.

    Yields
    ------
    dict
        The choice made, for the run's settings.
    """
    small = device.type == "cpu" and work < SMALL_STEP
    with exclusive(wait=wait) as held:
        threads, onednn = torch.get_num_threads(), torch._C._get_mkldnn_enabled()
        try:
            if small and threads != 1:
                torch.set_num_threads(1)
            if small and held:
                torch._C._set_mkldnn_enabled(False)
            yield {
                "threads": torch.get_num_threads(),
                "onednn": torch._C._get_mkldnn_enabled(),
                "waiting": wait_policy(),
            }
        finally:
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            if held:
                torch._C._set_mkldnn_enabled(onednn)


@contextmanager
def piecewise(device: torch.device, *, wait: bool = True) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a ``map`` for work on pieces of rows; on a CPU it spreads them over torch's threads.

    A thread that takes whole pieces waits for the others once a pass. Threads inside torch wait
    after every operation, which is slow when another process wants a core. So each piece gets one
    thread and, as its matrices have few columns, plain BLAS.

    Parameters
    ----------
    device
        Where the pieces are; on other devices than the CPU they come one after the other.
    wait
        As for ``cpu_scope``.
    """
    threads = torch.get_num_threads()
    with cpu_scope(device, 0, wait=wait):
        if device.type != "cpu" or threads == 1:
            yield map
        else:
            with ThreadPoolExecutor(threads) as pool:
                yield pool.map
