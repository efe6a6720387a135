"""What estimators on a BERT-like encoder share: its sizes, where it begins, what of it is trained.

Three regimes on the same data, as for images: from scratch (no start), feature extraction (a
start, and only the last layers trained) and fine-tuning; beside them, small parts that are added to
a frozen encoder (LoRA, bottleneck adapters, learnt prompts).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from torch import nn

from castalia.base import Constraint, Interval, Trained
from castalia.data.text import PairAdapter
from castalia.data.tokenizers import Tokenizer
from castalia.errors import InvalidParameter
from castalia.models.language.pretrained.start_weights import (
    STARTS,
    StartReader,
    read_start,
    refuse_forgetting,
)
from castalia.models.language.tokenizer_parameter import TokenizerChoice, make_tokenizer
from castalia.nets import language as nets
from castalia.nn.adaptation.bottleneck_adapters import BottleneckAdapters
from castalia.nn.adaptation.lora import LoRA
from castalia.nn.adaptation.soft_prompts import Prompts
from castalia.protocols import Spec
from castalia.utils.text import plural

__all__ = [
    "Adaptation",
    "EncoderSizes",
    "Startable",
    "as_wide",
    "open_start",
    "sizes_of",
]

BASE = 768  # width of BERT base
_BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


class Adaptation(Constraint):
    """Small parts added to a frozen network."""

    def rule(self) -> str:
        """Say so."""
        return "LoRA(…), BottleneckAdapters(…), Prompts(…) of castalia.nn, or None"

    def holds(self, value: Any) -> bool:
        """Whether it is one of them."""
        return value is None or isinstance(value, LoRA | BottleneckAdapters | Prompts)


@dataclass(frozen=True)
class Opened:
    """A start: its encoder and its tokenizer."""

    net: nets.BERT
    tokenizer: Tokenizer | None


def open_start(start: Any, owner: str) -> Opened | None:
    """Return the encoder and the tokenizer of a start."""
    given = read_start(start)
    if given is None:
        return None
    net = getattr(given.net, "encoder", given.net)
    net = getattr(net, "net", net)  # below learnt prompts
    if not isinstance(net, nets.BERT):
        raise InvalidParameter(
            f"{owner}: `start` must hold a BERT or RoBERTa; got {start!r} with a "
            f"{type(net).__name__}."
        )
    return Opened(net, given.tokenizer)


def sizes_of(net: nets.BERT) -> dict[str, Any]:
    """Return the arguments that build such a network, as plain values."""
    return {
        "vocabulary": net.vocabulary,
        "context": net.context,
        "dim": net.dim,
        "depth": len(net.blocks),
        "heads": net.heads,
        "hidden": net.hidden,
        "segments": net.segments.num_embeddings,
        "activation": net.activation,
        "masked_activation": net.masked_activation,
        "offset": net.offset,
        "eps": net.eps,
        "pooler_activation": net.pooler_activation,
    }


@dataclass(kw_only=True, eq=False, repr=False)
class EncoderSizes:
    """Fields of estimators on an encoder; see ``BERT``."""

    adapter: ClassVar[Any] = StartReader(PairAdapter)
    _family: ClassVar[str] = "bert"  # which recipe: or "roberta"

    tokenizer: Annotated[Any, TokenizerChoice()] = None
    context: Annotated[int, Interval(8, whole=True)] = 128
    dim: Annotated[int, Interval(1, whole=True)] = 256
    depth: Annotated[int, Interval(1, whole=True)] = 4
    heads: Annotated[int, Interval(1, whole=True)] = 4
    hidden: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.1
    start: Annotated[Any, STARTS] = None
    batch_tokens: Annotated[int | None, Interval(1, whole=True, optional=True)] = None

    def _reader(self, **settings: Any) -> PairAdapter:
        """Make the adapter, with the tokenizer of the start."""
        refuse_forgetting(self)
        opened = self._opened = open_start(self.start, type(self).__name__)
        if opened is None:
            return PairAdapter(self._unfitted_tokenizer(), context=self.context, **settings)
        if opened.tokenizer is None and self.tokenizer is None:
            raise InvalidParameter(
                f"{type(self).__name__}: `tokenizer` must be given, for `start` has none "
                f"({self.start!r} holds no tokenizer.json)."
            )
        known = opened.tokenizer or self.tokenizer
        adapt = getattr(self, "adapt", None)
        room = opened.net.context - (adapt.count if isinstance(adapt, Prompts) else 0)
        made = PairAdapter(known, context=min(self.context, room), **settings)
        made.double = opened.net.offset > 0
        return made

    def _unfitted_tokenizer(self) -> Tokenizer:
        if self._family == "bert":
            return make_tokenizer(self.tokenizer, "wordpiece", _BERT_SPECIAL)
        return make_tokenizer(self.tokenizer, "byte-bpe", _ROBERTA_SPECIAL)

    def _encoder(self, spec: Spec, **heads: bool) -> nets.BERT:
        """Build the encoder, with the weights of the start where there is one."""
        if hasattr(self, "n_iter_") and not hasattr(self, "module_"):  # it is being loaded
            return self._build(vars(self)["encoder_"], heads)
        opened = getattr(self, "_opened", None)
        self.encoder_ = self._own_sizes(spec) if opened is None else sizes_of(opened.net)
        net = self._build(self.encoder_, heads)
        if opened is None:
            as_wide(net)
        else:
            known = net.state_dict()
            given = {k: v for k, v in opened.net.state_dict().items() if k in known}
            net.to(next(opened.net.parameters()).dtype).load_state_dict(given, strict=False)
        self._opened = None
        return net

    def _build(self, sizes: dict[str, Any], heads: dict[str, Any]) -> nets.BERT:
        return nets.BERT(**sizes, **heads, dropout=self.dropout)

    def _own_sizes(self, spec: Spec) -> dict[str, Any]:
        roberta = self._family == "roberta"
        return {
            "vocabulary": spec.extra["vocabulary"],
            "context": spec.extra["context"],
            "dim": self.dim,
            "depth": self.depth,
            "heads": self.heads,
            "hidden": self.hidden,
            "segments": 1 if roberta else 2,
            "activation": "gelu",
            "offset": 2 if roberta else 0,
            "eps": 1e-5 if roberta else 1e-12,
        }

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()  # type: ignore[misc]
        copy.start = self.start  # a clone of it would have forgotten what is wanted here
        return copy


@torch.no_grad()
def as_wide(net: nets.BERT | nets.GPT) -> None:
    """Scale the first weights, N(0, 0.02^2) at width 768, so that a sum over ``dim`` is as large.

    In a narrow network 0.02 lets the first token attend to almost nothing of the others.
    """
    for parameter in net.parameters():
        if parameter.ndim == 2:
            parameter.mul_(math.sqrt(BASE / net.dim))


@dataclass(kw_only=True, eq=False, repr=False)
class Startable(EncoderSizes):
    """Fields of estimators that learn a task on an encoder; see ``BERTClassifier``."""

    train: Annotated[Any, Trained()] = "all"
    adapt: Annotated[Any, Adaptation()] = None

    def _finished(self, net: Any) -> nn.Module:
        """Return a network on an encoder with what is not trained frozen."""
        name = type(self).__name__
        if self.start is None and (self.train != "all" or self.adapt is not None):
            raise InvalidParameter(
                f"{name}: `train` must be 'all' and `adapt` None without a `start`, or random "
                f"weights would be kept; got {self.train!r} and {self.adapt!r}. Give a `start`."
            )
        if self.adapt is not None:
            if self.train != "all":
                raise InvalidParameter(
                    f"{name}: `train` must be 'all' with `adapt`, which freezes the encoder; got "
                    f"{self.train!r}."
                )
            net.encoder = self.adapt.apply(net.encoder)
            if net.encoder.pooler is not None:  # it belongs to the task
                net.encoder.pooler.requires_grad_(True)
        elif self.train != "all":
            freeze_encoder(net.encoder, 0 if self.train == "head" else self.train, name)
        return net


def freeze_encoder(encoder: nets.BERT, trained: int, owner: str) -> None:
    """Keep an encoder but for its pooler and its last blocks."""
    depth = len(encoder.blocks)
    if trained > depth:
        raise InvalidParameter(
            f"{owner}: `train` must be at most {depth}, for the encoder has "
            f"{plural(depth, 'block')}; got {trained}. 'all' trains the embeddings too."
        )
    encoder.requires_grad_(False)
    for part in [*list(encoder.blocks)[depth - trained :], encoder.pooler]:
        if part is not None:
            part.requires_grad_(True)
