"""Images in files, decoded by a pool of threads when they are needed."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from os import PathLike
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castalia.data.images.file_stores import Store, open_store
from castalia.data.images.image_decoder import Header, decode, examine, header
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.utils.text import plural

__all__ = ["Broken", "ImageFiles", "decoders", "shown_names"]

Broken = Literal["raise", "skip"]
SHOWN = 3  # files that a message names
AT_ONCE = 4096  # files handed to the threads in one go
FEW = 16  # files that a thread is given at a time
SMALL, SOME = 16 << 10, 8  # bytes of files that one thread decodes as fast as two; files asked


class ImageFiles:
    """Images in the files of a folder or zip archive, a source of `Images`.

    Building it opens no file. Sizes and channels are read from the headers of the files when they
    are asked for, once; pixels are decoded in threads.

    Parameters
    ----------
    names
        Paths of the files from ``root``.
    root
        A folder or a zip archive.
    broken
        What `whole` does about files that cannot be decoded: ``"skip"`` leaves them out and says
        so in one warning, ``"raise"`` refuses the set.
    workers
        Threads that decode; one a core by default.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = tempfile.mkdtemp()
    >>> for i in range(3):
    ...     Image.new("RGB", (20, 10), (255, 0, 0)).save(f"{folder}/{i}.png")
    >>> files = ImageFiles(["0.png", "1.png", "2.png"], folder)
    >>> files.sizes().tolist(), files.channels
    ([[10, 20], [10, 20], [10, 20]], 3)
    >>> files.pixels(np.array([0, 2]), (5, 5), 3).shape
    torch.Size([2, 3, 5, 5])
    """

    lazy = True

    def __init__(
        self,
        names: Sequence[str],
        root: str | PathLike[str] | Store = ".",
        *,
        broken: Broken = "skip",
        workers: int | None = None,
    ) -> None:
        if broken not in ("raise", "skip"):
            raise InvalidParameter(
                f"ImageFiles: `broken` must be 'raise' or 'skip'; got {broken!r}."
            )
        if workers is not None and workers < 1:
            raise InvalidParameter(f"ImageFiles: `workers` must be at least 1; got {workers}.")
        self.store: Any = (
            open_store(root, "ImageFiles") if isinstance(root, (str, PathLike)) else root
        )
        self.names = list(names)
        self.broken: Broken = broken
        self.workers = workers
        self._channels: int | None = None
        # What was learnt of files by name; subsets share it.
        self._headers: dict[str, Header] = {}
        self._whole: set[str] = set()

    @property
    def text(self) -> str:
        """What messages call the set."""
        return f"{plural(len(self), 'file')} of `{self.store}`"

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"ImageFiles({self.text})"

    def sizes(self) -> NDArray[np.int64]:
        """Return height and width of each image, upright, (N, 2)."""
        found = self._read_headers(range(len(self)))
        return np.array([h[:2] for h in found], dtype=np.int64).reshape(-1, 2)

    @property
    def channels(self) -> int:
        """1 when every image is grey, otherwise 3; looks no further than the first colour."""
        if self._channels is None:
            rows = np.arange(len(self))
            parts = (rows[start : start + 64] for start in range(0, len(self), 64))
            coloured = any(h.channels == 3 for part in parts for h in self._read_headers(part))
            self._channels = 3 if coloured else 1
        return self._channels

    def largest(self) -> float:
        """Return the largest value of a byte."""
        return 255.0

    def take(self, index: Any) -> ImageFiles:
        """Return the images at these positions; they are seen in the colours of the whole."""
        names = [self.names[i] for i in np.asarray(index)]
        taken = ImageFiles(names, self.store, broken=self.broken, workers=self.workers)
        taken._headers, taken._whole, taken._channels = self._headers, self._whole, self._channels
        return taken

    def image(self, row: int, size: tuple[int, int] | None, channels: int) -> NDArray[np.uint8]:
        """Decode one image, (C, H, W); raises what the decoder raises."""
        return np.array(self._decoded(row, size, channels), order="C")

    def _decoded(self, row: int, size: tuple[int, int] | None, channels: int) -> NDArray[np.uint8]:
        """Decode one image, (C, H, W), in memory that is Pillow's."""
        with self.store.open(self.names[row]) as file:
            found = decode(file, size, channels)  # (H, W, C)
        self._whole.add(self.names[row])
        return found.transpose(2, 0, 1)

    def pixels(self, index: Any, size: tuple[int, int], channels: int) -> Tensor:
        """Decode images into one tensor, (B, C, H, W) of bytes.

        Raises
        ------
        InvalidData
            If files cannot be decoded; the message counts them and names the first ones.
        """
        rows = np.asarray(index).tolist()
        out = np.empty((len(rows), channels, *size), dtype=np.uint8)

        def fill(place: int) -> None:
            out[place] = self._decoded(rows[place], size, channels)

        faults = self._try(fill, range(len(rows)))
        if faults:
            raise self.fault({rows[place]: fault for place, fault in faults.items()}, len(rows))
        return torch.from_numpy(out)

    def whole(self) -> NDArray[np.int64]:
        """Decode every file once, at a small size, and return the positions of whole ones.

        Files that were decoded before are not tried again.

        Raises
        ------
        InvalidData
            If ``broken`` is ``"raise"`` and a file is broken, or if all are.
        """
        unknown = [row for row in range(len(self)) if self.names[row] not in self._whole]
        faults = self._try(self._examine, unknown)
        if faults and (self.broken == "raise" or len(faults) == len(self)):
            raise self.fault(faults, len(self))
        if faults:
            warnings.warn(
                f"ImageFiles: {len(faults):,} of {self.text} cannot be decoded and were left out: "
                f"{self._named(faults)}.",
                DataWarning,
                stacklevel=2,
            )
        return np.setdiff1d(np.arange(len(self)), np.array(list(faults), dtype=np.int64))

    def _examine(self, row: int) -> None:
        name = self.names[row]
        with self.store.open(name) as file:
            self._headers[name] = examine(file)
        self._whole.add(name)

    def fault(self, faults: dict[int, Exception], tried: int) -> InvalidData:
        """Return the error for rows that could not be decoded."""
        remedy = (
            "Remove or replace them"
            if self.broken == "raise" or len(faults) == len(self)
            else "`castalia.data.images.decodable` leaves them out"
        )
        return InvalidData(
            f"ImageFiles: every image of {self.text} must be whole; {len(faults):,} of {tried:,} "
            f"cannot be decoded: {self._named(faults)}. {remedy}."
        )

    def _named(self, faults: dict[int, Exception]) -> str:
        return shown_names({self.names[row]: _reason(fault) for row, fault in faults.items()})

    def fingerprint(self) -> str:
        """Return a digest of the files' names and lengths; opens none."""
        digest = hashlib.sha256()
        for name in self.names:
            digest.update(f"{name}\0{self._length(name)}\n".encode())
        return digest.hexdigest()

    def _length(self, name: str) -> int:
        try:
            return int(self.store.size(name))
        except (OSError, KeyError):  # a missing file is reported when it is decoded
            return -1

    def _read_headers(self, rows: Iterable[int]) -> list[Header]:
        """Return headers; a file without one is as broken as one without pixels."""

        def look(row: int) -> None:
            with self.store.open(self.names[row]) as file:
                self._headers[self.names[row]] = header(file)

        rows = list(rows)
        faults = self._try(look, [r for r in rows if self.names[r] not in self._headers])
        if faults:
            raise self.fault(faults, len(rows))
        return [self._headers[self.names[row]] for row in rows]

    def _cores(self) -> int:
        """Return how many threads decode: for small files, mostly the interpreter's work, one."""
        if self.workers is None and self.names:
            some = self.names[:: -(-len(self.names) // SOME)]
            if max(map(self._length, some)) < SMALL:
                return 1
        return cores(self.workers)

    def _try(self, work: Callable[[int], Any], rows: Sequence[int]) -> dict[int, Exception]:
        """Do something for each row in threads; return what went wrong."""
        workers = self._cores()
        threads, faults = decoders(workers), dict[int, Exception]()

        def several(some: Sequence[int]) -> None:
            for row in some:
                try:
                    work(row)
                except Exception as error:  # decoders raise whatever they like on damaged files
                    faults[row] = error

        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            length = min(FEW, -(-len(some) // workers))
            list(threads.map(several, (some[i : i + length] for i in range(0, len(some), length))))
        return dict(sorted(faults.items()))


def cores(workers: int | None) -> int:
    """Return how many threads decode: one a core by default."""
    if workers is None and hasattr(os, "sched_getaffinity"):
        workers = len(os.sched_getaffinity(0))
    return workers or os.cpu_count() or 1


def decoders(workers: int | None) -> ThreadPoolExecutor:
    """Return the threads that decode; they stay for later calls."""
    return _pool(cores(workers), os.getpid())


@cache
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    """Make threads once; a forked process has none of its parent's and needs its own."""
    return ThreadPoolExecutor(workers, thread_name_prefix=f"castalia-decode-{process}")


def shown_names(names: dict[str, str] | Iterable[str]) -> str:
    """Name the first few files, with the reason where there is one, and count the others.

    >>> shown_names({"a.png": "empty"}), shown_names(list("abcde"))
    ('`a.png` (empty)', '`a`, `b`, `c` and 2 more')
    """
    reasons = names if isinstance(names, dict) else dict.fromkeys(names, "")
    texts = [f"`{name}` ({reason})" if reason else f"`{name}`" for name, reason in reasons.items()]
    more = f" and {len(texts) - SHOWN:,} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def _reason(fault: Exception) -> str:
    """Say in a few words why a file cannot be decoded."""
    if isinstance(fault, FileNotFoundError):
        return "no such file"
    text = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
    return "not an image" if text.startswith("cannot identify") else text
