"""What estimators of word vectors share: reading texts, the vocabulary, texts as mean vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from castalia.base import DirectEstimator, Interval
from castalia.base.direct_descent import loop_settings
from castalia.base.run_recorder import open_recorder
from castalia.data.text import choose_tokenizer
from castalia.data.word_vectors import WordQueries
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language.embeddings.epoch_runner import EpochRunner, Passes
from castalia.models.language.tokenizer_parameter import TokenizerChoice
from castalia.models.language.word_corpus import kind_of, opened
from castalia.train import Recorder, Training, check_training
from castalia.utils.devices import resolve_device
from castalia.utils.seeds import seed_from
from castalia.utils.text import listing

__all__ = ["Texts", "WordVectorEstimator"]

OBEYED = ("callbacks", "run", "checkpoint_every", "verbose")  # settings of ``Training``


class Texts(NamedTuple):
    """Texts one behind the other, without unknown words."""

    ids: np.ndarray  # (N,)
    text: np.ndarray  # (N,)


@dataclass(kw_only=True, eq=False, repr=False)
class WordVectorEstimator(WordQueries, DirectEstimator):
    """Base of estimators that give every word a vector.

    A subclass gives ``_learn(texts)``, which returns the vectors of ``words_``;
    ``Word2Vec`` documents the other fields.

    Parameters
    ----------
    training
        ``Training`` with callbacks, a run folder, checkpoints or progress; its other settings have
        no meaning here and are refused.
    """

    dim: Annotated[int, Interval(1, whole=True)] = 100
    min_count: Annotated[int, Interval(1, whole=True)] = 5
    tokenizer: Annotated[Any, TokenizerChoice()] = None
    epochs: Annotated[int, Interval(1, whole=True)] = 5
    training: Training | None = None

    def _learn(self, texts: Texts) -> np.ndarray:
        """Return the vectors of the words, (V, D)."""
        raise NotImplementedError

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        name = type(self).__name__
        if sample_weight is not None:
            raise InvalidParameter(
                f"{name}: `sample_weight` must be None, since words are counted in whole numbers. "
                "Repeat texts instead."
            )
        self._learn_vocabulary(X)
        index = {word: i for i, word in enumerate(self.words_)}
        sizes = np.fromiter(map(len, X), np.int64, len(X))
        flat = map(index.get, chain.from_iterable(X), _forever(-1))
        ids = np.fromiter(flat, np.int64, int(sizes.sum()))
        text = np.repeat(np.arange(len(X)), sizes)
        self.vectors_ = self._learn(Texts(ids[ids >= 0], text[ids >= 0]))

    # -- training ------------------------------------------------------------------------------

    def _recorder(self, texts: Texts) -> Recorder:
        """Open the run of this fit, if it has one."""
        words, seed = np.array(self.words_, dtype=object), seed_from(self.random_state)
        numbers = torch.from_numpy(np.stack(texts))
        return open_recorder(self, self._loop_settings(), words, numbers, None, seed)

    def _loop_settings(self) -> Training:
        """Return how the epochs run; settings that nothing would obey are refused."""
        asked = self.training if self.training is not None else Training()
        check_training(asked)
        plain = Training().get_params(), loop_settings(None, self.device).get_params()
        for setting, value in asked.get_params().items():
            if setting not in OBEYED and value not in [known[setting] for known in plain]:
                raise InvalidParameter(
                    f"{type(self).__name__}: `training` may set {listing(OBEYED, 'and')}; got "
                    f"{setting}={value!r}. Word vectors have steps of their own."
                )
        return asked

    def _train(self, passes: Passes, random: torch.Generator, recorder: Recorder) -> None:
        """Run the epochs and keep their record."""
        name, settings = type(self).__name__, self._loop_settings()
        runner = EpochRunner(passes, random, settings, recorder, epochs=self.epochs, owner=name)
        state = runner.run()
        self.history_, self.n_iter_ = state.history, len(state.history)
        self.losses_ = np.array([line["loss"] for line in state.history])
        self.stopped_ = state.stopped
        self.settings_ = {"device": str(random.device), "seed": recorder.seed}
        self.run_ = None if recorder.run is None else str(recorder.run.folder)

    def _place(self) -> torch.device:
        device = resolve_device(self.device)  # where there is no float64, the CPU serves
        return torch.device("cpu") if device.type == "mps" else device

    def _learn_vocabulary(self, X: Sequence[Sequence[str]]) -> None:
        """Count the words; the most frequent come first."""
        counts = Counter(chain.from_iterable(X))
        common = sorted((-n, word) for word, n in counts.items() if n >= self.min_count)
        if len(common) < 2:
            raise InvalidData(
                f"{type(self).__name__}: at least two words must occur `min_count` times, "
                f"{self.min_count}; got {len(common)} of {len(counts)}. Lower `min_count` or give "
                "more text."
            )
        self.words_ = [word for _, word in common]
        self.counts_ = np.array([-n for n, _ in common])

    # -- texts ---------------------------------------------------------------------------------

    def _matrix(self, X: Any, *, reset: bool = False) -> list[Sequence[str]]:
        """Return texts as lists of words."""
        name = type(self).__name__
        X = opened(X, name)
        kind = kind_of(name, X)
        if kind == "ids":
            raise InvalidData(
                f"{name}: a text must be a string or a list of words; got whole numbers. Decode "
                "them first."
            )
        if reset:
            cut = kind == "text" and self.tokenizer is not None
            self.tokenizer_ = choose_tokenizer(self.tokenizer, list(X), name) if cut else None
        if kind == "words":
            return [list(text) for text in X]
        if self.tokenizer_ is None:
            return [text.split() for text in X]
        words = list(self.tokenizer_.vocabulary)
        unknown = self.tokenizer_.find_id("unknown")
        found = self.tokenizer_.encode(list(X))
        return [[words[i] for i in text if i != unknown] for text in found]

    def transform(self, X: Any) -> np.ndarray:
        """Return the mean vector of the words of each text, (N, D); zeros where none is known."""
        check_is_fitted(self, "vectors_")
        texts = self._matrix(X)
        words = sorted(set(chain.from_iterable(texts)))
        index = {word: i for i, word in enumerate(words)}
        known, table = self._known(words)
        ids = np.array([index[word] for text in texts for word in text], dtype=np.int64)
        text = np.repeat(np.arange(len(texts)), [len(found) for found in texts])
        counts = csr_matrix(
            (known[ids].astype(np.float64), (text, ids)), shape=(len(texts), len(words))
        )
        total = np.maximum(counts.sum(axis=1), 1)
        return np.asarray(counts @ table / total, dtype=np.float32)

    def _known(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return which words have a vector, (n,), and the vectors, (n, D), zeros otherwise."""
        index = self._lookup()[0]
        at = np.array([index.get(word, -1) for word in words], dtype=np.int64)
        return at >= 0, np.where(at[:, None] >= 0, self.vectors_[at], 0)

    def _lookup(self) -> tuple[dict[str, int], np.ndarray]:
        check_is_fitted(self, "vectors_")
        return super()._lookup()

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit on texts and return their mean vectors, (N, D)."""
        return self.fit(X).transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return how often a word is more like its neighbour than like a word drawn at random.

        The neighbours are those of the texts, the others the same words in random order; 0.5 is
        guessing.
        """
        check_is_fitted(self, "vectors_")
        index, unit = self._lookup()
        texts = [[index[word] for word in text if word in index] for text in self._matrix(X)]
        pairs = [pair for text in texts for pair in zip(text, text[1:], strict=False)]
        if not pairs:
            raise InvalidData(
                f"{type(self).__name__}: the texts must hold known words side by side to be "
                "scored; got none."
            )
        first, second = np.array(pairs).T
        other = np.random.default_rng(0).permutation(second)
        near = (unit[first] * unit[second]).sum(axis=1)
        far = (unit[first] * unit[other]).sum(axis=1)
        return float(((near > far) + 0.5 * (near == far)).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


def _forever(value: int) -> Any:
    while True:
        yield value
