"""Networks from folders of Hugging Face's libraries, and back."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import CheckpointMismatch, InvalidParameter
from castalia.nets.language.huggingface.architecture import Architecture
from castalia.nets.language.huggingface.bart_checkpoint import Bart
from castalia.nets.language.huggingface.bert_checkpoint import Bert, Roberta
from castalia.nets.language.huggingface.bert_variants import DistilBert, XLMRoberta
from castalia.nets.language.huggingface.checkpoint_folder import (
    read_config,
    read_weights,
    vocabulary_size,
    write_config,
    write_weights,
)
from castalia.nets.language.huggingface.config_schema import check_depth, checked_config
from castalia.nets.language.huggingface.gpt2_checkpoint import GPT2
from castalia.nets.language.huggingface.llama_checkpoint import LlamaFolder, Mistral, Qwen2
from castalia.nets.language.huggingface.seq2seq_variants import MT5, Marian
from castalia.nets.language.huggingface.t5_checkpoint import T5Folder
from castalia.nets.language.huggingface.tensor_names import ours, theirs
from castalia.nn.adaptation.bottleneck_adapters import Bottleneck
from castalia.nn.adaptation.lora import LoRALinear, merge_lora
from castalia.nn.adaptation.soft_prompts import Prompted
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.text import did_you_mean, listing, shorten

__all__ = [
    "built",
    "load_pretrained",
    "opened",
    "owner_of",
    "save_pretrained",
    "whole",
    "write_folder",
]

# The first that fits a network writes it, unless it was read as another.
ALL: tuple[Architecture, ...] = (
    GPT2(),
    Bert(),
    DistilBert(),
    Roberta(),
    XLMRoberta(),
    T5Folder(),
    MT5(),
    Bart(),
    Marian(),
    LlamaFolder(),
    Mistral(),
    Qwen2(),
)
KNOWN: dict[str, Architecture] = {kind.model_type: kind for kind in ALL}
SHARD = 5 * 10**9  # bytes


def load_pretrained(path: str | os.PathLike[str], *, extra: str = "error") -> nn.Module:
    """Return the network of a Hugging Face folder, in evaluation mode, with equal logits.

    Reads ``config.json`` and ``model.safetensors``, whole or in shards, of GPT-2, BERT, DistilBERT,
    RoBERTa, XLM-R, T5, mT5, BART, Marian, Llama, Mistral and Qwen2. Pickles are refused and no code
    of the folder is run.

    Parameters
    ----------
    path
        The folder.
    extra
        What to do with tensors that have no place in the network, such as the head of a
        classifier: ``"error"`` names them, ``"ignore"`` leaves them out.
    """
    if extra not in ("error", "ignore"):
        raise InvalidParameter(
            f"load_pretrained: `extra` must be 'error' or 'ignore'; got {extra!r}."
        )
    kind, _, checked, given = opened(path)
    return built(kind, checked, given, path, extra)


def opened(
    path: str | os.PathLike[str],
) -> tuple[Architecture, dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """Return what a folder holds: its kind, all of its configuration, the checked part, tensors."""
    config = read_config(path)
    kind = _architecture(config.get("model_type"))
    checked = checked_config(config, kind.model_type)
    given = kind.tidy(read_weights(path))
    check_depth(checked, kind.model_type, len(given))
    return kind, config, checked, given


def built(
    kind: Architecture,
    checked: Mapping[str, Any],
    given: Mapping[str, Tensor],
    path: str | os.PathLike[str],
    extra: str,
) -> nn.Module:
    """Return the network of a configuration with the tensors of a folder."""
    with torch.device("meta"):
        net = kind.build(checked, given)
    rules = kind.rules(net)
    if extra == "ignore":
        wanted = {name for rule in rules for name in rule.theirs}
        given = {name: tensor for name, tensor in given.items() if name in wanted}
    net.load_state_dict(ours(rules, given, net), strict=True, assign=True)
    _check_vocabulary(path, int(net.vocabulary))  # type: ignore[arg-type]
    net.model_type = kind.model_type  # type: ignore[assignment]
    return net.eval()


def save_pretrained(
    net: nn.Module,
    path: str | os.PathLike[str],
    *,
    tokenizer: str | None = None,
    shard_bytes: int = SHARD,
) -> Path:
    """Write a network as a folder that ``transformers`` reads; return the folder.

    Parameters
    ----------
    net
        A ``GPT``, ``BERT``, ``RoBERTa``, ``T5``, ``BART`` or ``Llama``.
    path
        The folder; it is made where it is not there.
    tokenizer
        The text of its ``tokenizer.json``, as ``tokenizers.Tokenizer.to_str`` gives it.
    shard_bytes
        Size above which the weights are split into several files.
    """
    net = whole(net)
    kind = owner_of(net)
    weights = theirs(kind.rules(net), net)
    return write_folder(path, kind.config(net), weights, tokenizer, shard_bytes)


def owner_of(net: nn.Module) -> Architecture:
    """Return the architecture of theirs that a network of ours is."""
    read = KNOWN.get(getattr(net, "model_type", ""))  # one of several that it could be
    kind = next((kind for kind in (read, *ALL) if kind is not None and kind.owns(net)), None)
    if kind is None:
        raise InvalidParameter(
            "save_pretrained: `net` must be a GPT (pre-norm, with learned positions and biases), "
            "BERT, RoBERTa, T5, BART or Llama with the biases and windows of Llama, Mistral or "
            f"Qwen2; got {type(net).__name__} that is none of them."
        )
    return kind


def write_folder(
    path: str | os.PathLike[str],
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    tokenizer: str | None = None,
    shard_bytes: int = SHARD,
) -> Path:
    """Write a configuration, tensors and the text of a tokenizer; return the folder."""
    folder = Path(path)
    with writing("save_pretrained", folder):
        folder.mkdir(parents=True, exist_ok=True)
        if tokenizer is not None:
            atomic_write(folder / "tokenizer.json", tokenizer)
    write_config(folder, config)
    write_weights(folder, weights, shard_bytes)
    return folder


def whole(net: nn.Module) -> nn.Module:
    """Return a network with the updates of LoRA added; other added parts have no place there."""
    if any(isinstance(module, Bottleneck | Prompted) for module in net.modules()):
        raise InvalidParameter(
            f"save_pretrained: `net` must be without learnt prompts and adapters; got "
            f"{type(net).__name__} with such parts, which Hugging Face's models have no place for."
        )
    if not any(isinstance(module, LoRALinear) for module in net.modules()):
        return net
    return merge_lora(copy.deepcopy(net))


def _architecture(name: Any) -> Architecture:
    if not isinstance(name, str) or name not in KNOWN:
        raise CheckpointMismatch(
            f"load_pretrained: `model_type` of `config.json` must be {listing(KNOWN)}; got "
            f"{shorten(repr(name), 40)}.{did_you_mean(str(name)[:40], KNOWN)}"
        )
    return KNOWN[name]


def _check_vocabulary(path: str | os.PathLike[str], vocabulary: int) -> None:
    needed = vocabulary_size(path)
    if needed is not None and needed > vocabulary:
        raise CheckpointMismatch(
            f"load_pretrained: the tokenizer must have at most {vocabulary:,} tokens, those of the "
            f"weights; got {needed:,}. Tokenizer and weights belong to different models."
        )
