"""What a model of language may begin with, read in one way."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from castalia.base import Start, load
from castalia.data.tokenizers import Tokenizer, has_tokenizer
from castalia.errors import InvalidParameter
from castalia.nets import language as nets

__all__ = ["STARTS", "Given", "StartReader", "read_start", "refuse_forgetting"]

STARTS = Start("a fitted model, the folder of a saved one or of Hugging Face's libraries")


@dataclass(frozen=True)
class Given:
    """What a start holds.

    Attributes
    ----------
    net
        The whole network.
    tokenizer
        Its tokenizer; None where it has none.
    model
        The fitted model; None of a Hugging Face folder.
    """

    net: Any
    tokenizer: Tokenizer | None
    model: Any = None


def read_start(start: Any) -> Given | None:
    """Return what a start holds, or None without one.

    Parameters
    ----------
    start
        A fitted model, the folder of a saved one or of Hugging Face's libraries, or None.
    """
    if start is None:
        return None
    if isinstance(start, str | os.PathLike):
        folder = Path(start)
        if not (folder / "model.json").exists():
            net = nets.load_pretrained(folder, extra="ignore")
            return Given(net, Tokenizer.load(folder) if has_tokenizer(folder) else None)
        start = load(folder)
    check_is_fitted(start, "module_")
    return Given(start.module_, start.adapter_.tokenizer, start)


def refuse_forgetting(est: Any) -> None:
    """Refuse a fit that would silently replace the weights of a folder by random ones."""
    if est.start is not None:
        vars(est).pop("pretrained_", None)
    elif getattr(est, "pretrained_", False):
        name = type(est).__name__
        raise InvalidParameter(
            f"{name}: `start` must be given to fit a model that was read from a folder, or its "
            f"weights would be lost; got None. Use {name}(start=folder), or clone it to learn from "
            "scratch."
        )


class StartReader:
    """Makes the adapter of an estimator that may have a start, whose tokenizer it then takes.

    The estimator's ``_reader`` opens the start, once for a fit.

    Parameters
    ----------
    adapter
        The class; one that needs a reader gets what ``_reader`` returns.
    settings
        Further arguments: values, or the names of fields of the estimator.
    """

    def __init__(self, adapter: type, **settings: Any) -> None:
        self.adapter, self.settings = adapter, settings

    def of(self, owner: Any) -> Any:
        """Make the adapter, not yet fitted."""
        given = self.settings.items()
        found = {k: getattr(owner, v) if isinstance(v, str) else v for k, v in given}
        reader = owner._reader(**found)
        return reader if isinstance(reader, self.adapter) else self.adapter(reader)
