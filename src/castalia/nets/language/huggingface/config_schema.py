"""What ``config.json`` may say: fields, rules, bounds and defaults, one table for each model type.

A new architecture adds a table here and reads its fields by ``checked_config``. A field that is in
no table changes nothing; one that would change the computation in a way that our networks do not
follow stands in the table with the only value it may have, and any other is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from castalia.errors import CheckpointMismatch
from castalia.utils.text import listing, shorten

__all__ = [
    "ACTIVATIONS",
    "SCHEMAS",
    "Field",
    "Schema",
    "check_depth",
    "checked_config",
    "flag",
    "number",
    "only",
    "whole",
    "word",
]

# Their names of activations, and ours.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "swish",
    "swish": "swish",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "leaky_relu": "leaky_relu",
    "linear": "identity",
}
REQUIRED = object()


@dataclass(frozen=True)
class Field:
    """One field: its rule in words, the test of it, and its default unless it is required."""

    rule: str
    holds: Callable[[Any], bool]
    default: Any = REQUIRED

    def read(self, config: Mapping[str, Any], name: str, model_type: str) -> Any:
        """Return the value of this field, or raise with its rule."""
        value = config.get(name)
        if value is None and self.default is not REQUIRED:
            return self.default
        if name not in config:
            raise CheckpointMismatch(
                f"load_pretrained: `{name}` must be in `config.json` of a {model_type} model."
            )
        if not self.holds(value):
            raise CheckpointMismatch(
                f"load_pretrained: `{name}` of a {model_type} model must be {self.rule}; got "
                f"{shorten(repr(value), 60)}."
            )
        return value


@dataclass(frozen=True)
class Schema:
    """The table of a model type.

    Attributes
    ----------
    fields
        Name to ``Field``.
    aliases
        Other names of fields, to the name in ``fields``; both may stand there if they agree.
    multiples
        Pairs of names; the first must be a multiple of the second.
    depths
        Names of fields that say how many blocks there are.
    """

    fields: Mapping[str, Field]
    aliases: Mapping[str, str] = field(default_factory=dict)
    multiples: tuple[tuple[str, str], ...] = ()
    depths: tuple[str, ...] = ("num_hidden_layers",)


def whole(least: int, most: int, default: Any = REQUIRED) -> Field:
    """Return the field of a whole number between bounds."""

    def holds(value: Any) -> bool:
        return type(value) is int and least <= value <= most

    return Field(f"a whole number from {least:,} to {most:,}", holds, default)


def number(least: float, most: float, default: Any = REQUIRED) -> Field:
    """Return the field of a number between bounds."""

    def holds(value: Any) -> bool:
        return type(value) in (int, float) and least <= value <= most  # NaN is neither

    return Field(f"a number from {least:g} to {most:g}", holds, default)


def flag(default: Any = REQUIRED) -> Field:
    """Return the field of true or false."""
    return Field("true or false", lambda value: type(value) is bool, default)


def word(known: Iterable[str], default: Any = REQUIRED) -> Field:
    """Return the field of one of some words."""
    words = tuple(known)
    return Field(listing(words), lambda value: isinstance(value, str) and value in words, default)


def only(value: Any) -> Field:
    """Return a field that asks for what our networks do not do, unless it has this value."""
    rule = f"{value!r}, for other variants are not supported"
    return Field(rule, lambda given: type(given) is type(value) and given == value, value)


def checked_config(config: Mapping[str, Any], model_type: str) -> dict[str, Any]:
    """Return all fields of a model type's table, checked, with defaults for those left out.

    Parameters
    ----------
    config
        What ``config.json`` says.
    model_type
        A key of ``SCHEMAS``.
    """
    schema = SCHEMAS[model_type]
    given = _under_one_name(config, schema, model_type)
    found = {name: each.read(given, name, model_type) for name, each in schema.fields.items()}
    for whole_name, part in schema.multiples:
        if found[whole_name] % found[part]:
            raise CheckpointMismatch(
                f"load_pretrained: `{whole_name}` of a {model_type} model must be a multiple of "
                f"`{part}`; got {found[whole_name]} and {found[part]}."
            )
    return found


def check_depth(config: Mapping[str, Any], model_type: str, tensors: int) -> None:
    """Refuse more blocks than there are tensors: none is built before it is known to be there."""
    for name in SCHEMAS[model_type].depths:
        if (config[name] or 0) > tensors:
            raise CheckpointMismatch(
                f"load_pretrained: `{name}` of a {model_type} model must be the number of its "
                f"blocks; got {config[name]:,} with {tensors} tensors in the file."
            )


def _under_one_name(config: Mapping[str, Any], schema: Schema, model_type: str) -> dict[str, Any]:
    given = dict(config)
    for alias, name in schema.aliases.items():
        if alias in config and given.setdefault(name, config[alias]) != config[alias]:
            raise CheckpointMismatch(
                f"load_pretrained: `{alias}` and `{name}` of a {model_type} model must be equal; "
                f"got {shorten(repr(config[alias]), 40)} and {shorten(repr(given[name]), 40)}."
            )
    return given


# ---- the tables ----

TOKENS = whole(1, 2**24)
CONTEXT = whole(1, 2**24)
WIDTH = whole(1, 2**18)
DEPTH = whole(1, 512)
HEADS = whole(1, 2**12)
DROPOUT = number(0, 1, 0.1)
EVERYWHERE = {
    "cross_attention_hidden_size": only(None),
    "pruned_heads": only({}),
    "quantization_config": only(None),
    "tie_encoder_decoder": only(False),
}
ENCODER = {
    **EVERYWHERE,
    "vocab_size": TOKENS,
    "max_position_embeddings": CONTEXT,
    "hidden_size": WIDTH,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": HEADS,
    "intermediate_size": WIDTH,
    "type_vocab_size": whole(1, 2**12, 2),
    "hidden_act": word(ACTIVATIONS, "gelu"),
    "hidden_dropout_prob": DROPOUT,
    "layer_norm_eps": number(0, 1, 1e-12),
    "position_embedding_type": only("absolute"),
    "is_decoder": only(False),
    "is_encoder_decoder": only(False),
    "add_cross_attention": only(False),
    "tie_word_embeddings": flag(True),
}

MAPPING = Field("a mapping of names to values", lambda value: isinstance(value, dict), None)
LLAMA = {
    **EVERYWHERE,
    "vocab_size": TOKENS,
    "max_position_embeddings": CONTEXT,
    "hidden_size": WIDTH,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": replace(HEADS, default=None),
    "head_dim": whole(2, 2**16, None),
    "intermediate_size": WIDTH,
    "attention_dropout": number(0, 1, 0.0),
    "hidden_act": word(ACTIVATIONS, "silu"),
    "rms_norm_eps": number(0, 1, 1e-6),
    "rope_theta": number(1, 1e12, 10000.0),
    "rope_scaling": MAPPING,
    "rope_parameters": MAPPING,
    "tie_word_embeddings": flag(False),
    "is_encoder_decoder": only(False),
}

SCHEMAS: dict[str, Schema] = {
    "gpt2": Schema(
        {
            **EVERYWHERE,
            "vocab_size": TOKENS,
            "n_positions": CONTEXT,
            "n_embd": WIDTH,
            "n_layer": DEPTH,
            "n_head": HEADS,
            "n_inner": replace(WIDTH, default=None),
            "activation_function": word(ACTIVATIONS, "gelu_new"),
            "resid_pdrop": DROPOUT,
            "layer_norm_epsilon": number(0, 1, 1e-5),
            "scale_attn_weights": only(True),
            "scale_attn_by_inverse_layer_idx": only(False),
            "is_encoder_decoder": only(False),
            "add_cross_attention": only(False),
            "tie_word_embeddings": flag(True),
        },
        aliases={
            "hidden_size": "n_embd",
            "max_position_embeddings": "n_positions",
            "num_attention_heads": "n_head",
            "num_hidden_layers": "n_layer",
        },
        multiples=(("n_embd", "n_head"),),
        depths=("n_layer",),
    ),
    "bert": Schema(ENCODER, multiples=(("hidden_size", "num_attention_heads"),)),
    "roberta": Schema(
        {**ENCODER, "pad_token_id": whole(0, 2**24, 1)},
        multiples=(("hidden_size", "num_attention_heads"),),
    ),
    "t5": Schema(
        {
            **EVERYWHERE,
            "vocab_size": TOKENS,
            "d_model": WIDTH,
            "d_kv": WIDTH,
            "d_ff": WIDTH,
            "num_layers": DEPTH,
            "num_decoder_layers": replace(DEPTH, default=None),
            "num_heads": HEADS,
            "relative_attention_num_buckets": whole(4, 2**16, 32),
            "relative_attention_max_distance": whole(1, 2**24, 128),
            "feed_forward_proj": word(
                [kind for name in ACTIVATIONS for kind in (name, f"gated-{name}")], "relu"
            ),
            "dense_act_fn": word(ACTIVATIONS, None),
            "is_gated_act": flag(None),
            "dropout_rate": DROPOUT,
            "layer_norm_epsilon": number(0, 1, 1e-6),
            "scale_decoder_outputs": flag(None),
            "tie_word_embeddings": flag(True),
            "is_decoder": only(False),
            "is_encoder_decoder": only(True),
        },
        aliases={
            "hidden_size": "d_model",
            "num_attention_heads": "num_heads",
            "num_hidden_layers": "num_layers",
            "head_dim": "d_kv",
        },
        depths=("num_layers", "num_decoder_layers"),
    ),
    "bart": Schema(
        {
            **EVERYWHERE,
            "vocab_size": TOKENS,
            "max_position_embeddings": CONTEXT,
            "d_model": WIDTH,
            "encoder_layers": DEPTH,
            "decoder_layers": DEPTH,
            "encoder_attention_heads": HEADS,
            "decoder_attention_heads": HEADS,
            "encoder_ffn_dim": WIDTH,
            "decoder_ffn_dim": WIDTH,
            "activation_function": word(ACTIVATIONS, "gelu"),
            "dropout": DROPOUT,
            "scale_embedding": flag(False),
            "normalize_before": only(False),
            "add_final_layer_norm": only(False),
            "normalize_embedding": only(True),
            "static_position_embeddings": only(False),
            "is_decoder": only(False),
            "is_encoder_decoder": only(True),
            "tie_word_embeddings": flag(True),
        },
        aliases={
            "hidden_size": "d_model",
            "num_attention_heads": "encoder_attention_heads",
            "num_hidden_layers": "encoder_layers",
        },
        multiples=(
            ("d_model", "encoder_attention_heads"),
            ("d_model", "decoder_attention_heads"),
        ),
        depths=("encoder_layers", "decoder_layers"),
    ),
    "distilbert": Schema(
        {
            **ENCODER,
            "type_vocab_size": only(0),
            "layer_norm_eps": only(1e-12),
            "max_position_embeddings": replace(CONTEXT, default=512),
        },
        aliases={
            "dim": "hidden_size",
            "n_layers": "num_hidden_layers",
            "n_heads": "num_attention_heads",
            "hidden_dim": "intermediate_size",
            "activation": "hidden_act",
            "dropout": "hidden_dropout_prob",
        },
        multiples=(("hidden_size", "num_attention_heads"),),
        depths=("num_hidden_layers",),
    ),
    "llama": Schema(
        {**LLAMA, "attention_bias": flag(False), "mlp_bias": flag(False)},
        depths=("num_hidden_layers",),
    ),
    "mistral": Schema(
        {**LLAMA, "sliding_window": whole(1, 2**24, None)}, depths=("num_hidden_layers",)
    ),
    "qwen2": Schema(
        {
            **LLAMA,
            "use_sliding_window": flag(False),
            "sliding_window": whole(1, 2**24, 4096),
            "max_window_layers": whole(0, 512, 28),
            "layer_types": Field("a list of names", lambda value: isinstance(value, list), None),
        },
        depths=("num_hidden_layers",),
    ),
}
SCHEMAS["xlm-roberta"] = SCHEMAS["roberta"]
SCHEMAS["mt5"] = replace(
    SCHEMAS["t5"],
    fields={
        **SCHEMAS["t5"].fields,
        "feed_forward_proj": replace(
            SCHEMAS["t5"].fields["feed_forward_proj"], default="gated-gelu"
        ),
    },
)
SCHEMAS["marian"] = replace(
    SCHEMAS["bart"],
    fields={
        **SCHEMAS["bart"].fields,
        "decoder_vocab_size": replace(TOKENS, default=None),
        "share_encoder_decoder_embeddings": only(True),
        "normalize_embedding": only(False),
        "static_position_embeddings": only(True),
    },
)
