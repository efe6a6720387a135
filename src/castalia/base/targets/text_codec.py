"""Targets that are texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.base.input_checks import same_rows
from castalia.base.targets.target_codec import TargetCodec
from castalia.data.text import as_texts
from castalia.errors import InvalidData

__all__ = ["TextCodec"]


class TextCodec(TargetCodec):
    """A text for each row."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return the texts as an array of strings."""
        name = type(est).__name__
        if y is None:
            raise InvalidData(f"{name}: requires y to be passed, but the target y is None.")
        found = np.array(as_texts(y, name, what="y"), dtype=object)
        same_rows(name, X, found)
        return found
