"""Configuration and names of Llama, Mistral and Qwen2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from castalia.errors import CheckpointMismatch
from castalia.nets.language.huggingface.architecture import Architecture, same, their_activation
from castalia.nets.language.huggingface.config_schema import ACTIVATIONS
from castalia.nets.language.huggingface.tensor_names import Rule, pair
from castalia.nets.language.llama import Llama
from castalia.nn.attention.rotary_stretch import KINDS, is_positive
from castalia.utils.text import listing, shorten

__all__ = ["LlamaFolder", "Mistral", "Qwen2"]

TABLE, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


class LlamaFolder(Architecture):
    """``LlamaForCausalLM`` as ``Llama``."""

    model_type = "llama"
    prefix = "model."
    heads = ("lm_head.",)
    ignored = ("rotary_emb.inv_freq",)  # follows from the configuration

    def build(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> nn.Module:
        """Return a ``Llama``."""
        self._check(config)
        base, scaling = rotary_of(config, self.model_type)
        heads = config["num_attention_heads"]
        return Llama(
            config["vocab_size"],
            context=config["max_position_embeddings"],
            dim=config["hidden_size"],
            depth=config["num_hidden_layers"],
            heads=heads,
            kv_heads=config["num_key_value_heads"],
            head_dim=config["head_dim"] or config["hidden_size"] // heads,
            hidden=config["intermediate_size"],
            dropout=config["attention_dropout"],
            activation=ACTIVATIONS[config["hidden_act"]],
            tied=self._tied(config, given),
            base=base,
            scaling=scaling,
            eps=config["rms_norm_eps"],
            **self._variant(config),
        )

    def _check(self, config: Mapping[str, Any]) -> None:
        """Refuse numbers that do not go together."""
        heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
        if groups is not None and heads % groups:
            raise CheckpointMismatch(
                f"load_pretrained: `num_attention_heads` of a {self.model_type} model must be a "
                f"multiple of `num_key_value_heads`; got {heads} and {groups}."
            )
        width = config["head_dim"] or config["hidden_size"] / heads
        if width % 2:
            raise CheckpointMismatch(
                f"load_pretrained: `head_dim` of a {self.model_type} model must be even; got "
                f"{width:g}."
            )

    def _tied(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> bool:
        """Say whether the table is the output layer, which then must have no other weights."""
        tied = bool(config["tie_word_embeddings"])
        if not tied and OUTPUT not in given:
            raise CheckpointMismatch(
                f"load_pretrained: the weights of a {self.model_type} model must hold `{OUTPUT}`, "
                "for `tie_word_embeddings` is false; they do not. Save the model with its head."
            )
        if tied and same(given, TABLE, OUTPUT) and isinstance(given, dict):
            given.pop(OUTPUT, None)  # a copy
        return tied

    def _variant(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that Llama, Mistral and Qwen2 differ by."""
        attention = ("qkv", "out") if config["attention_bias"] else ()
        return {"biases": (*attention, *(("feed_forward",) if config["mlp_bias"] else ()))}

    def _owned(self, net: Llama) -> bool:
        return net.window is None and ("qkv" in net.biases) == ("out" in net.biases)

    def _fields(self, net: Llama) -> dict[str, Any]:
        return {"attention_bias": "qkv" in net.biases, "mlp_bias": "feed_forward" in net.biases}

    def config(self, net: Llama) -> dict[str, Any]:
        """Return the configuration of a ``Llama``."""
        rotary = {"rope_type": "default", **(net.rotary.scaling or {})}
        return {
            "model_type": self.model_type,
            "architectures": [f"{self.model_type.capitalize()}ForCausalLM"],
            "vocab_size": net.vocabulary,
            "max_position_embeddings": net.context,
            "hidden_size": net.dim,
            "num_hidden_layers": len(net.blocks),
            "num_attention_heads": net.heads,
            "num_key_value_heads": net.kv_heads,
            "head_dim": net.head_dim,
            "intermediate_size": net.hidden,
            "attention_dropout": net.attention_dropout,
            "hidden_act": their_activation(net.activation),
            "rms_norm_eps": net.eps,
            "rope_theta": net.rotary.base,
            "rope_parameters": {**rotary, "rope_theta": net.rotary.base},
            "tie_word_embeddings": net.output is None,
            "bos_token_id": None,
            "eos_token_id": None,
            **self._fields(net),
        }

    def rules(self, net: Llama) -> list[Rule]:
        """Return the table; queries, keys and values are one tensor of ours."""
        sizes = tuple(n * net.head_dim for n in (net.heads, net.kv_heads, net.kv_heads))
        rules = [
            *pair("tokens", "model.embed_tokens", bias=False),
            *pair("norm", "model.norm", bias=False),
        ]
        for i in range(len(net.blocks)):
            a, b = f"blocks.{i}", f"model.layers.{i}"
            parts = (f"{b}.self_attn.{letter}_proj" for letter in "qkv")
            rules += pair(f"{a}.attention.qkv", *parts, bias="qkv" in net.biases, sizes=sizes)
            rules += pair(f"{a}.attention.out", f"{b}.self_attn.o_proj", bias="out" in net.biases)
            rules += pair(f"{a}.norm1", f"{b}.input_layernorm", bias=False)
            rules += pair(f"{a}.norm2", f"{b}.post_attention_layernorm", bias=False)
            for part in ("gate", "up", "down"):
                names = f"{a}.feed_forward.{part}", f"{b}.mlp.{part}_proj"
                rules += pair(*names, bias="feed_forward" in net.biases)
        return rules if net.output is None else [*rules, Rule("output.weight", (OUTPUT,))]

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``Llama`` of this variant."""
        return isinstance(net, Llama) and self._owned(net)


class Mistral(LlamaFolder):
    """``MistralForCausalLM`` as ``Llama`` with a window."""

    model_type = "mistral"

    def _variant(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return {"window": config["sliding_window"]}

    def _owned(self, net: Llama) -> bool:
        return not net.biases and net.window is not None and net.unwindowed == 0

    def _fields(self, net: Llama) -> dict[str, Any]:
        return {"sliding_window": net.window}


class Qwen2(LlamaFolder):
    """``Qwen2ForCausalLM`` as ``Llama`` with biases and, in the last blocks, a window."""

    model_type = "qwen2"

    def _variant(self, config: Mapping[str, Any]) -> dict[str, Any]:
        depth = config["num_hidden_layers"]
        window = config["sliding_window"] if config["use_sliding_window"] else None
        first = min(config["max_window_layers"], depth) if window else depth
        kinds = ["full_attention"] * first + ["sliding_attention"] * (depth - first)
        if config["layer_types"] not in (None, kinds):
            raise CheckpointMismatch(
                "load_pretrained: `layer_types` of a qwen2 model must be what `max_window_layers` "
                f"and `use_sliding_window` say, {kinds}; got {config['layer_types']}."
            )
        return {"biases": ("qkv",), "window": window, "unwindowed": first if window else 0}

    def _owned(self, net: Llama) -> bool:
        return net.biases == ("qkv",)

    def _fields(self, net: Llama) -> dict[str, Any]:
        window = net.window is not None
        return {
            "use_sliding_window": window,
            "sliding_window": net.window,
            "max_window_layers": net.unwindowed if window else len(net.blocks),
        }


def rotary_of(config: Mapping[str, Any], model_type: str) -> tuple[float, dict[str, Any] | None]:
    """Return the base of the positions and how they are stretched, under old or new names."""
    given = {
        "rope_theta": config["rope_theta"],
        "original_max_position_embeddings": config["max_position_embeddings"],
        "partial_rotary_factor": 1.0,
        **(config["rope_scaling"] or {}),
        **(config["rope_parameters"] or {}),
    }
    kind = given.get("rope_type", given.get("type", "default"))
    if kind not in ("default", *KINDS):
        raise _refused("rope_type", f"{listing(['default', *KINDS])}", kind, model_type)
    if given["partial_rotary_factor"] != 1:
        raise _refused("partial_rotary_factor", "1.0", given["partial_rotary_factor"], model_type)
    names = () if kind == "default" else KINDS[kind][1]
    for name in ("rope_theta", *names):
        if not is_positive(given.get(name)):
            raise _refused(name, "a number above 0", given.get(name), model_type)
    limits = [given[name] for name in ("low_freq_factor", "high_freq_factor") if name in names]
    if limits and limits[0] >= limits[1]:
        raise _refused("high_freq_factor", "above `low_freq_factor`", limits[1], model_type)
    scaling = {"rope_type": kind, **{name: given[name] for name in names}}
    return given["rope_theta"], scaling if names else None


def _refused(name: str, rule: str, value: Any, model_type: str) -> CheckpointMismatch:
    return CheckpointMismatch(
        f"load_pretrained: `{name}` among the rotary parameters of a {model_type} model must be "
        f"{rule}; got {shorten(repr(value), 40)}. Other variants are not supported."
    )
