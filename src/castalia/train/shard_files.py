"""Shards of a checkpoint: a safetensors file a process, by ``torch.distributed.checkpoint``.

They are read by any number of processes, each of which takes the parts that it needs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from castalia.errors import DamagedFile, WriteFailed
from castalia.train.state_trees import first_line
from castalia.utils.atomic_files import digest

__all__ = ["read_shards", "shards_are_whole", "write_shards"]


def write_shards(folder: Path, tensors: dict[str, Tensor]) -> dict[str, str]:
    """Write the parts of this process; return the digests of the files of all of them.

    Raises
    ------
    WriteFailed
        When one of the processes cannot write.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    try:
        with _quiet():
            save(
                tensors, storage_writer=HuggingFaceStorageWriter(str(folder), save_distributed=True)
            )
    except CheckpointException as error:
        reason = first_line(next(iter(error.failures.values()))[0])
        raise WriteFailed(f"write_checkpoint: `{folder}` cannot be written ({reason}).") from error
    mine = {path.name: digest(path) for path in folder.glob(f"shard-{dist.get_rank() + 1:05d}-*")}
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, mine)
    return {name: mark for files in found for name, mark in files.items()}


def shards_are_whole(folder: Path, digests: Mapping[str, str], rank: int, world: int) -> bool:
    """Whether the files that this process checks, one of ``world``, are as they were written."""
    names = sorted(digests)[rank::world]
    try:
        return all(digest(folder / name) == digests[name] for name in names)
    except OSError:
        return False


def read_shards(
    folder: Path, template: Mapping[str, Tensor], kinds: tuple[str, ...]
) -> dict[str, Tensor]:
    """Read what this process needs.

    Parameters
    ----------
    folder
        Where the shards lie.
    template
        Divided tensors by name: of each, the part that this process holds is read. Others are read
        whole.
    kinds
        First parts of the names that are wanted.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    reader = HuggingFaceStorageReader(str(folder))
    tensors: dict[str, Tensor] = {}
    known: dict[str, Any] = dict(reader.read_metadata().state_dict_metadata)
    for name, about in known.items():
        if name in template:
            tensors[name] = torch.empty_like(template[name])
        elif name.partition(".")[0] in kinds:
            tensors[name] = torch.empty(about.size, dtype=about.properties.dtype)
    try:
        with _quiet():
            load(tensors, storage_reader=reader)
    except CheckpointException as error:
        raise DamagedFile(f"read_checkpoint: `{folder}` cannot be read.") from error
    return tensors


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from warning that other kinds of devices have no collectives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
