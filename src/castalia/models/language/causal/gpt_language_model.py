"""GPT as an estimator."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Interval, OneOf, Trained
from castalia.data.text import LanguageAdapter
from castalia.data.tokenizers import Tokenizer, has_tokenizer
from castalia.errors import CheckpointMismatch, InvalidParameter
from castalia.models.language.attention_sizes import check_heads
from castalia.models.language.causal.neural_language_model import NeuralLanguageModel
from castalia.models.language.pretrained.decoder_weights import (
    adapted,
    grow,
    open_decoder,
    room_of,
    sizes_of,
)
from castalia.models.language.pretrained.encoder_parameters import Adaptation
from castalia.models.language.pretrained.start_weights import (
    STARTS,
    StartReader,
    refuse_forgetting,
)
from castalia.nets.language import GPT, load_pretrained, save_pretrained
from castalia.protocols import Spec

__all__ = ["GPTLanguageModel"]


@dataclass(kw_only=True, eq=False, repr=False)
class GPTLanguageModel(NeuralLanguageModel):
    """Causal transformer that predicts the next token.

    p(x_t | x_(t-T) … x_(t-1)) = softmax(W_e h_t), where h are the outputs of blocks of causal
    self-attention; the mean of -log p is minimised. The model of choice for long texts and large
    data; on little text ``NGramLanguageModel`` is hard to beat, and ``RNNLanguageModel`` is
    smaller.

    Parameters
    ----------
    dim
        Width of the vectors; a multiple of ``heads``.
    depth
        Number of blocks.
    heads
        Attention heads of a block.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    tied
        Whether the output layer is the table of the tokens.
    rotary
        Whether positions turn queries and keys instead of being learnt.
    start
        What to continue from: a fitted ``GPTLanguageModel`` or ``GPTClassifier``, the folder of a
        saved one, or a Hugging Face folder of GPT-2, with its tokenizer and its sizes; None: random
        weights.
    train
        ``"all"``, the number of last blocks to train, or ``"head"``, an output layer of its own.
    adapt
        ``LoRA(…)``, ``BottleneckAdapters(…)`` or ``Prompts(…)``, trained in a frozen start.
    context
        Tokens of a training block, and the most the network ever sees.
    stride
        Tokens between the beginnings of two training blocks; None: ``context``, so that an epoch
        learns from each token once. A smaller one shows tokens at several positions, which keeps a
        small text from being memorised with its positions.
    tokenizer
        A tokenizer of ``castalia.data.tokenizers``, which is fitted unless it is; a name such as
        ``"characters"``, ``"words"`` or ``"byte-bpe"``; None: characters for texts of up to two
        million of them, byte BPE for longer ones.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``GPT``: ids (B, T) to logits (B, T, V).
    tokenizer_ : Tokenizer or None
        The tokenizer; None where texts are token ids.
    history_ : list of dict
        One line an epoch.

    Shapes
    ------
    X is N texts: strings, arrays of token ids, or ``pathlib.Path`` of text files; or a
    ``castalia.data.text.Corpus`` of files larger than memory. ``score_samples`` gives (N,).

    Notes
    -----
    Texts become one stream, ``</s> text </s> text …``, cut into blocks of ``context`` tokens; a
    block's target is the block moved by one. The end of the texts is held out for validation.
    Memory of a step grows with batch size times context times vocabulary. For training on CUDA set
    ``Training(compile=True)``.

    References
    ----------
    2018, Radford et al., Improving language understanding by generative pre-training. 2019, Radford
    et al., Language models are unsupervised multitask learners.

    See Also
    --------
    castalia.models.language.RNNLanguageModel : a state instead of attention.
    castalia.models.language.NGramLanguageModel : counting, fitted at once.

    Examples
    --------
    >>> texts = ["ab" * 10] * 20
    >>> model = GPTLanguageModel(
    ...     dim=16, depth=1, heads=2, dropout=0.0, context=16, epochs=40, batch_size=8, lr=1e-2,
    ...     random_state=0,
    ... ).fit(texts)
    >>> model.generate("aba", tokens=5, temperature=0)
    'abababab'
    """

    adapter: ClassVar[Any] = StartReader(LanguageAdapter)
    _beam_cache: ClassVar[bool] = True

    dim: Annotated[int, Interval(1, whole=True)] = 128
    depth: Annotated[int, Interval(1, whole=True)] = 4
    heads: Annotated[int, Interval(1, whole=True)] = 4
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.1
    tied: Annotated[bool, OneOf(True, False)] = True
    rotary: Annotated[bool, OneOf(True, False)] = False
    stride: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    start: Annotated[Any, STARTS] = None
    train: Annotated[Any, Trained()] = "all"
    adapt: Annotated[Any, Adaptation()] = None

    def _reader(self) -> LanguageAdapter:
        """Make the adapter, with the tokenizer of the start."""
        refuse_forgetting(self)
        opened = self._opened = open_decoder(self.start, type(self).__name__)
        if opened is None:
            return LanguageAdapter(self.tokenizer, context=self.context, stride=self.stride)
        room = min(self.context, room_of(opened, self.adapt))
        made = LanguageAdapter(None, context=room, stride=self.stride)
        return _adopt(made, opened.tokenizer, opened.net)

    def _network(self, spec: Spec) -> nn.Module:
        if "network" in spec.extra:  # that of a folder or a start, with sizes of its own
            sizes = {**spec.extra["network"], "dropout": self.dropout}
            net = GPT(spec.extra["vocabulary"], **sizes)
            opened = getattr(self, "_opened", None)
            self._opened = None
            return self._finished(net if opened is None else grow(net, opened.net, None))
        check_heads(self)
        return self._finished(
            GPT(
                spec.extra["vocabulary"],
                context=spec.extra["context"],
                dim=self.dim,
                depth=self.depth,
                heads=self.heads,
                dropout=self.dropout,
                tied=self.tied,
                rotary=self.rotary,
            )
        )

    def _finished(self, net: GPT) -> nn.Module:
        """Return the network with what is not trained frozen."""
        if self.train == "head" and net.output is None:
            raise InvalidParameter(
                "GPTLanguageModel: `train` must be 'all' or a number of blocks, for the output "
                "layer is the table of the tokens; got 'head'."
            )
        whole: nn.Module = adapted(self, net)
        if self.train == "head" and net.output is not None:
            net.output.requires_grad_(True)
        return whole

    def _caches(self) -> bool:
        return isinstance(self.module_, GPT)  # learnt prompts are read with every token

    @classmethod
    def from_pretrained(
        cls, directory: str | os.PathLike[str], *, extra: str = "error"
    ) -> GPTLanguageModel:
        """Return the fitted model of a Hugging Face folder of GPT-2.

        ``module_(ids)`` gives the logits that ``transformers`` gives. Without a ``tokenizer.json``
        in the folder, texts and prompts are token ids.

        Parameters
        ----------
        directory
            The folder: ``config.json``, ``model.safetensors``, whole or in shards, and
            ``tokenizer.json``.
        extra
            What to do with tensors that have no place in the network, such as the head of a
            classifier: ``"error"`` names them, ``"ignore"`` leaves them out.
        """
        folder = Path(directory)
        net: Any = load_pretrained(folder, extra=extra)
        if not isinstance(net, GPT):
            raise CheckpointMismatch(
                f"GPTLanguageModel.from_pretrained: `{folder}` must hold a GPT-2; it holds a "
                f"{type(net).__name__}."
            )
        tokenizer = Tokenizer.load(folder) if has_tokenizer(folder) else None
        made = cls(
            dim=net.dim,
            depth=len(net.blocks),
            heads=net.heads,
            dropout=net.dropout.p,
            tied=net.output is None,
            context=net.context,
            tokenizer=tokenizer,
        )
        made.adapter_ = _adopt(LanguageAdapter(tokenizer, context=net.context), tokenizer, net)
        made.adapter_.fitted = True
        made.module_, made.spec_ = net, Spec(1, 1, extra=made.adapter_.extra)
        made.history_, made.n_iter_, made.pretrained_ = [], 0, True
        return made

    def save_pretrained(self, directory: str | os.PathLike[str]) -> Path:
        """Write the model as a Hugging Face folder of GPT-2, tokenizer included; return it.

        Parameters
        ----------
        directory
            The folder; it is made where it is not there.
        """
        check_is_fitted(self, "module_")
        made = self.tokenizer_
        text = None if made is None else made.backend_.to_str(pretty=True)
        return save_pretrained(self.module_, directory, tokenizer=text)

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        copy.start = self.start  # a clone of it would have forgotten what is wanted here
        return copy


def _adopt(adapter: LanguageAdapter, tokenizer: Tokenizer | None, net: GPT) -> LanguageAdapter:
    """Let an adapter read as a network that is there already does."""
    adapter.tokenizer, adapter.vocabulary = tokenizer, net.vocabulary
    adapter.network = sizes_of(net)
    return adapter
