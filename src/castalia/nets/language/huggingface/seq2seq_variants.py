"""Configuration and names of mT5 and Marian, whose equations are nearly T5's and BART's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from castalia.errors import CheckpointMismatch
from castalia.nets.language.bart import BART
from castalia.nets.language.huggingface.bart_checkpoint import Bart
from castalia.nets.language.huggingface.t5_checkpoint import T5Folder
from castalia.nets.language.huggingface.tensor_names import Rule
from castalia.nets.language.t5 import T5

__all__ = ["MT5", "Marian"]


class MT5(T5Folder):
    """``MT5ForConditionalGeneration`` as ``T5``, gated, with vectors that are not scaled."""

    model_type = "mt5"

    def build(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> nn.Module:
        """Return a ``T5``; its head is not scaled, whether it is the table or not."""
        return super().build({**config, "scale_decoder_outputs": False}, given)

    def config(self, net: T5) -> dict[str, Any]:
        """Return the configuration of a ``T5`` of version 1.1."""
        found = super().config(net)
        found |= {"model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"]}
        return {**found, "tie_word_embeddings": net.output is None}

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``T5`` that scales nothing."""
        return isinstance(net, T5) and not net.scaled


class Marian(Bart):
    """``MarianMTModel`` as ``BART`` with sinusoidal positions and no norm of the embeddings."""

    model_type = "marian"
    ignored = ("embed_positions.weight",)  # follow from an equation

    def _options(self, config: Mapping[str, Any]) -> dict[str, Any]:
        if config["decoder_vocab_size"] not in (None, config["vocab_size"]):
            raise CheckpointMismatch(
                "load_pretrained: `decoder_vocab_size` of a marian model must be `vocab_size`, "
                f"{config['vocab_size']:,}; got {config['decoder_vocab_size']:,}."
            )
        return {"sinusoidal": True, "embedding_norm": False}

    def config(self, net: BART) -> dict[str, Any]:
        """Return the configuration of a ``BART`` of Marian's kind."""
        pad = net.vocabulary - 1
        return {
            **super().config(net),
            "model_type": "marian",
            "architectures": ["MarianMTModel"],
            "decoder_vocab_size": net.vocabulary,
            "share_encoder_decoder_embeddings": True,
            "bos_token_id": None,
            "eos_token_id": 0,
            "forced_eos_token_id": 0,
            "pad_token_id": pad,
            "decoder_start_token_id": pad,
        }

    def rules(self, net: BART) -> list[Rule]:
        """Return the table, without what follows from an equation."""
        absent = ("encoder_positions", "decoder_positions", "encoder_norm", "decoder_norm")
        return [rule for rule in super().rules(net) if not rule.ours.startswith(absent)]

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``BART`` of Marian's kind."""
        return isinstance(net, BART) and net.sinusoidal
