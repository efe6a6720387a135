"""What the process of a run uses: memory, processor time, memory of GPUs."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

from castalia.utils.imports import require

__all__ = ["gpu_memory", "resources_of"]

QUERY = ("--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader,nounits")
PATIENCE = 2  # seconds


def resources_of(pid: Any) -> dict[str, Any]:
    """Return bytes of memory and seconds of CPU time, and bytes of GPU memory where there are any.

    Nothing is known of a process on another host, or of one that is gone.
    """
    psutil = require("psutil", caller="studio", extra="studio")
    try:
        process = psutil.Process(int(pid))
        with process.oneshot():
            times = process.cpu_times()
            used = {"memory": process.memory_info().rss, "cpu": times.user + times.system}
    except (psutil.Error, ValueError):
        return {}
    gpu = gpu_memory(int(pid))
    return used | ({"gpu": gpu} if gpu else {})


def gpu_memory(pid: int) -> int:
    """Return the bytes that a process holds on NVIDIA's GPUs; 0 where there is none."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return 0
    try:
        done = subprocess.run(
            [command, *QUERY], capture_output=True, text=True, timeout=PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    cells = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return sum(int(row[1]) << 20 for row in cells if row[0] == str(pid) and row[-1].isdigit())
