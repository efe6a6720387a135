"""What a Llama begins with: weights, tokenizer, chat template, and tokens that end a text."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from castalia.base import Constraint
from castalia.data.prompts import ChatTemplate
from castalia.data.tokenizers import Tokenizer
from castalia.errors import DamagedFile, InvalidParameter
from castalia.models.language.pretrained.start_weights import read_start
from castalia.nets.language import Llama, read_config
from castalia.nn.adaptation.lora import LoRA, merge_lora
from castalia.utils.regular_files import parse_json, read_regular

__all__ = ["LlamaStart", "LowRank", "merged", "open_llama", "weights_of"]


class LowRank(Constraint):
    """LoRA in a frozen network, or None."""

    def rule(self) -> str:
        """Say so."""
        return "LoRA(…) of castalia.nn, or None"

    def holds(self, value: Any) -> bool:
        """Whether it is one of them."""
        return value is None or isinstance(value, LoRA)


@dataclass(frozen=True)
class LlamaStart:
    """A start: its network, tokenizer, chat template, and the tokens that end a text."""

    net: Llama
    tokenizer: Tokenizer | None
    template: ChatTemplate | None
    ends: tuple[int, ...]


def open_llama(start: Any, owner: str) -> LlamaStart | None:
    """Return what a start holds, or None without one.

    Parameters
    ----------
    start
        A fitted ``LlamaLanguageModel``, the folder of a saved one or of Hugging Face's libraries,
        or None.
    owner
        Whom errors name.
    """
    given = read_start(start)
    if given is None:
        return None
    if not isinstance(given.net, Llama):
        raise InvalidParameter(
            f"{owner}: `start` must hold a Llama, Mistral or Qwen2; got {start!r} with a "
            f"{type(given.net).__name__}."
        )
    if given.model is not None:
        adapter = given.model.adapter_
        return LlamaStart(given.net, given.tokenizer, adapter.template, adapter.ends)
    template, ends = ChatTemplate.load(start), end_tokens(start, given.net.vocabulary)
    return LlamaStart(given.net, given.tokenizer, template, ends)


def end_tokens(folder: str | os.PathLike[str], vocabulary: int) -> tuple[int, ...]:
    """Return the tokens that end a text by ``generation_config.json``, or by ``config.json``."""
    file = Path(folder) / "generation_config.json"
    try:
        said = parse_json(read_regular(file)) if file.is_file() else {}
    except (OSError, ValueError) as error:
        raise DamagedFile(f"load_pretrained: '{file}' must be JSON; {error}.") from None
    found = said.get("eos_token_id") if isinstance(said, dict) else None
    found = read_config(folder).get("eos_token_id") if found is None else found
    ids = found if isinstance(found, list) else [] if found is None else [found]
    if not all(type(i) is int and 0 <= i < vocabulary for i in ids):
        raise DamagedFile(
            f"load_pretrained: `eos_token_id` must be ids below {vocabulary:,}; got {found!r}."
        )
    return tuple(ids)


def merged(net: nn.Module) -> nn.Module:
    """Return a copy of a network with low-rank updates added to its layers."""
    return merge_lora(copy.deepcopy(net))


def weights_of(net: nn.Module) -> dict[str, torch.Tensor]:
    """Return the weights of a network, low-rank updates added to them."""
    whole = merged(net).state_dict()
    return {name: value for name, value in whole.items() if ".lora_" not in name}
