"""Whether processes that train together were given the same rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.data.batches import DiskRows, Samples, SparseRows, TensorRows
from castalia.errors import InvalidData
from castalia.utils.tensor_trees import leaves

__all__ = ["check_same_rows"]

SAMPLED = 64  # rows that are compared
CLOSE = 1e-3  # share by which sums may differ: machines round differently
_READ = (TensorRows, DiskRows, SparseRows)  # rows whose reading changes nothing and costs little


def check_same_rows(data: Samples, strategy: Any, device: torch.device) -> None:
    """Raise ``InvalidData`` in every process where one has other rows than the first.

    Each takes its share of the same batches: with other rows it would train on others than it
    should, and with another number of them wait forever.
    """
    if strategy.world == 1:
        return
    rows = torch.arange(0, len(data), max(1, len(data) // SAMPLED))[:SAMPLED]
    known = [leaf for leaf in leaves(data.y) if isinstance(leaf, Tensor)]
    some = [leaf.index_select(0, rows.to(leaf.device)) for leaf in known]
    some += [data.x.take(rows)] if isinstance(data.x, _READ) else []
    mark = [float(len(data))]
    for tensor in some:
        values = tensor.cpu().double().nan_to_num().flatten()
        values *= torch.linspace(0.5, 1.5, len(values), dtype=torch.float64)  # order counts
        mark += [float(values.sum()), float(values.abs().sum())]
    first, *others = strategy.gather(torch.tensor(mark, device=device, dtype=torch.float64))
    near = CLOSE * first[1:].view(-1, 2)[:, 1:]  # of the sums of sizes, (parts, 1)
    for rank, other in enumerate(others, start=1):
        far = (other - first)[1:].view(-1, 2).abs() > near
        if other[0] != first[0]:
            got = f"process 0 has {int(first[0]):,}, process {rank} {int(other[0]):,}"
        elif far.any():
            got = f"those of process {rank} are others than those of process 0"
        else:
            continue
        raise InvalidData(
            f"Training: every process must have the same rows, of which it takes its share; {got}. "
            "Read the same files in all of them."
        )
