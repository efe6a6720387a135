"""Labels of texts, pairs and answers, on a GPT."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Classifier, Estimator, Interval, OneOf, Target, Trained
from castalia.base.targets import ClassCodec
from castalia.data.text import LAYOUTS, LayoutAdapter
from castalia.data.text.layout_adapter import ADDED
from castalia.data.tokenizers import Tokenizer
from castalia.errors import CheckpointMismatch, InvalidData, InvalidParameter
from castalia.models.language.attention_sizes import check_heads
from castalia.models.language.pretrained.decoder_weights import (
    adapted,
    decoder_rates,
    grow,
    open_decoder,
    room_of,
    sizes_of,
    with_bias,
)
from castalia.models.language.pretrained.encoder_parameters import Adaptation, as_wide
from castalia.models.language.pretrained.start_weights import (
    STARTS,
    StartReader,
    refuse_forgetting,
)
from castalia.models.language.pretrained.task_exchange import classes_of
from castalia.models.language.tokenizer_parameter import TokenizerChoice
from castalia.nets.language import GPT, CausalClassifier, TaskFolder, load_task, save_task
from castalia.nets.language.huggingface.pretrained_networks import whole
from castalia.objectives import AuxiliaryLM, Layered, Objective, class_loss
from castalia.protocols import Spec

__all__ = ["GPTClassifier"]


class ChoiceCodec(ClassCodec):
    """Classes, or the numbers of right answers where a row has several, X (N, K, 2)."""

    def check(self, est: Any, adapter: Any, X: np.ndarray, y: Any) -> np.ndarray:
        """Return y; of choices, numbers from 0 to K-1."""
        found: np.ndarray = super().check(est, adapter, X, y)
        answers = X.shape[1] if X.ndim == 3 else 0
        allowed = np.isin(found, np.arange(answers))
        if answers and (found.ndim != 1 or not allowed.all()):
            wrong = "a table" if found.ndim != 1 else repr(found[~allowed].tolist()[0])
            raise InvalidData(
                f"{type(est).__name__}: y must hold the number of the right answer, from 0 to "
                f"{answers - 1}; got {wrong}."
            )
        return found

    def fit(
        self, est: Any, adapter: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn the classes; of choices, they are all answers."""
        if X.ndim != 3:
            return super().fit(est, adapter, X, y, weight)
        est.multilabel_, est.classes_ = False, np.arange(X.shape[1])
        return self.coded(est, y.astype(np.int64), weight)


@dataclass(kw_only=True, eq=False, repr=False)
class GPTClassifier(Classifier, Estimator):
    """Causal transformer that classifies texts and pairs of texts, or picks an answer.

    A linear layer on the vector of the last token; minimised is cross-entropy plus ``auxiliary``
    times the mean of -log p of the next token of the same texts. With a ``start`` it continues from
    a pretrained language model, the right choice with few labels; without, it learns from the
    labels alone and needs many. An encoder (``BERTClassifier``) reads both sides of a word and is
    usually better of its size.

    Parameters
    ----------
    layout
        What a row is: ``"text"``, a ``"pair"`` (premise and hypothesis), a pair whose order does
        not matter (``"similarity"``: read in both orders, the vectors added), or a ``"choice"``: a
        context with several answers, of which y is the number of the right one. ``"auto"``
        infers texts, pairs or choices from X.
    auxiliary
        Factor of the language model's loss; 0 leaves it out. Larger data gain from it, small ones
        may not. With a frozen decoder it is left out.
    tokenizer
        A tokenizer, fitted or not, or the name of one; None: byte BPE. A ``start`` has its own.
    context
        Most tokens of a sequence; longer texts are cut.
    dim, depth, heads
        Width of the vectors, number of blocks and attention heads; not used with a ``start``.
    dropout
        Probability for embeddings, attention weights, the output of each part and the last layer.
    start
        A fitted ``GPTLanguageModel`` or ``GPTClassifier``, the folder of a saved one, or a Hugging
        Face folder of GPT-2; None: random weights.
    lr_decay
        Factor on the learning rate from each block to the one before it, above 0 and at most 1;
        smaller values move early blocks less.
    label_smoothing, train, adapt, class_weight, calibrate
        As for ``BERTClassifier``.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``; of choices 0 … K-1.
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.CausalClassifier``.
    adapter_ : LayoutAdapter
        Holds the fitted ``tokenizer`` and the layout.
    decoder_ : dict
        Sizes of the network.
    history_ : list of dict
        Loss, its parts ``task`` and ``language``, and validation loss of every epoch.

    Shapes
    ------
    X: n texts, n pairs of texts, or n rows (context, [K answers]).  y: (n,) classes, or (n, L) of 0
    and 1, or (n,) numbers of answers.

    Notes
    -----
    A pair is read as ``start a delimiter b extract``. The three tokens are new; they begin as the
    vector of the start's end of text, so that a frozen start reads texts as it did before. A step
    costs 6 operations a weight and token, twice that for similarities and K times for K answers.

    References
    ----------
    2018, Radford, Narasimhan, Salimans, Sutskever, Improving language understanding by generative
    pre-training.

    See Also
    --------
    GPTLanguageModel : the pretraining.
    BERTClassifier : an encoder instead.

    Examples
    --------
    >>> X = ["good film", "bad film", "a good one", "a bad one"] * 15
    >>> y = [1, 0, 1, 0] * 15
    >>> model = GPTClassifier(
    ...     context=16, dim=16, depth=1, heads=2, dropout=0.0, epochs=10, lr=0.01, random_state=0)
    >>> model.fit(X, y).predict(["a good film", "a bad film"])
    array([1, 0])
    """

    adapter: ClassVar[Any] = StartReader(LayoutAdapter)
    codec: ClassVar[Any] = ChoiceCodec()

    layout: Annotated[str, OneOf(*LAYOUTS)] = "auto"
    auxiliary: Annotated[float, Interval(0)] = 0.5
    tokenizer: Annotated[Any, TokenizerChoice()] = None
    context: Annotated[int, Interval(4, whole=True)] = 128
    dim: Annotated[int, Interval(1, whole=True)] = 128
    depth: Annotated[int, Interval(1, whole=True)] = 4
    heads: Annotated[int, Interval(1, whole=True)] = 4
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.1
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    start: Annotated[Any, STARTS] = None
    train: Annotated[Any, Trained()] = "all"
    adapt: Annotated[Any, Adaptation()] = None
    lr_decay: Annotated[float, Interval(0, 1, closed="right")] = 1.0

    # -- reading -------------------------------------------------------------------------------

    def _reader(self) -> LayoutAdapter:
        """Make the adapter, with the tokenizer of the start."""
        name = type(self).__name__
        refuse_forgetting(self)
        opened = self._opened = open_decoder(self.start, name)
        if opened is None:
            return LayoutAdapter(self.tokenizer, context=self.context, layout=self.layout)
        tokenizer = opened.tokenizer or self.tokenizer
        if tokenizer is None:
            raise InvalidParameter(
                f"{name}: `tokenizer` must be given, for `start` has none ({self.start!r})."
            )
        return LayoutAdapter(
            tokenizer,
            context=min(self.context, room_of(opened, self.adapt)),
            layout=self.layout,
            vocabulary=opened.known,
        )

    # -- folders -------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike[str]) -> GPTClassifier:
        """Return the fitted model of a Hugging Face folder, ``GPT2ForSequenceClassification``.

        Texts are read as they are, without start and extract tokens; the last one decides.
        """
        found = load_task(path, "SequenceClassification")
        net: Any = found.net
        if not isinstance(net, GPT) or len(found.labels) < 2:
            raise CheckpointMismatch(
                f"GPTClassifier.from_pretrained: `{path}` must hold a GPT-2 with two classes or "
                f"more; it holds a {type(net).__name__} with {len(found.labels)}."
            )
        made = cls(context=net.context, dim=net.dim, depth=len(net.blocks), heads=net.heads)
        tokenizer = Tokenizer.load(Path(path))
        adapter = LayoutAdapter(
            tokenizer, context=net.context, layout="text", vocabulary=net.vocabulary
        )
        adapter.tokenizer, adapter.plain, adapter.length = tokenizer, True, net.context
        made.adapter_, made.decoder_ = adapter, sizes_of(net)
        made.spec_ = Spec(1, len(found.labels), extra=adapter.extra)
        made.n_iter_, made.history_, made.pretrained_ = 0, [], True
        made.classes_, made.multilabel_ = classes_of(found.labels), found.several
        made.temperature_, made.confidence_ = 1.0, None
        module: Any = made._network(made.spec_).eval()
        grow(module.decoder, net, tokenizer.find_id("end"))
        bias = torch.zeros(len(found.labels)) if found.bias is None else found.bias
        module.head.to(found.weight.dtype)
        module.head.load_state_dict({"weight": found.weight, "bias": bias})
        made.module_ = module
        return made

    def save_pretrained(self, path: str | os.PathLike[str]) -> Path:
        """Write network, head and tokenizer as a ``GPT2ForSequenceClassification`` folder."""
        check_is_fitted(self, "module_")
        adapter: Any = self.adapter_
        if adapter.layout not in ("text", "pair"):
            raise InvalidParameter(
                "GPTClassifier.save_pretrained: `layout` must be 'text' or 'pair', for "
                f"Hugging Face's model reads one sequence; got {adapter.layout!r}."
            )
        net: Any = whole(self.module_)
        kept = adapter.known if adapter.plain else net.decoder.vocabulary
        decoder = with_bias(net.decoder, net.head, kept)
        labels = tuple(str(name) for name in self.classes_)
        found = TaskFolder(decoder, net.head.weight, None, labels, self.multilabel_)
        padding = adapter.tokenizer.find_id("pad") if adapter.plain else adapter.padding
        settings = {"pad_token_id": padding}
        text = adapter.exported()
        return save_task(found, "SequenceClassification", path, tokenizer=text, settings=settings)

    # -- the network ---------------------------------------------------------------------------

    def _network(self, spec: Spec) -> nn.Module:
        loading = hasattr(self, "n_iter_") and not hasattr(self, "module_")
        opened = getattr(self, "_opened", None)
        if not loading:
            self.decoder_ = self._own_sizes(spec) if opened is None else sizes_of(opened.net)
        known = spec.extra["known"]
        decoder = GPT(known + len(ADDED), **vars(self)["decoder_"], dropout=self.dropout)
        if opened is not None:
            self._check_vocabulary(known)
            grow(decoder, opened.net, spec.extra["end"])
        elif not loading:
            as_wide(decoder)
        self._opened = None
        net = CausalClassifier(
            decoder,
            spec.outputs,
            padding=spec.extra["padding"],
            each=spec.extra["choice"],
            dropout=self.dropout,
        )
        return self._finished(net.to(decoder.tokens.weight.dtype))

    def _own_sizes(self, spec: Spec) -> dict[str, Any]:
        check_heads(self)
        own = {name: getattr(self, name) for name in ("dim", "depth", "heads")}
        return {"context": spec.extra["context"], **own}

    def _check_vocabulary(self, known: int) -> None:
        size = len(self.adapter_.tokenizer)
        if size > known:
            raise InvalidParameter(
                f"GPTClassifier: `tokenizer` must have at most {known:,} tokens, as many as "
                f"`start` knows; got {size:,}."
            )

    def _finished(self, net: Any) -> nn.Module:
        """Return the network with what is not trained frozen."""
        net.decoder = adapted(self, net.decoder)
        whole: nn.Module = net
        return whole

    def _objective(self, spec: Spec) -> Objective:
        task = class_loss(self.multilabel_, self.label_smoothing)
        found: Objective = task
        if self.auxiliary and self.train != "head":
            found = AuxiliaryLM(task, self.auxiliary, pad=spec.extra["padding"])
        decay = self.lr_decay
        return found if decay == 1 else Layered(found, lambda net: decoder_rates(net, decay))

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        copy.start = self.start  # a clone of it would have forgotten what is wanted here
        return copy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags
