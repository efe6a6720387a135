"""Images in files as rows of a training that does not hold them in memory.

Threads decode ahead of the loop, so that the next batch is there when it is asked for.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castalia.data.images.image_files import ImageFiles, decoders
from castalia.protocols import Rows

__all__ = ["FileRows", "fits_memory"]

AHEAD = 3  # batches that are decoded before they are asked for
SMALL = 256 << 20  # bytes that fit everywhere


class FileRows(Rows):
    """Rows (C, H, W) decoded when they are taken; a batch is (x - mean) / deviation.

    The pixels and the arithmetic are those of `ImageRows`: a training from files is, bit for bit,
    the one with the same images in memory.

    Parameters
    ----------
    files
        The images.
    size
        Height and width of a row.
    mean, deviation
        Of each channel, (C,), floats of the format that batches have.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = tempfile.mkdtemp()
    >>> Image.new("L", (2, 1), 3).save(f"{folder}/a.png")
    >>> rows = FileRows(ImageFiles(["a.png"], folder), (1, 2), *torch.ones(2, 1))
    >>> rows.take(torch.tensor([0]))
    tensor([[[[2., 2.]]]])
    """

    nbytes = 0  # they stay in files

    def __init__(
        self, files: ImageFiles, size: tuple[int, int], mean: Tensor, deviation: Tensor
    ) -> None:
        self.files, self.size = files, size
        self.shape = (len(mean), *size)
        self.mean, self.deviation = mean, deviation
        self._mean = mean.view(-1, 1, 1)
        self._factor = deviation.reciprocal().view(-1, 1, 1)
        self._ahead = _Ahead([])

    def __len__(self) -> int:
        return len(self.files)

    def plan(self, batches: Iterable[Tensor]) -> None:
        """Say which rows will be taken, to have three batches decoded before they are.

        Parameters
        ----------
        batches
            Positions of rows, batch after batch. A training that resumes may begin anywhere.
        """
        self._ahead.cancel()
        planned = [batch.tolist() for batch in batches]
        self._ahead = _Ahead([*chain(*planned)], AHEAD * max(map(len, planned), default=0))

    def take(self, index: Tensor, width: int | None = None) -> Tensor:
        """Return the images at these positions, normalised, (B, C, H, W)."""
        rows = index.tolist()
        started = self._ahead.pop(rows, self._start)
        futures = started or [self._start(row) for row in rows]
        found, faults = [], {}
        for row, future in zip(rows, futures, strict=True):
            try:
                found.append(torch.from_numpy(future.result()))
            except Exception as error:  # decoders raise whatever they like on damaged files
                faults[row] = error
        if faults:
            raise self.files.fault(faults, len(rows))
        x = torch.stack(found)
        return torch.sub(self._placed(x), self._mean).mul_(self._factor)

    def _start(self, row: int) -> Future[NDArray[np.uint8]]:
        decode, channels = self.files.image, len(self.mean)
        return decoders(self.files.workers).submit(decode, row, self.size, channels)

    def _placed(self, x: Tensor) -> Tensor:
        """Return bytes on the device of the batches, with channels last on a GPU."""
        device = self._mean.device
        if device.type != "cuda":
            return x.to(device)
        laid = x.contiguous(memory_format=torch.channels_last).pin_memory()
        return laid.to(device, non_blocking=True)

    def to(self, device: Any) -> FileRows:
        """Return the same rows, whose batches come on a device."""
        return FileRows(self.files, self.size, self.mean.to(device), self.deviation.to(device))


def fits_memory(size: int) -> bool:
    """Whether bytes may be held: a quarter of the memory, and half of what is free on a GPU."""
    if size <= SMALL:
        return True
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on every system
        memory = 16 << 30
    free = torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else memory
    return size <= min(memory // 4, free // 2)


class _Ahead:
    """Rows in the order in which they will be wanted, of which the next few are being decoded."""

    def __init__(self, order: list[int], most: int = 0) -> None:
        self.order, self.most = order, most
        self.first = self.next = 0  # positions in the order: oldest being decoded, next to start
        self.futures: deque[Future[NDArray[np.uint8]]] = deque()

    def pop(self, rows: list[int], start: Any) -> list[Future[NDArray[np.uint8]]]:
        """Return the futures of rows that follow the order from some point on, otherwise none."""
        at = self._find(rows)
        if at is None:
            return []
        self._skip_to(at)
        self._fill(at + len(rows), start)
        found = [self.futures.popleft() for _ in rows]
        self.first += len(rows)
        self._fill(self.first + self.most, start)
        return found

    def _find(self, rows: list[int]) -> int | None:
        """Return the place in the order from which on these rows follow; mostly the next one."""
        try:
            at = self.order.index(rows[0], self.first)
        except (ValueError, IndexError):  # not in what is left of the order, or no rows
            return None
        return at if self.order[at : at + len(rows)] == rows else None

    def _skip_to(self, place: int) -> None:
        """Forget rows before a place: a resumed training does not ask for them."""
        while self.futures and self.first < place:
            self.futures.popleft().cancel()
            self.first += 1
        self.first = place
        self.next = max(self.next, place)

    def _fill(self, stop: int, start: Any) -> None:
        for row in self.order[self.next : stop]:
            self.futures.append(start(row))
            self.next += 1

    def cancel(self) -> None:
        """Stop what has not begun."""
        for future in self.futures:
            future.cancel()
