"""BERT's and RoBERTa's configuration and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from castalia.errors import CheckpointMismatch
from castalia.nets.language.bert import BERT
from castalia.nets.language.huggingface.architecture import (
    Architecture,
    drop_copies,
    their_activation,
)
from castalia.nets.language.huggingface.config_schema import ACTIVATIONS
from castalia.nets.language.huggingface.tensor_names import Rule, pair

__all__ = ["Bert", "Roberta"]


class Bert(Architecture):
    """``BertForPreTraining``, ``BertForMaskedLM`` and ``BertModel`` as ``BERT``."""

    model_type = "bert"
    prefix = "bert."
    heads = ("cls.",)
    ignored = ("position_ids",)
    masked_activation: ClassVar[str | None] = None  # that of the blocks
    pooler_activation: ClassVar[str] = "tanh"
    masked_names: ClassVar[tuple[str, str, str]] = (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    )

    def build(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> nn.Module:
        """Return a ``BERT`` with the heads that were saved."""
        offset = self._offset(config)
        return BERT(
            config["vocab_size"],
            context=config["max_position_embeddings"] - offset,
            dim=config["hidden_size"],
            depth=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            hidden=config["intermediate_size"],
            segments=config["type_vocab_size"],
            dropout=config["hidden_dropout_prob"],
            activation=ACTIVATIONS[config["hidden_act"]],
            masked_activation=self.masked_activation,
            offset=offset,
            pooler=f"{self.prefix}pooler.dense.weight" in given,
            pooler_activation=self.pooler_activation,
            masked=self.masked_names[2] in given,
            next_sentence="cls.seq_relationship.weight" in given,
            eps=config["layer_norm_eps"],
        )

    def _offset(self, config: Mapping[str, Any]) -> int:
        """Return how many rows of the position table come before position zero."""
        return 0

    def config(self, net: BERT) -> dict[str, Any]:
        """Return the configuration of a ``BERT``."""
        return {
            "model_type": self.model_type,
            "architectures": [self._class(net)],
            "vocab_size": net.vocabulary,
            "max_position_embeddings": net.context + net.offset,
            "hidden_size": net.dim,
            "num_hidden_layers": len(net.blocks),
            "num_attention_heads": net.heads,
            "intermediate_size": net.hidden,
            "type_vocab_size": net.segments.num_embeddings,
            "hidden_act": their_activation(net.activation),
            "layer_norm_eps": net.eps,
            "hidden_dropout_prob": net.dropout.p,
            "attention_probs_dropout_prob": net.dropout.p,
            "pad_token_id": max(net.offset - 1, 0),
            "bos_token_id": None,
            "eos_token_id": None,
        }

    def _class(self, net: BERT) -> str:
        if net.next_sentence is not None and net.masked is not None:
            return "BertForPreTraining"
        return "BertForMaskedLM" if net.masked is not None else "BertModel"

    def rules(self, net: BERT) -> list[Rule]:
        """Return the table; queries, keys and values are one tensor of ours."""
        p = self.prefix
        rules = [
            *pair("tokens", f"{p}embeddings.word_embeddings", bias=False),
            *pair("segments", f"{p}embeddings.token_type_embeddings", bias=False),
            *pair("positions", f"{p}embeddings.position_embeddings", bias=False),
            *pair("norm", f"{p}embeddings.LayerNorm"),
        ]
        for i in range(len(net.blocks)):
            a, b = f"blocks.{i}", f"{p}encoder.layer.{i}"
            parts = (f"{b}.attention.self.{part}" for part in ("query", "key", "value"))
            rules += pair(f"{a}.attention.qkv", *parts)
            rules += pair(f"{a}.attention.out", f"{b}.attention.output.dense")
            rules += pair(f"{a}.norm1", f"{b}.attention.output.LayerNorm")
            rules += pair(f"{a}.feed_forward.up", f"{b}.intermediate.dense")
            rules += pair(f"{a}.feed_forward.down", f"{b}.output.dense")
            rules += pair(f"{a}.norm2", f"{b}.output.LayerNorm")
        return rules + self._heads(net)

    def _heads(self, net: BERT) -> list[Rule]:
        rules: list[Rule] = []
        if net.pooler is not None:
            rules += pair("pooler", f"{self.prefix}pooler.dense")
        if net.masked is not None:
            dense, norm, bias = self.masked_names
            rules += [*pair("masked.dense", dense), *pair("masked.norm", norm)]
            rules.append(Rule("masked.bias", (bias,)))
        if net.next_sentence is not None:
            rules += pair("next_sentence", "cls.seq_relationship")
        return rules

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``BERT`` whose positions begin at row zero."""
        if not isinstance(net, BERT) or net.offset or not net.segments.num_embeddings:
            return False
        return self._has_head(net, net.activation)

    def _has_head(self, net: BERT, activation: str) -> bool:
        if net.pooler is not None and net.pooler_activation != self.pooler_activation:
            return False
        return net.masked is None or net.masked_activation == activation

    def tidy(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Drop copies of the token table and of the head's bias."""
        found = super().tidy(given)
        table, bias = f"{self.prefix}embeddings.word_embeddings.weight", self.masked_names[2]
        decoder = bias.replace("bias", "decoder")
        drop_copies(found, table, [f"{decoder}.weight"])
        drop_copies(found, bias, [f"{decoder}.bias"])
        return found


class Roberta(Bert):
    """``RobertaForMaskedLM`` and ``RobertaModel`` as ``BERT`` with positions behind padding's."""

    model_type = "roberta"
    prefix = "roberta."
    heads = ("lm_head.",)
    masked_activation = "gelu"  # whatever that of the blocks is
    masked_names = ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")

    def _offset(self, config: Mapping[str, Any]) -> int:
        offset: int = config["pad_token_id"] + 1
        if offset >= config["max_position_embeddings"]:
            raise CheckpointMismatch(
                f"load_pretrained: `max_position_embeddings` of a {self.model_type} model must be "
                f"above {offset}, for positions begin behind `pad_token_id`; got "
                f"{config['max_position_embeddings']}."
            )
        return offset

    def _class(self, net: BERT) -> str:
        return "RobertaForMaskedLM" if net.masked is not None else "RobertaModel"

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``BERT`` whose positions begin behind that of padding."""
        return isinstance(net, BERT) and net.offset > 0 and self._has_head(net, "gelu")
