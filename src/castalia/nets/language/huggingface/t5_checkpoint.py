"""T5's configuration and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from castalia.errors import CheckpointMismatch
from castalia.nets.language.huggingface.architecture import (
    Architecture,
    drop_copies,
    same,
    their_activation,
)
from castalia.nets.language.huggingface.config_schema import ACTIVATIONS
from castalia.nets.language.huggingface.tensor_names import Rule, pair
from castalia.nets.language.t5 import T5

__all__ = ["T5Folder"]

TABLE = "relative_attention_bias"


class T5Folder(Architecture):
    """``T5ForConditionalGeneration``, of version 1.0 or 1.1, as ``T5``."""

    model_type = "t5"
    # It has been left in published weights and is read by nobody.
    ignored = (f"layer.1.EncDecAttention.{TABLE}.weight",)

    def build(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> nn.Module:
        """Return a ``T5``; a configuration with untied tables has no scaled head."""
        self._check(config)
        kind, scaled = config["feed_forward_proj"], config["scale_decoder_outputs"]
        return T5(
            config["vocab_size"],
            dim=config["d_model"],
            depth=config["num_layers"],
            decoder_depth=config["num_decoder_layers"],
            heads=config["num_heads"],
            head_dim=config["d_kv"],
            hidden=config["d_ff"],
            activation=ACTIVATIONS[dense_activation(kind)],
            gated=kind.startswith("gated-"),
            buckets=config["relative_attention_num_buckets"],
            furthest=config["relative_attention_max_distance"],
            dropout=config["dropout_rate"],
            tied="lm_head.weight" not in given,
            scaled=config["tie_word_embeddings"] if scaled is None else scaled,
            eps=config["layer_norm_epsilon"],
        )

    def _check(self, config: Mapping[str, Any]) -> None:
        """Refuse fields that contradict each other."""
        kind = config["feed_forward_proj"]
        parts = {"dense_act_fn": dense_activation(kind), "is_gated_act": kind.startswith("gated-")}
        for name, meant in parts.items():
            if config[name] not in (None, meant):
                raise CheckpointMismatch(
                    f"load_pretrained: `{name}` of a t5 model must be {meant!r} with "
                    f"`feed_forward_proj` {kind!r}; got {config[name]!r}."
                )
        least = config["relative_attention_num_buckets"] // 2
        if config["relative_attention_max_distance"] <= least:
            raise CheckpointMismatch(
                "load_pretrained: `relative_attention_max_distance` of a t5 model must be above "
                f"{least}, half its buckets; got {config['relative_attention_max_distance']}."
            )

    def config(self, net: T5) -> dict[str, Any]:
        """Return the configuration of a ``T5``."""
        activation = "gelu" if net.gated and net.activation == "gelu_tanh" else net.activation
        kind = their_activation(activation)
        return {
            "model_type": "t5",
            "architectures": ["T5ForConditionalGeneration"],
            "vocab_size": net.vocabulary,
            "d_model": net.dim,
            "d_kv": net.head_dim,
            "d_ff": net.hidden,
            "num_layers": len(net.encoder),
            "num_decoder_layers": len(net.decoder),
            "num_heads": net.heads,
            "relative_attention_num_buckets": net.encoder_bias.buckets,
            "relative_attention_max_distance": net.encoder_bias.furthest,
            "feed_forward_proj": f"gated-{kind}" if net.gated else kind,
            "dropout_rate": net.dropout.p,
            "layer_norm_epsilon": net.eps,
            "tie_word_embeddings": net.scaled,
            "scale_decoder_outputs": net.scaled,
            "is_encoder_decoder": True,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "decoder_start_token_id": 0,
        }

    def rules(self, net: T5) -> list[Rule]:
        """Return the table; the first block of each half holds its relative positions."""
        rules = pair("tokens", "shared", bias=False)
        for half in ("encoder", "decoder"):
            first = f"{half}.block.0.layer.0.SelfAttention.{TABLE}"
            rules += pair(f"{half}_bias.table", first, bias=False)
            rules += pair(f"{half}_norm", f"{half}.final_layer_norm", bias=False)
            for i in range(len(getattr(net, half))):
                rules += self._block(half, i, net.gated)
        if net.output is not None:
            rules += pair("output", "lm_head", bias=False)
        return rules

    def _block(self, half: str, i: int, gated: bool) -> list[Rule]:
        a, b = f"{half}.{i}", f"{half}.block.{i}.layer"
        parts = [("attention", "norm1", "0", "SelfAttention")]
        if half == "decoder":
            parts.append(("cross", "norm2", "1", "EncDecAttention"))
        rules = []
        for ours, norm, number, theirs in parts:
            names = (f"{b}.{number}.{theirs}.{letter}" for letter in "qkv")
            rules += pair(f"{a}.{ours}.qkv", *names, bias=False)
            rules += pair(f"{a}.{ours}.out", f"{b}.{number}.{theirs}.o", bias=False)
            rules += pair(f"{a}.{norm}", f"{b}.{number}.layer_norm", bias=False)
        last = len(parts)
        dense = f"{b}.{last}.DenseReluDense"
        rules += pair(f"{a}.norm{last + 1}", f"{b}.{last}.layer_norm", bias=False)
        rules += pair(f"{a}.feed_forward.down", f"{dense}.wo", bias=False)
        if not gated:
            return rules + pair(f"{a}.feed_forward.up", f"{dense}.wi", bias=False)
        rules += pair(f"{a}.feed_forward.gate", f"{dense}.wi_0", bias=False)
        return rules + pair(f"{a}.feed_forward.up", f"{dense}.wi_1", bias=False)

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``T5``."""
        return isinstance(net, T5)

    def tidy(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Drop a copy of the token table under the name of the output layer."""
        found = super().tidy(given)
        tables = [f"{half}.embed_tokens.weight" for half in ("encoder", "decoder")]
        drop_copies(found, "shared.weight", tables)
        if same(found, "shared.weight", "lm_head.weight"):
            found.pop("lm_head.weight", None)
        return found


def dense_activation(kind: str) -> str:
    """Return the activation that ``feed_forward_proj`` names; GELU is approximated when gated."""
    return "gelu_new" if kind == "gated-gelu" else kind.removeprefix("gated-")
