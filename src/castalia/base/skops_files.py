"""Models of scikit-learn from skops files: types and sizes are checked before anything is made."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from castalia.data.array_files import check_arrays
from castalia.errors import CheckpointMismatch, DamagedFile
from castalia.utils.imports import require
from castalia.utils.text import listing, shorten

__all__ = ["strange_types", "unpacked_model"]


def strange_types(content: bytes, trusted: Collection[str], owner: str) -> list[str]:
    """Return the types in a skops file that neither skops nor we trust."""
    io = require("skops.io", caller=owner)
    return sorted(set(io.get_untrusted_types(data=content)) - set(trusted))


def unpacked_model(content: bytes, trusted: Collection[str], path: Path, owner: str) -> Any:
    """Return the model of a skops file.

    Parameters
    ----------
    content
        The bytes of the file.
    trusted
        Types that may be made besides those that skops trusts by itself.
    path, owner
        What errors name.

    Raises
    ------
    CheckpointMismatch
        When it holds other types; nothing was made then.
    DamagedFile
        When it is no whole skops file.
    """
    try:
        check_arrays(content)
        io = require("skops.io", caller=owner)
        found = set(io.get_untrusted_types(data=content))
        strange = sorted(found - set(trusted))
        if not strange:
            return io.loads(content, trusted=sorted(found))
    except ImportError:
        raise
    except Exception as error:  # a damaged zip, or a layout that skops does not know
        raise DamagedFile(
            f"{owner}: `{path}` is truncated or was altered ({type(error).__name__}: "
            f"{shorten(str(error), 80)}). Restore it from a copy."
        ) from error
    raise CheckpointMismatch(
        f"{owner}: `{path}` must hold scikit-learn's parts alone; it holds "
        f"{listing(strange, 'and', 4)}, which could run code, and nothing was loaded."
    )
