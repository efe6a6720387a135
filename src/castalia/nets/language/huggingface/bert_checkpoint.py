"""BERT's and RoBERTa's configuration and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from castalia.nets.language.bert import BERT
from castalia.nets.language.huggingface.architecture import Architecture, their_activation
from castalia.nets.language.huggingface.tensor_names import Rule, pair

__all__ = ["Bert", "Roberta"]


class Bert(Architecture):
    """``BertForPreTraining``, ``BertForMaskedLM`` and ``BertModel`` as ``BERT``."""

    model_type = "bert"
    prefix = "bert."
    heads = ("cls.",)
    ignored = ("position_ids", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
    offset: ClassVar[int] = 0
    masked_names: ClassVar[tuple[str, str, str]] = (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    )

    def build(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> nn.Module:
        """Return a ``BERT`` with the heads that were saved."""
        self.must_be(config, "is_decoder", False)
        self.must_be(config, "add_cross_attention", False)
        self.must_be(config, "position_embedding_type", "absolute")
        return BERT(
            self.field(config, "vocab_size"),
            context=self.field(config, "max_position_embeddings") - self.offset,
            dim=self.field(config, "hidden_size"),
            depth=self.field(config, "num_hidden_layers"),
            heads=self.field(config, "num_attention_heads"),
            hidden=self.field(config, "intermediate_size"),
            segments=config.get("type_vocab_size", 2),
            dropout=config.get("hidden_dropout_prob", 0.1),
            activation=self.activation(config.get("hidden_act", "gelu")),
            offset=self.offset,
            pooler=f"{self.prefix}pooler.dense.weight" in given,
            masked=self.masked_names[2] in given,
            next_sentence="cls.seq_relationship.weight" in given,
            eps=config.get("layer_norm_eps", 1e-12),
        )

    def config(self, net: BERT) -> dict[str, Any]:
        """Return the configuration of a ``BERT``."""
        return {
            "model_type": self.model_type,
            "architectures": [self._class(net)],
            "vocab_size": net.vocabulary,
            "max_position_embeddings": net.context + self.offset,
            "hidden_size": net.dim,
            "num_hidden_layers": len(net.blocks),
            "num_attention_heads": net.heads,
            "intermediate_size": net.hidden,
            "type_vocab_size": net.segments.num_embeddings,
            "hidden_act": their_activation(net.activation),
            "layer_norm_eps": net.eps,
            "hidden_dropout_prob": net.dropout.p,
            "attention_probs_dropout_prob": net.dropout.p,
            "pad_token_id": self.offset - 1 if self.offset else 0,
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
        """Whether it is a ``BERT`` with this offset of positions."""
        return isinstance(net, BERT) and net.offset == self.offset


class Roberta(Bert):
    """``RobertaForMaskedLM`` and ``RobertaModel`` as ``BERT`` with positions from row 2."""

    model_type = "roberta"
    prefix = "roberta."
    heads = ("lm_head.",)
    ignored = ("position_ids", "lm_head.decoder.weight", "lm_head.decoder.bias")
    offset = 2
    masked_names = ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")

    def _class(self, net: BERT) -> str:
        return "RobertaForMaskedLM" if net.masked is not None else "RobertaModel"
