"""GPT-2's configuration and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from castalia.nets.language.gpt import GPT
from castalia.nets.language.huggingface.architecture import Architecture, same, their_activation
from castalia.nets.language.huggingface.config_schema import ACTIVATIONS
from castalia.nets.language.huggingface.tensor_names import Rule, pair

__all__ = ["GPT2"]


class GPT2(Architecture):
    """``GPT2LMHeadModel`` and ``GPT2Model`` as ``GPT``."""

    model_type = "gpt2"
    prefix = "transformer."
    heads = ("lm_head.",)
    ignored = (".attn.bias", ".attn.masked_bias")  # the causal mask as a constant

    def build(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> nn.Module:
        """Return a pre-norm ``GPT``."""
        return GPT(
            config["vocab_size"],
            context=config["n_positions"],
            dim=config["n_embd"],
            depth=config["n_layer"],
            heads=config["n_head"],
            hidden=config["n_inner"],
            dropout=config["resid_pdrop"],
            activation=ACTIVATIONS[config["activation_function"]],
            eps=config["layer_norm_epsilon"],
            tied="lm_head.weight" not in given,
        )

    def config(self, net: GPT) -> dict[str, Any]:
        """Return the configuration of a ``GPT``."""
        dropout = net.dropout.p
        return {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": net.vocabulary,
            "n_positions": net.context,
            "n_embd": net.dim,
            "n_layer": len(net.blocks),
            "n_head": net.heads,
            "n_inner": net.hidden,
            "activation_function": their_activation(net.activation),
            "layer_norm_epsilon": net.eps,
            "resid_pdrop": dropout,
            "embd_pdrop": dropout,
            "attn_pdrop": dropout,
            "tie_word_embeddings": net.output is None,
            "bos_token_id": None,
            "eos_token_id": None,
        }

    def rules(self, net: GPT) -> list[Rule]:
        """Return the table; their linear layers are stored (inputs, outputs)."""
        rules = [
            *pair("tokens", "transformer.wte", bias=False),
            *pair("positions", "transformer.wpe", bias=False),
            *pair("norm", "transformer.ln_f"),
        ]
        for i in range(len(net.blocks)):
            a, b = f"blocks.{i}", f"transformer.h.{i}"
            rules += pair(f"{a}.norm1", f"{b}.ln_1")
            rules += pair(f"{a}.attention.qkv", f"{b}.attn.c_attn", flipped=True)
            rules += pair(f"{a}.attention.out", f"{b}.attn.c_proj", flipped=True)
            rules += pair(f"{a}.norm2", f"{b}.ln_2")
            rules += pair(f"{a}.feed_forward.up", f"{b}.mlp.c_fc", flipped=True)
            rules += pair(f"{a}.feed_forward.down", f"{b}.mlp.c_proj", flipped=True)
        return rules if net.output is None else [*rules, Rule("output.weight", ("lm_head.weight",))]

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``GPT`` that GPT-2's equations describe."""
        return (
            isinstance(net, GPT)
            and net.positions is not None
            and isinstance(net.norm, nn.LayerNorm)
            and net.norm.bias is not None
        )

    def tidy(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Drop a copy of the token table under the name of the output layer."""
        found = super().tidy(given)
        if same(found, "transformer.wte.weight", "lm_head.weight"):
            found.pop("lm_head.weight", None)
        return found
