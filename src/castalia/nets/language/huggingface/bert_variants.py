"""Configuration and names of DistilBERT and XLM-R, whose equations are BERT's and RoBERTa's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from castalia.nets.language.bert import BERT
from castalia.nets.language.huggingface.architecture import (
    Architecture,
    drop_copies,
    their_activation,
)
from castalia.nets.language.huggingface.bert_checkpoint import Bert, Roberta
from castalia.nets.language.huggingface.tensor_names import Rule, pair

__all__ = ["DistilBert", "XLMRoberta"]


class DistilBert(Bert):
    """``DistilBertForMaskedLM`` and ``DistilBertModel`` as ``BERT`` without segments.

    A pooler, with ReLU, is there only below the head of a classifier.
    """

    model_type = "distilbert"
    prefix = "distilbert."
    heads = ("vocab_",)
    pooler_activation = "relu"
    masked_names = ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias")

    def config(self, net: BERT) -> dict[str, Any]:
        """Return the configuration of a ``BERT`` without segments."""
        return {
            "model_type": "distilbert",
            "architectures": [self._class(net)],
            "vocab_size": net.vocabulary,
            "max_position_embeddings": net.context,
            "dim": net.dim,
            "n_layers": len(net.blocks),
            "n_heads": net.heads,
            "hidden_dim": net.hidden,
            "activation": their_activation(net.activation),
            "dropout": net.dropout.p,
            "attention_dropout": net.dropout.p,
            "pad_token_id": 0,
        }

    def _class(self, net: BERT) -> str:
        return "DistilBertForMaskedLM" if net.masked is not None else "DistilBertModel"

    def rules(self, net: BERT) -> list[Rule]:
        """Return the table; queries, keys and values are one tensor of ours."""
        p = self.prefix
        rules = [
            *pair("tokens", f"{p}embeddings.word_embeddings", bias=False),
            *pair("positions", f"{p}embeddings.position_embeddings", bias=False),
            *pair("norm", f"{p}embeddings.LayerNorm"),
        ]
        for i in range(len(net.blocks)):
            a, b = f"blocks.{i}", f"{p}transformer.layer.{i}"
            rules += pair(f"{a}.attention.qkv", *(f"{b}.attention.{x}_lin" for x in "qkv"))
            rules += pair(f"{a}.attention.out", f"{b}.attention.out_lin")
            rules += pair(f"{a}.norm1", f"{b}.sa_layer_norm")
            rules += pair(f"{a}.feed_forward.up", f"{b}.ffn.lin1")
            rules += pair(f"{a}.feed_forward.down", f"{b}.ffn.lin2")
            rules += pair(f"{a}.norm2", f"{b}.output_layer_norm")
        return rules + self._heads(net)

    def owns(self, net: nn.Module) -> bool:
        """Whether it is a ``BERT`` without segments, with BERT's norms."""
        if not isinstance(net, BERT) or net.segments.num_embeddings:
            return False
        return not net.offset and net.eps == EPS and self._has_head(net, net.activation)

    def tidy(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Drop a copy of the token table."""
        found = Architecture.tidy(self, given)
        table = f"{self.prefix}embeddings.word_embeddings.weight"
        drop_copies(found, table, ["vocab_projector.weight"])
        return found


EPS = 1e-12  # of DistilBERT's norms, whatever the configuration


class XLMRoberta(Roberta):
    """``XLMRobertaForMaskedLM`` and ``XLMRobertaModel``: RoBERTa's names and equations."""

    model_type = "xlm-roberta"

    def _class(self, net: BERT) -> str:
        return f"XLM{super()._class(net)}"
