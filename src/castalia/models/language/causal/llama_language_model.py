"""Llama as an estimator: language model, and partner of a conversation."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Constraint, Interval, OneOf, Trained
from castalia.data.prompts import ChatTemplate
from castalia.data.prompts.chat_template import as_conversations, is_conversations
from castalia.data.text import ConversationAdapter
from castalia.data.text.conversation_adapter import IGNORED
from castalia.errors import CheckpointMismatch, InvalidData, InvalidParameter
from castalia.models.language.attention_sizes import check_heads
from castalia.models.language.causal.llama_start import LowRank, merged, open_llama, weights_of
from castalia.models.language.causal.neural_language_model import NeuralLanguageModel
from castalia.models.language.pretrained.decoder_weights import adapted
from castalia.models.language.pretrained.start_weights import STARTS, StartReader
from castalia.nets.language import Llama, generate, load_pretrained, save_pretrained
from castalia.objectives import CausalLM
from castalia.objectives.objective import Objective
from castalia.protocols import Spec
from castalia.utils.atomic_files import atomic_write, writing

__all__ = ["LlamaLanguageModel"]

LONGEST = 4096  # tokens of a training block of a model from a folder, unless asked for


class Template(Constraint):
    """How conversations are written: a record, its text, or None."""

    def rule(self) -> str:
        """Say so."""
        return "a ChatTemplate, its text in Jinja, or None"

    def holds(self, value: Any) -> bool:
        """Whether it is one of them; a single word is no template."""
        text = isinstance(value, str) and "{" in value
        return value is None or text or isinstance(value, ChatTemplate)


@dataclass(kw_only=True, eq=False, repr=False)
class LlamaLanguageModel(NeuralLanguageModel):
    """Causal transformer of today's language models, from scratch or from a folder.

    Rotary positions, gated units and grouped heads; the mean of -log p of the next token is
    minimised, of conversations over the tokens of answers only. The right choice to read, use and
    fine-tune folders of Llama, Mistral and Qwen2; from scratch it does what ``GPTLanguageModel``
    does, with a smaller cache.

    Parameters
    ----------
    dim
        Width of the vectors; a multiple of ``heads``.
    depth
        Number of blocks.
    heads
        Attention heads of a block.
    kv_heads
        Heads of keys and values, which divide ``heads``; None: ``heads``. Fewer make generation
        cheaper.
    hidden
        Gated units of a block; None: 8/3 ``dim``.
    dropout
        Probability for attention weights.
    tied
        Whether the output layer is the table of the tokens.
    window
        How many tokens, itself included, a token sees; None: all before it.
    context
        Tokens of a training block, and of a conversation.
    stride
        As for ``GPTLanguageModel``.
    tokenizer
        A tokenizer, fitted or not, or the name of one; None: characters, or byte BPE for texts of
        more than two million. A ``start`` has its own.
    chat_template
        How conversations are written, a ``ChatTemplate`` or its text in Jinja; None: that of the
        ``start``, or ChatML.
    start
        What to continue from: a fitted ``LlamaLanguageModel``, the folder of a saved one, or a
        Hugging Face folder of Llama, Mistral or Qwen2, whose sizes replace those given here; None:
        random weights.
    train
        What of a start to train: ``"all"``, ``"head"`` (the output layer, be it the table of the
        tokens or its own), or the number of last blocks besides.
    adapt
        ``LoRA(…)``, trained in a frozen start.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.Llama``: ids (B, T) to logits (B, T, V).
    decoder_ : dict
        Sizes of the network.
    tokenizer_ : Tokenizer or None
        The tokenizer; None where texts are token ids.
    history_ : list of dict
        One line an epoch.

    Shapes
    ------
    X is N texts, as for ``GPTLanguageModel``, or N conversations, lists of messages
    ``{"role": …, "content": …}``. ``score_samples`` gives (N,).

    Notes
    -----
    Texts become one stream that is cut into blocks; a conversation is a row, and what lies beyond
    ``context`` tokens is not read. A step costs 6 operations a trained weight and token. A start in
    half precision is trained in single precision.

    References
    ----------
    2023, Touvron et al., LLaMA: open and efficient foundation language models, arXiv 2302.13971.
    2021, Hu et al., LoRA: low-rank adaptation of large language models, arXiv 2106.09685.

    See Also
    --------
    castalia.models.language.GPTLanguageModel : learned positions, GPT-2's folders.

    Examples
    --------
    >>> talks = [
    ...     [{"role": "user", "content": a}, {"role": "assistant", "content": b}]
    ...     for a, b in [("hi", "hello"), ("bye", "ciao")] * 20
    ... ]
    >>> model = LlamaLanguageModel(
    ...     dim=32, depth=1, heads=2, context=64, epochs=20, batch_size=8, lr=1e-2, random_state=0
    ... ).fit(talks)
    >>> model.chat([{"role": "user", "content": "bye"}])
    'ciao'
    """

    adapter: ClassVar[Any] = StartReader(ConversationAdapter)
    _beam_cache: ClassVar[bool] = True

    dim: Annotated[int, Interval(1, whole=True)] = 128
    depth: Annotated[int, Interval(1, whole=True)] = 4
    heads: Annotated[int, Interval(1, whole=True)] = 4
    kv_heads: Annotated[int | None, Interval(1, whole=True, optional=True)] = 2
    hidden: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    tied: Annotated[bool, OneOf(True, False)] = True
    window: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    stride: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    chat_template: Annotated[Any, Template()] = None
    start: Annotated[Any, STARTS] = None
    train: Annotated[Any, Trained()] = "all"
    adapt: Annotated[Any, LowRank()] = None

    # -- reading -------------------------------------------------------------------------------

    def _reader(self) -> ConversationAdapter:
        """Make the adapter, with the tokenizer and the template of the start."""
        opened = self._opened = open_llama(self.start, type(self).__name__)
        template = self.chat_template
        template = ChatTemplate(template) if isinstance(template, str) else template
        if opened is None:
            return self._adapter(self.tokenizer, template)
        known = opened.tokenizer or self.tokenizer
        made = self._adapter(known, template or opened.template)
        return made.adopt(known, opened.net.vocabulary, opened.ends)

    def _adapter(self, tokenizer: Any, template: ChatTemplate | None) -> ConversationAdapter:
        context, stride = self.context, self.stride
        return ConversationAdapter(tokenizer, context=context, stride=stride, template=template)

    # -- the network ---------------------------------------------------------------------------

    def _network(self, spec: Spec) -> nn.Module:
        loading = hasattr(self, "n_iter_") and not hasattr(self, "module_")
        opened, self._opened = getattr(self, "_opened", None), None
        if opened is not None:
            self.decoder_ = {**opened.net.sizes, "dropout": self.dropout}
        elif self.start is None and not loading:
            self.decoder_ = self._own_sizes(spec)
        net = Llama(spec.extra["vocabulary"], **vars(self)["decoder_"])
        if opened is not None:
            net.to(torch.promote_types(opened.net.tokens.weight.dtype, torch.float32))
            net.load_state_dict(weights_of(opened.net))
        return self._finished(net)

    def _own_sizes(self, spec: Spec) -> dict[str, Any]:
        check_heads(self)
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise InvalidParameter(
                f"LlamaLanguageModel: `kv_heads` must divide heads={self.heads}; got "
                f"{self.kv_heads}."
            )
        if self.dim // self.heads % 2:
            raise InvalidParameter(
                "LlamaLanguageModel: `dim` / `heads`, the width of a head, must be even; got "
                f"{self.dim} / {self.heads}."
            )
        own = ("dim", "depth", "heads", "kv_heads", "hidden", "dropout", "tied", "window")
        return {"context": spec.extra["context"], **{name: getattr(self, name) for name in own}}

    def _finished(self, net: Any) -> nn.Module:
        """Return the network with what is not trained frozen; the output layer always is."""
        whole: nn.Module = adapted(self, net)
        head = net.tokens if net.output is None and self.train == "head" else net.output
        if self.adapt is None and head is not None:
            head.requires_grad_(True)
        return whole

    def _objective(self, spec: Spec) -> Objective:
        return CausalLM(ignore=IGNORED if spec.extra["answers"] else None)

    # -- conversations -------------------------------------------------------------------------

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of a token, in nats; of conversations, of an answer's.

        Parameters
        ----------
        X
            Texts, read one behind the other, or conversations, each by itself.
        y
            Not used.
        """
        check_is_fitted(self, "module_")
        if not is_conversations(X):
            return super().score(X)
        ids, inside = self.adapter_.marked(X, type(self).__name__)
        pairs = zip(self._logs(ids), inside, strict=True)
        return float(np.concatenate([logs[counted[1:]] for logs, counted in pairs]).mean())

    def chat(
        self,
        messages: Any,
        tokens: int = 200,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        random_state: Any = None,
    ) -> Any:
        """Return the answer to a conversation, or the answers to several.

        Parameters
        ----------
        messages
            A conversation, which ends with a question, or a list of conversations.
        tokens
            Most tokens of an answer.
        temperature, top_k, top_p, repetition_penalty, random_state
            As for ``generate``; by default the most probable token is taken.
        """
        check_is_fitted(self, "module_")
        name = f"{type(self).__name__}.chat"
        several = is_conversations(messages)
        if self.tokenizer_ is None:
            raise InvalidData(f"{name}: it was fitted on token ids, and has no tokenizer.")
        talks = as_conversations(messages if several else [messages], name)
        new = generate(
            self.module_,
            [self._asked(talk) for talk in talks],
            tokens=tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            repetition_penalty=repetition_penalty,
            stop=self.adapter_.stops,
            pad=-1,
            slide=True,
            random_state=self.random_state if random_state is None else random_state,
        )
        answers = [self._answer(row) for row in new.tolist()]
        return answers if several else answers[0]

    def _asked(self, talk: Sequence[Mapping[str, Any]]) -> list[int]:
        text = self.adapter_._writer().render(talk, add_generation_prompt=True)
        found: list[int] = self.adapter_.tokenizer.encode(text, special=True)
        return found

    def _answer(self, new: list[int]) -> str:
        """Return what was written, up to the end of the turn."""
        ends = {-1, *self.adapter_.stops}
        stop = next((place for place, i in enumerate(new) if i in ends), len(new))
        made, tail = self.adapter_.tokenizer, self.adapter_.turn()[0]
        text: str = made.decode([i for i in new[:stop] if i < len(made)], special=True)
        return (text.partition(tail)[0] if tail else text).strip()

    # -- folders -------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(
        cls, directory: str | os.PathLike[str], *, extra: str = "error"
    ) -> LlamaLanguageModel:
        """Return the fitted model of a Hugging Face folder of Llama, Mistral or Qwen2.

        ``module_(ids)`` gives the logits that ``transformers`` gives, and ``fit`` goes on from its
        weights. Without a tokenizer in the folder, texts and prompts are token ids.

        Parameters
        ----------
        directory
            The folder: ``config.json``, ``model.safetensors``, whole or in shards, and
            ``tokenizer.json``; ``chat_template.jinja`` and ``generation_config.json`` are read too.
        extra
            What to do with tensors that have no place in the network: ``"error"`` names them,
            ``"ignore"`` leaves them out.
        """
        net = load_pretrained(directory, extra=extra)
        if not isinstance(net, Llama):
            raise CheckpointMismatch(
                f"{cls.__name__}.from_pretrained: `{directory}` must hold a Llama, Mistral or "
                f"Qwen2; it holds a {type(net).__name__}."
            )
        own = ("dim", "heads", "kv_heads", "hidden", "window")
        made = cls(
            **{name: getattr(net, name) for name in own},
            depth=len(net.blocks),
            dropout=net.attention_dropout,
            tied=net.output is None,
            context=min(net.context, LONGEST),
            start=str(directory),
        )
        made.adapter_ = made._reader()
        made._opened = None
        made.adapter_.fitted = True
        made.decoder_, made.module_ = net.sizes, net
        made.spec_ = Spec(1, 1, extra=dict(made.adapter_.extra))
        made.history_, made.n_iter_ = [], 0
        return made

    def save_pretrained(self, directory: str | os.PathLike[str]) -> Path:
        """Write the model as a Hugging Face folder, tokenizer and template included; return it.

        Low-rank updates are added to their layers.

        Parameters
        ----------
        directory
            The folder; it is made where it is not there.
        """
        check_is_fitted(self, "module_")
        made = self.tokenizer_
        text = None if made is None else made.backend_.to_str(pretty=True)
        folder = save_pretrained(merged(self.module_), directory, tokenizer=text)
        adapter = self.adapter_
        said: dict[str, Any]
        with writing("save_pretrained", folder):
            if adapter.stops:
                said = {"eos_token_id": list(adapter.stops)}
                atomic_write(folder / "generation_config.json", json.dumps(said, indent=2) + "\n")
            if made is not None:
                template = adapter._writer()
                said = {"tokenizer_class": "PreTrainedTokenizerFast", **template.special}
                atomic_write(folder / "tokenizer_config.json", json.dumps(said, indent=2) + "\n")
                atomic_write(folder / "chat_template.jinja", template.source)
        return folder

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        copy.start = self.start  # a clone of it would have forgotten what is wanted here
        return copy
