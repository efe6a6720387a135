"""Captions of images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import Constraint, Interval, OneOf, Sizes, Target, TargetCodec, fields_for
from castalia.base.targets import TextCodec
from castalia.data.text import TOKENIZERS, as_texts, choose_tokenizer
from castalia.data.tokenizers import Tokenizer, pad_batch
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.vision.image_estimator import ImageEstimator
from castalia.nets.language import beam_search, generate
from castalia.nets.transfer import freeze, parts
from castalia.nets.vision import Captioner
from castalia.objectives import Augmented, Objective, SequenceCrossEntropy
from castalia.protocols import Spec
from castalia.utils.bleu import bleu

__all__ = ["Caption", "ImageCaptioner"]

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
ROOM = 1.5  # a caption may be so much longer than the longest that was learnt from


class Caption(NamedTuple):
    """A caption's words, its end included, and where each attended to, (words, height, width)."""

    words: list[str]
    weights: np.ndarray


class WordsOf(Constraint):
    """A tokenizer, or the name of one."""

    def rule(self) -> str:
        """Say so."""
        return "a tokenizer of castalia.data.tokenizers, or a name of one"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        return isinstance(value, Tokenizer) or (isinstance(value, str) and value in TOKENIZERS)


class FittedBody(Constraint):
    """A fitted classifier whose first part can be taken over, or None."""

    def rule(self) -> str:
        """Say so."""
        return "a fitted ConvNetClassifier, or None"

    def holds(self, value: Any) -> bool:
        """Whether there is a network with ``features``."""
        return value is None or hasattr(getattr(value, "module_", None), "features")


class CaptionCodec(TextCodec):
    """A text for each image: learns ``tokenizer_`` and ``caption_tokens_``."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return the captions as an array of strings."""
        found = super().check(est, adapter, X, y)
        empty = next((place for place, text in enumerate(found) if not text.strip()), None)
        if empty is not None:
            raise InvalidData(
                f"{type(est).__name__}: a caption must hold a word; caption {empty} is empty."
            )
        return found

    def fit(
        self, est: Any, adapter: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn the tokenizer and how long captions are."""
        made: Any = est.tokenizer
        if isinstance(made, str):
            made = TOKENIZERS[made](special=SPECIAL)  # type: ignore[call-arg]
        est.tokenizer_ = choose_tokenizer(made, list(y), type(est).__name__)
        target = super().fit(est, adapter, X, y, weight)
        est.caption_tokens_ = math.ceil(ROOM * target.y.shape[1])
        return target

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Encode captions with the tokenizer already learnt; each ends with the end."""
        tokenizer, padding = est.tokenizer_, est._padding
        rows = [[*row, tokenizer.id_of("end")] for row in tokenizer.encode(list(y))]
        ids = pad_batch(rows, padding).ids
        return Target(torch.from_numpy(ids), max(len(tokenizer), padding + 1))


@dataclass(kw_only=True, eq=False, repr=False)
class ImageCaptioner(ImageEstimator):
    """Convolutional encoder of an image, and a recurrent decoder that writes its caption.

    The mean of -log p(next word | image, words so far) is minimised, true words being fed back.
    With attention each word attends to the places of the image that matter to it, and
    ``attention_maps`` shows where; without, the image is one code that starts the state. Right
    for images with short descriptions; where the answer is one word, a classifier is simpler.

    Parameters
    ----------
    attention
        Whether each word attends to the image (show, attend and tell), or only the first
        state knows it (show and tell).
    widths, convs
        Channels of each stage of the network that looks, and convolutions in each; every stage but
        the last halves the map.
    dim
        Width of the words' vectors.
    hidden
        Width of the recurrent state.
    dropout
        Probability for the words' vectors and below the output.
    tokenizer
        Cuts captions into words: a tokenizer with begin and end, fitted or not, or a name of one.
    beams
        Captions that are kept while searching; 1 takes the most probable word at each step.
    length_penalty
        The exponent a of log p / n^a, by which captions of n words compete.
    label_smoothing
        Share of a word's mass that is spread over the vocabulary.
    start
        A fitted ``ConvNetClassifier`` of the same ``widths``, ``convs`` and channels, whose
        convolutions are taken over; None begins with random ones.
    train_body
        Whether those convolutions go on learning; False keeps every bit of them.
    augment
        Random changes of the training images; such as keep the captions true: flips undo left
        and right. None: none.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.Captioner``; ``module_(x, decoder_ids)``.
    tokenizer_ : Tokenizer
        The fitted tokenizer.
    caption_tokens_ : int
        Most tokens of a caption.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: images (N, H, W), (N, H, W, C), a tensor (N, C, H, W), a list of several sizes, or
    ``castalia.data.Images``.  y: N texts.  ``predict``: (N,) texts.

    Notes
    -----
    The decoder goes word by word in training too, so a step takes time in proportion to the length
    of the longest caption. ``score`` is BLEU from 0 to 100, as sacreBLEU computes it.

    References
    ----------
    2015, Vinyals, Toshev, Bengio, Erhan, Show and tell, arXiv 1411.4555; 2015, Xu et al., Show,
    attend and tell, arXiv 1502.03044.

    See Also
    --------
    castalia.models.vision.ConvNetClassifier : one word an image.
    castalia.models.vision.YOLODetector : what is where, without sentences.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("captions")  # (600, 16, 16, 3) and 'a red square left of a blue cross' …
    >>> model = ImageCaptioner(widths=(8, 8), convs=1, dim=8, hidden=16, epochs=1, random_state=0)
    >>> model.fit(X[:64], y[:64]).predict(X[:3]).shape
    (3,)
    """

    codec: ClassVar[TargetCodec] = CaptionCodec()

    attention: Annotated[bool, OneOf(True, False)] = True
    widths: Annotated[tuple[int, ...], Sizes()] = (32, 64, 128)
    convs: Annotated[int, Interval(1, whole=True)] = 2
    dim: Annotated[int, Interval(1, whole=True)] = 128
    hidden: Annotated[int, Interval(1, whole=True)] = 256
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    tokenizer: Annotated[Any, WordsOf()] = "words"
    beams: Annotated[int, Interval(1, whole=True)] = 1
    length_penalty: Annotated[float, Interval(0)] = 0.0
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    start: Annotated[Any, FittedBody()] = None
    train_body: Annotated[bool, OneOf(True, False)] = True

    # -- captions ------------------------------------------------------------------------------

    @property
    def _padding(self) -> int:
        pad = self.tokenizer_.find_id("pad")
        return len(self.tokenizer_) if pad is None else pad

    # -- the two hooks -------------------------------------------------------------------------

    def _network(self, spec: Spec) -> nn.Module:
        net = Captioner(
            spec.inputs, spec.outputs, size=spec.extra["size"], **fields_for(self, Captioner)
        )
        if self.start is not None:
            self._take_over(net)
        return net

    def _take_over(self, net: Captioner) -> None:
        wanted, given = net.features.state_dict(), self.start.module_.features.state_dict()
        if {k: v.shape for k, v in wanted.items()} != {k: v.shape for k, v in given.items()}:
            raise InvalidParameter(
                f"{type(self).__name__}: `start` must have the convolutions of this captioner, "
                f"widths={self.widths} and convs={self.convs}; got others. Fit a ConvNetClassifier "
                "with these, on images with as many channels."
            )
        net.features.load_state_dict(given)
        if not self.train_body:
            freeze(net.features, len(parts(net.features)))

    def _objective(self, spec: Spec) -> Objective:
        loss = SequenceCrossEntropy(
            pad=self._padding,
            start=self.tokenizer_.id_of("begin"),
            label_smoothing=self.label_smoothing,
        )
        return loss if self.augment is None else Augmented(loss, self.augment)

    # -- telling -------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return a caption for each image, by beam search or, with one beam, greedily."""
        found = [self._words(row) for _, ids in self._written(X) for row in ids.tolist()]
        return np.array([self.tokenizer_.decode(row) for row in found], dtype=object)

    def attention_maps(self, X: Any) -> list[Caption]:
        """Return each image's caption word by word, and where each word looked.

        Weights of a word are not negative and sum to one over the places of the last map; enlarged
        to the image they show what it attended to.
        """
        if not self.attention:
            raise InvalidParameter(
                f"{type(self).__name__}: `attention` must be True for attention maps; got False."
            )
        found = []
        check_is_fitted(self, "module_")
        net: Any = self.module_
        for x, ids in self._written(X):
            begin = torch.full_like(ids[:, :1], self.tokenizer_.id_of("begin"))
            with torch.inference_mode():
                read = torch.cat([begin, ids[:, :-1]], dim=1).clamp_max(self.spec_.outputs - 1)
                weights = net.alignments(x, read).cpu().double().numpy()
            for row, looked in zip(ids.tolist(), weights, strict=True):
                words = [*self._words(row), self.tokenizer_.id_of("end")][: len(row)]
                names = [self.tokenizer_.decode([i], special=True) for i in words]
                found.append(Caption(names, looked[: len(names)]))
        return found

    def score(self, X: Any, y: Any) -> float:
        """Return the BLEU of the captions, from 0 to 100, as sacreBLEU computes it."""
        return bleu(as_texts(y, type(self).__name__), list(self.predict(X))).score

    def _written(self, X: Any) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield images block by block, and the tokens of their captions, (B, T)."""
        X = self._checked(X)
        net: Any = self.module_.eval()
        parameter = next(net.parameters())
        end = self.tokenizer_.id_of("end")
        settings: dict[str, Any] = {
            "tokens": self.caption_tokens_,
            "stop": end,
            "start": self.tokenizer_.id_of("begin"),
            "pad": end,
        }
        for block in self.adapter_.blocks(X, str(parameter.dtype).removeprefix("torch.")):
            x = block.to(parameter.device)
            with torch.inference_mode():
                seen = Seen(net, net.encode(x))
            images = torch.arange(len(x), device=x.device)[:, None]
            if self.beams == 1:
                yield x, generate(seen, images, **settings)
            else:
                search = {**settings, "length_penalty": self.length_penalty}
                yield x, beam_search(seen, images, beams=self.beams, **search).ids[:, 0]

    def _words(self, row: list[int]) -> list[int]:
        """Return the tokens before the end."""
        end = self.tokenizer_.id_of("end")
        row = row[: row.index(end)] if end in row else row
        return [token for token in row if token < len(self.tokenizer_)]

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        copy.start = self.start  # a clone of it would have forgotten what is wanted here
        return copy


class Seen(nn.Module):
    """A captioner that has encoded images already; a prompt is the number of an image."""

    def __init__(self, net: Any, memory: Tensor) -> None:
        super().__init__()
        self.net, self.memory = net, memory
        self.decode, self.head, self.cache = net.decode, net.head, net.cache

    def encode(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, 1)
        """Return what was encoded of each image."""
        return self.memory[ids[:, 0]]
