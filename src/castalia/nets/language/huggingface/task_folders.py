"""Folders of models with a head for a task: classes of texts, tags of tokens, answers in a text.

``BertForSequenceClassification``, ``RobertaForQuestionAnswering`` and their like: an encoder and
one linear layer, ``classifier`` or ``qa_outputs``. RoBERTa's classifier has a layer with tanh on
the first token before it, and DistilBERT's one with ReLU: what BERT's pooler is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from castalia.errors import CheckpointMismatch
from castalia.nets.language.bert import BERT
from castalia.nets.language.gpt import GPT
from castalia.nets.language.huggingface.architecture import Architecture
from castalia.nets.language.huggingface.pretrained_networks import (
    built,
    opened,
    owner_of,
    whole,
    write_folder,
)
from castalia.nets.language.huggingface.tensor_names import theirs
from castalia.utils.text import listing, shorten

__all__ = ["TASKS", "TaskFolder", "load_task", "save_task"]

# The last layer of each task by the kind of network, and the class of the folder.
_ENCODERS = ("bert", "roberta", "xlm-roberta", "distilbert")
TASKS: dict[str, dict[str, str]] = {
    "SequenceClassification": {
        "bert": "classifier",
        "roberta": "classifier.out_proj",
        "xlm-roberta": "classifier.out_proj",
        "distilbert": "classifier",
        "gpt2": "score",
    },
    "TokenClassification": dict.fromkeys(_ENCODERS, "classifier"),
    "QuestionAnswering": dict.fromkeys(_ENCODERS, "qa_outputs"),
}
CLASSES = {
    "bert": "Bert",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "distilbert": "DistilBert",
    "gpt2": "GPT2",
}
# The layer before it, by their name and by ours.
_POOLERS = {
    "roberta": ("classifier.dense.", "roberta.pooler.dense."),
    "xlm-roberta": ("classifier.dense.", "roberta.pooler.dense."),
    "distilbert": ("pre_classifier.", "distilbert.pooler.dense."),
}
LABELS = 2**20  # more classes than anybody has


@dataclass(frozen=True)
class TaskFolder:
    """What a folder of a task holds.

    Attributes
    ----------
    net
        The network below the head.
    weight, bias
        Of the last layer, (K, dim) and (K,); None where it has no bias.
    labels
        Names of the K outputs.
    several
        Whether a text may have several of them.
    """

    net: BERT | GPT
    weight: Tensor
    bias: Tensor | None
    labels: tuple[str, ...]
    several: bool = False


def load_task(path: str | os.PathLike[str], task: str) -> TaskFolder:
    """Return the network, the head and the labels of a folder.

    Parameters
    ----------
    path
        The folder.
    task
        A key of ``TASKS``.
    """
    kind, config, checked, given = opened(path)
    layer = _layer(kind.model_type, task)
    head = [given[name] for name in (f"{layer}.weight", f"{layer}.bias") if name in given]
    if not head or head[0].ndim != 2 or not all(part.is_floating_point() for part in head):
        raise CheckpointMismatch(
            f"load_pretrained: '{path}' must hold a {CLASSES[kind.model_type]}For{task}, with "
            f"`{layer}.weight`; its `architectures` are {shorten(config.get('architectures'))}."
        )
    weight, bias = given.pop(f"{layer}.weight"), given.pop(f"{layer}.bias", None)
    body = _body(kind, task, given)
    net: Any = built(kind, checked, body, path, extra="error")
    if weight.shape[1] != net.dim or (bias is not None and bias.shape != weight.shape[:1]):
        raise CheckpointMismatch(
            f"load_pretrained: `{layer}.weight` must have {net.dim} columns by `config.json`, and "
            f"its bias a number a row; got the shape {tuple(weight.shape)}."
        )
    dtype = net.tokens.weight.dtype
    weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)
    several = config.get("problem_type") == "multi_label_classification"
    return TaskFolder(net, weight, bias, _labels(config, len(weight)), several)


def save_task(
    found: TaskFolder,
    task: str,
    path: str | os.PathLike[str],
    *,
    tokenizer: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write a network with a head as a folder that ``transformers`` reads; return the folder.

    Parameters
    ----------
    found
        Network, head and labels.
    task
        A key of ``TASKS``.
    path
        The folder; it is made where it is not there.
    tokenizer
        The text of its ``tokenizer.json``.
    settings
        Further fields of ``config.json``.
    """
    net: Any = whole(found.net)
    kind = owner_of(net)
    layer = _layer(kind.model_type, task)
    weights = theirs(kind.rules(net), net)
    if task == "SequenceClassification" and kind.model_type in _POOLERS:
        weights = _renamed(weights, *reversed(_POOLERS[kind.model_type]))
    weights = {name: t for name, t in weights.items() if not name.startswith("lm_head")}
    weights[f"{layer}.weight"] = found.weight
    if found.bias is not None:
        weights[f"{layer}.bias"] = found.bias
    config = {
        **kind.config(net),
        **(settings or {}),
        "architectures": [f"{CLASSES[kind.model_type]}For{task}"],
        "id2label": {str(i): name for i, name in enumerate(found.labels)},
        "label2id": {name: i for i, name in enumerate(found.labels)},
    }
    if task == "SequenceClassification":
        kinds = ("single_label_classification", "multi_label_classification")
        config["problem_type"] = kinds[found.several]
    return write_folder(path, config, weights, tokenizer)


def _layer(model_type: str, task: str) -> str:
    layers = TASKS[task]
    if model_type not in layers:
        raise CheckpointMismatch(
            f"load_pretrained: `model_type` must be {listing(layers)} for {task}; got "
            f"{model_type!r}."
        )
    return layers[model_type]


def _body(kind: Architecture, task: str, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors below the head; of heads for other tasks, none."""
    named = _renamed(given, *_POOLERS.get(kind.model_type, ("", "")))
    body = {name: t for name, t in named.items() if name.startswith(kind.prefix)}
    if task == "SequenceClassification" or kind.model_type == "gpt2":
        return body
    return {name: t for name, t in body.items() if not name.startswith(f"{kind.prefix}pooler.")}


def _renamed(given: Mapping[str, Tensor], old: str, new: str) -> dict[str, Tensor]:
    """Return tensors with another beginning of some names."""
    return {
        new + name.removeprefix(old) if name.startswith(old) else name: tensor
        for name, tensor in given.items()
    }


def _labels(config: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """Return the names of the outputs; unnamed ones are numbers."""
    given = config.get("id2label")
    names = given if isinstance(given, dict) else {}
    found = [names.get(str(i), f"LABEL_{i}") for i in range(count)]
    plain = all(isinstance(name, str) for name in found)
    if not plain or len(names) not in (0, count) or len(set(found)) < count or count > LABELS:
        raise CheckpointMismatch(
            f"load_pretrained: `id2label` must give {count} different names, as many as the head "
            f"has outputs; got {shorten(repr(given), 60)}."
        )
    return tuple(found)
