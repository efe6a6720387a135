"""Estimators of tasks on an encoder, from Hugging Face folders and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from castalia.data.text import PairAdapter
from castalia.data.tokenizers import Tokenizer
from castalia.errors import CheckpointMismatch
from castalia.models.language.pretrained.encoder_parameters import sizes_of
from castalia.nets import language as nets
from castalia.nets.language.huggingface.pretrained_networks import whole
from castalia.protocols import Spec

__all__ = ["TaskExchange", "classes_of"]


class TaskExchange:
    """Reads and writes the folders of a task; stands before ``Startable`` among the bases."""

    adapter: ClassVar[Any]
    _task: ClassVar[str]  # what Hugging Face's classes call it

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike[str]) -> Self:
        """Return a fitted estimator from a Hugging Face folder for this task.

        It may hold a BERT, DistilBERT, RoBERTa or XLM-R.
        """
        found = nets.load_task(path, cls._task)
        net: Any = found.net
        if not isinstance(net, nets.BERT):
            raise CheckpointMismatch(
                f"{cls.__name__}.from_pretrained: `{path}` must hold a BERT or RoBERTa; it holds a "
                f"{type(net).__name__}."
            )
        kind: Any = cls
        made = kind(context=net.context, dim=net.dim, depth=len(net.blocks), heads=net.heads)
        reader = PairAdapter(context=net.context)
        reader.double = net.offset > 0
        reader.adopt(Tokenizer.load(Path(path)))
        around = cls.adapter.adapter
        made.adapter_ = reader if around is PairAdapter else around(reader)
        made.spec_ = Spec(
            1, len(found.labels), extra={**reader.extra, "vocabulary": net.vocabulary}
        )
        made.encoder_, made.n_iter_, made.history_ = sizes_of(net), 0, []
        made._name_outputs(found)
        module: Any = made._network(made.spec_).to(found.weight.dtype).eval()
        module.encoder.load_state_dict(net.state_dict())
        module.encoder.model_type = net.model_type  # one of several that it could be
        module.head.load_state_dict({"weight": found.weight, "bias": found.bias})
        made.module_, made.pretrained_ = module, True
        fitted: Self = made
        return fitted

    def _name_outputs(self, found: nets.TaskFolder) -> None:
        """Learn the classes of a folder."""

    def _labels(self) -> list[str]:
        """Return the names of the outputs."""
        return [str(name) for name in self.classes_]  # type: ignore[attr-defined]

    def save_pretrained(self, path: str | os.PathLike[str]) -> Path:
        """Write network, head and tokenizer as a folder that Hugging Face's libraries read."""
        check_is_fitted(self, "module_")
        net: Any = whole(self.module_)  # type: ignore[attr-defined]
        several = bool(getattr(self, "multilabel_", False))
        found = nets.TaskFolder(
            net.encoder, net.head.weight, net.head.bias, tuple(self._labels()), several
        )
        adapter: Any = self.adapter_  # type: ignore[attr-defined]
        reader = getattr(adapter, "reader", adapter)
        return nets.save_task(found, self._task, path, tokenizer=reader.exported())


def classes_of(labels: Sequence[str]) -> np.ndarray:
    """Return the classes that labels name: numbers, where they are numbered or have no names."""
    if all(label == f"LABEL_{i}" for i, label in enumerate(labels)):
        return np.arange(len(labels))
    if all(label.isdecimal() and str(int(label)) == label for label in labels):
        return np.array([int(label) for label in labels])
    return np.array(labels)
