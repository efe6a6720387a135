"""BART's configuration and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import CheckpointMismatch
from castalia.nets.language.bart import BART
from castalia.nets.language.huggingface.architecture import (
    Architecture,
    drop_copies,
    their_activation,
)
from castalia.nets.language.huggingface.config_schema import ACTIVATIONS
from castalia.nets.language.huggingface.tensor_names import Rule, pair

__all__ = ["Bart"]


class Bart(Architecture):
    """``BartForConditionalGeneration`` and ``BartModel`` as ``BART``."""

    model_type = "bart"
    prefix = "model."
    heads = ("final_logits_bias", "lm_head.")

    def build(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> nn.Module:
        """Return a ``BART``; both halves must have the same heads and hidden units."""
        for one in ("attention_heads", "ffn_dim"):
            if config[f"encoder_{one}"] != config[f"decoder_{one}"]:
                raise CheckpointMismatch(
                    f"load_pretrained: `decoder_{one}` of a bart model must be `encoder_{one}`, "
                    f"{config[f'encoder_{one}']}; got {config[f'decoder_{one}']}."
                )
        return BART(
            config["vocab_size"],
            context=config["max_position_embeddings"],
            dim=config["d_model"],
            depth=config["encoder_layers"],
            decoder_depth=config["decoder_layers"],
            heads=config["encoder_attention_heads"],
            hidden=config["encoder_ffn_dim"],
            activation=ACTIVATIONS[config["activation_function"]],
            dropout=config["dropout"],
            scaled=config["scale_embedding"],
            **self._options(config),
        )

    def _options(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return further arguments of a variant."""
        return {}

    def config(self, net: BART) -> dict[str, Any]:
        """Return the configuration of a ``BART``."""
        return {
            "model_type": "bart",
            "architectures": ["BartForConditionalGeneration"],
            "vocab_size": net.vocabulary,
            "max_position_embeddings": net.context,
            "d_model": net.dim,
            "encoder_layers": len(net.encoder),
            "decoder_layers": len(net.decoder),
            "encoder_attention_heads": net.heads,
            "decoder_attention_heads": net.heads,
            "encoder_ffn_dim": net.hidden,
            "decoder_ffn_dim": net.hidden,
            "activation_function": their_activation(net.activation),
            "dropout": net.dropout.p,
            "attention_dropout": net.dropout.p,
            "scale_embedding": net.scaled,
            "is_encoder_decoder": True,
            "pad_token_id": 1,
            "bos_token_id": 0,
            "eos_token_id": 2,
            "decoder_start_token_id": 2,
        }

    def rules(self, net: BART) -> list[Rule]:
        """Return the table."""
        rules = pair("tokens", "model.shared", bias=False)
        rules.append(Rule("output_bias", ("final_logits_bias",)))
        for half in ("encoder", "decoder"):
            b = f"model.{half}"
            rules += pair(f"{half}_positions", f"{b}.embed_positions", bias=False)
            rules += pair(f"{half}_norm", f"{b}.layernorm_embedding")
            for i in range(len(getattr(net, half))):
                rules += self._block(half, i)
        return rules

    def _block(self, half: str, i: int) -> list[Rule]:
        a, b = f"{half}.{i}", f"model.{half}.layers.{i}"
        parts = [("attention", "norm1", "self_attn")]
        if half == "decoder":
            parts.append(("cross", "norm2", "encoder_attn"))
        rules = []
        for ours, norm, theirs in parts:
            names = (f"{b}.{theirs}.{letter}_proj" for letter in "qkv")
            rules += pair(f"{a}.{ours}.qkv", *names)
            rules += pair(f"{a}.{ours}.out", f"{b}.{theirs}.out_proj")
            rules += pair(f"{a}.{norm}", f"{b}.{theirs}_layer_norm")
        rules += pair(f"{a}.feed_forward.up", f"{b}.fc1")
        rules += pair(f"{a}.feed_forward.down", f"{b}.fc2")
        return rules + pair(f"{a}.norm{len(parts) + 1}", f"{b}.final_layer_norm")

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``BART`` with learned positions."""
        return isinstance(net, BART) and not net.sinusoidal

    def tidy(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Add the zeros that a body without head lacks; drop copies of the token table."""
        found = super().tidy(given)
        table = "model.shared.weight"
        halves = [f"model.{half}.embed_tokens.weight" for half in ("encoder", "decoder")]
        drop_copies(found, table, [*halves, "lm_head.weight"])
        if table in found:
            found.setdefault("final_logits_bias", torch.zeros(1, len(found[table])))
        return found
