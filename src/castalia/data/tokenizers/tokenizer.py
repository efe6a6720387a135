"""The one face of all tokenizers: fit, encode, decode, save, load.

The work is done in Rust by the `tokenizers` package; ``backend_`` is its object, and what is saved
is its ``tokenizer.json``, which other libraries read too.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import tokenizers as rust
from sklearn.exceptions import NotFittedError

from castalia.data.tokenizers.backend_guard import guarded, read_backend
from castalia.data.tokenizers.special_frame import Frame, frame_of
from castalia.data.tokenizers.special_tokens import check_special, token_of
from castalia.data.tokenizers.text_normalisation import check_steps, normaliser
from castalia.data.tokenizers.token_batch import TokenBatch, pad_batch
from castalia.data.tokenizers.tokenizer_sources import texts_of
from castalia.data.tokenizers.vocabulary_files import backend_of_files, has_tokenizer
from castalia.errors import (
    CheckpointMismatch,
    DamagedFile,
    InvalidData,
    InvalidParameter,
)
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.regular_files import parse_json, read_regular
from castalia.utils.text import did_you_mean, listing, shorten

__all__ = ["Tokenizer"]

_FILE, _CONFIG = "tokenizer.json", "tokenizer_config.json"
_CACHED = ("_size", "fingerprint", "frame")  # what follows from the backend


@dataclass(kw_only=True, eq=False)
class Tokenizer(ABC):
    """Base of the tokenizers: texts to numbers and back.

    Parameters
    ----------
    special
        Special tokens; they get the ids 0, 1, 2 … in this order. Names such as ``<pad>``,
        ``[UNK]``, ``</s>`` or ``[MASK]`` say what they are for.
    normalise
        Steps of ``NORMALISATIONS`` that every text goes through first.

    Attributes
    ----------
    backend_ : tokenizers.Tokenizer
        The object of the `tokenizers` package.
    """

    _kinds: ClassVar[dict[str, type[Tokenizer]]] = {}

    special: tuple[str, ...] = ("<pad>", "<unk>", "<s>", "</s>")
    normalise: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        Tokenizer._kinds[cls.__name__] = cls

    # -- what a kind of tokenizer says ---------------------------------------------------------

    @abstractmethod
    def _untrained(self) -> Any:
        """Return a new backend: model, pre-tokenizer and decoder."""

    @abstractmethod
    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        """Train the backend on texts and return it, or one made of it."""

    def _encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        found = self.backend_.encode_batch_fast(texts, add_special_tokens=False)
        return [row.ids for row in found]

    # -- the face ------------------------------------------------------------------------------

    def fit(self, texts: Any) -> Self:
        """Learn a vocabulary.

        Parameters
        ----------
        texts
            An iterable of texts, which may be a generator larger than memory; a text; a
            ``pathlib.Path`` or several, to UTF-8 files read line by line; or a mapping from words
            to counts.

        Returns
        -------
        self
        """
        self._check()
        backend = self._untrained()
        backend.normalizer = normaliser(self.normalise) or backend.normalizer
        made = self._train(backend, self._some(texts_of(texts, f"{type(self).__name__}.fit")))
        if self.normalise:  # without it, no text that was learnt from holds a special token
            self._keep_special_apart(made)
        made.add_special_tokens(list(self.special))
        return self._adopt(made)

    def encode(self, text: Any, *, special: bool = False, boundaries: bool = False) -> Any:
        """Return the ids of a text, a list; or of each of several, a list of lists.

        Parameters
        ----------
        text
            A text, or a sequence of them.
        special
            Whether special tokens written in the text are meant; by default ``</s>`` in a text is
            four ordinary characters.
        boundaries
            Whether to put the begin and end tokens around each text; those of the file, once,
            where a ``tokenizer.json`` says which.
        """
        if not isinstance(text, Iterable):
            raise self._unreadable([text])
        texts = [text] if isinstance(text, str) else list(text)
        self._fitted().encode_special_tokens = not special
        try:
            with guarded(type(self).__name__):
                found = self._encode_all(texts)
            if not special and self._mentions_special(texts):
                found = [self._without_special(ids) for ids in found]
        except (TypeError, AttributeError, UnicodeError) as error:
            raise self._unreadable(texts) from error
        if boundaries:
            frame = self._frame()
            found = [frame.around(ids) for ids in found]
        return found[0] if isinstance(text, str) else found

    def encode_pair(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """Return the ids of ``begin first end second end``, and whose each is (0 or 1)."""
        frame, (one, other) = self._frame(), self.encode([first, second])
        ids = frame.join(one, other)
        later = len(other) + len(frame.after)
        return ids, [0] * (len(ids) - later) + [1] * later

    @cached_property
    def frame(self) -> Frame | None:
        """What the file of another library puts around texts; None where it says nothing."""
        return frame_of(self._fitted())

    def _frame(self) -> Frame:
        """Return what stands around texts: by the file, or else the begin and end tokens."""
        if self.frame is not None:
            return self.frame
        begin, end = self.id_of("begin"), self.id_of("end")
        return Frame((begin,), (end,), (end,))

    def decode(self, ids: Any, *, special: bool = False) -> Any:
        """Return the text of some ids; of rows of ids, a list of texts.

        Parameters
        ----------
        ids
            Ids in a sequence or an array; rows of them, padded or not.
        special
            Whether special tokens are written out.
        """
        backend = self._fitted()
        rows = ids.tolist() if hasattr(ids, "tolist") else ids
        if isinstance(rows, str) or not isinstance(rows, Iterable):
            raise self._no_ids(ids)
        rows = list(rows)
        if rows and isinstance(rows[0], list | tuple | np.ndarray):
            return [self.decode(row, special=special) for row in rows]
        try:
            wrong = [i for i in rows if not 0 <= i < len(self)]
            if wrong:
                raise self._no_ids(wrong[0])
            return str(backend.decode(rows, skip_special_tokens=not special))
        except TypeError:
            raise self._no_ids(ids) from None

    def _no_ids(self, got: Any) -> InvalidData:
        return InvalidData(
            f"{type(self).__name__}.decode: ids must be whole numbers at least 0 and below "
            f"{len(self):,}, the size of the vocabulary; got {shorten(repr(got), 40)}."
        )

    def tokens(self, text: str) -> list[str]:
        """Return the pieces of a text as they stand in the vocabulary."""
        return [self._fitted().id_to_token(i) for i in self.encode(text)]

    def batch(
        self,
        texts: Sequence[str],
        *,
        length: int | None = None,
        side: str = "right",
        longer: str = "error",
        boundaries: bool = False,
    ) -> TokenBatch:
        """Encode texts to one padded array and its mask, both (B, T).

        Parameters
        ----------
        texts
            B texts.
        length
            T; that of the longest when None.
        side
            Where padding goes: ``"right"`` or ``"left"``.
        longer
            Texts longer than ``length``: ``"error"`` or ``"cut"``.
        boundaries
            Whether to put the begin and end tokens around each text.
        """
        rows = self.encode(list(texts), boundaries=boundaries)
        pad = self.id_of("pad" if token_of("pad", self.special) else "end")
        return pad_batch(rows, pad, length=length, side=side, longer=longer)

    def one_hot(self, text: str) -> np.ndarray:
        """Return a text as one-hot vectors, (T, V): each piece its own axis, none like another."""
        ids = np.asarray(self.encode(text), dtype=np.int64)
        return (ids[:, None] == np.arange(len(self))).astype(np.float32)

    # -- the vocabulary ------------------------------------------------------------------------

    @property
    def vocabulary(self) -> dict[str, int]:
        """Pieces and their ids, in the order of the ids."""
        pairs = self._fitted().get_vocab(with_added_tokens=True).items()
        return dict(sorted(pairs, key=lambda pair: pair[1]))

    def __len__(self) -> int:
        """Return the number of ids."""
        return self._size

    @cached_property
    def _size(self) -> int:
        return int(self._fitted().get_vocab_size(with_added_tokens=True))

    def id_of(self, name: str) -> int:
        """Return the id of a piece, or of a role: pad, unknown, begin, end, mask."""
        found = self.find_id(name)
        if found is None:
            raise InvalidParameter(
                f"{type(self).__name__}: the vocabulary must hold `{name}`; it does not. Its "
                f"special tokens are {listing(self.special, 'and')}."
                f"{did_you_mean(name, self.vocabulary)}"
            )
        return found

    def find_id(self, name: str) -> int | None:
        """Return the id of a piece or role, or None where the vocabulary does not hold it."""
        roles = ("pad", "unknown", "begin", "end", "mask")
        piece = (token_of(name, self.special) if name in roles else None) or name
        found = self._fitted().token_to_id(piece)
        return None if found is None else int(found)

    # -- saving --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write ``tokenizer.json``, as the `tokenizers` package does.

        Parameters
        ----------
        path
            A file whose name ends in ``.json``, or a folder; there, ``tokenizer_config.json`` says
            which class it was.
        """
        path, text = Path(path), self._fitted().to_str(pretty=True)
        with writing(f"{type(self).__name__}.save", path):
            if path.suffix == ".json":
                path.parent.mkdir(parents=True, exist_ok=True)
                return atomic_write(path, text)
            path.mkdir(parents=True, exist_ok=True)
            config = {"castalia_class": type(self).__name__, "castalia_parameters": self.params()}
            atomic_write(path / _CONFIG, json.dumps(config, indent=1, ensure_ascii=False))
            return atomic_write(path / _FILE, text)

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """Read a tokenizer back; ``Tokenizer.load`` finds the class by itself.

        A ``tokenizer.json`` of another library becomes a ``PretrainedTokenizer``, and so does a
        folder that holds only ``vocab.txt``, or ``vocab.json`` and ``merges.txt``.
        """
        path = Path(path)
        file = path / _FILE if path.is_dir() else path
        said = _read_json(file.with_name(_CONFIG)) if file.with_name(_CONFIG).is_file() else {}
        if path.is_dir() and not file.is_file() and has_tokenizer(path):
            text = str(backend_of_files(path, said).to_str())
        elif file.is_file():
            text = _read_text(file)
        else:
            raise InvalidData(f"Tokenizer.load: there must be a file at `{file}`.")
        name = said.get("castalia_class")
        default = "PretrainedTokenizer" if cls is Tokenizer else cls.__name__
        parameters = said.get("castalia_parameters", {}) if name else {}
        state = {"class": name or default, "parameters": parameters, "backend": text}
        try:
            made = Tokenizer.from_state(state)
        except DamagedFile as error:
            raise DamagedFile(
                f"Tokenizer.load: `{file}` is damaged or no tokenizer's ({error})."
            ) from error
        if not isinstance(made, cls):
            raise CheckpointMismatch(
                f"{cls.__name__}.load: `{file}` must hold a {cls.__name__}; it holds a "
                f"{type(made).__name__}."
            )
        return made

    def params(self) -> dict[str, Any]:
        """Return the constructor's parameters as plain JSON values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}

    def state(self) -> dict[str, Any]:
        """Return what saving needs: plain JSON values."""
        backend = self.backend_.to_str() if hasattr(self, "backend_") else None
        return {"class": type(self).__name__, "parameters": self.params(), "backend": backend}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Tokenizer:
        """Return a tokenizer from its saved state."""
        kind = Tokenizer._kinds.get(str(state["class"]))
        if kind is None or not isinstance(state["parameters"], dict):
            raise CheckpointMismatch(
                f"Tokenizer: `{shorten(state['class'])}` is not a tokenizer of this version."
                f"{did_you_mean(str(state['class']), Tokenizer._kinds)}"
            )
        if state["backend"] is None:  # it was not fitted
            return kind(**{name: _frozen(value) for name, value in state["parameters"].items()})
        backend = read_backend(state["backend"])
        known = {f.name for f in fields(kind)}
        parameters = {name: _frozen(v) for name, v in state["parameters"].items() if name in known}
        if "special" not in parameters:
            parameters["special"] = _special_of(backend)
        return kind(**parameters)._adopt(backend)

    def __getstate__(self) -> dict[str, Any]:
        kept = vars(self).copy()
        for name in _CACHED:
            kept.pop(name, None)
        if "backend_" in kept:
            kept["backend_"] = self.backend_.to_str()
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if "backend_" in state:
            self.backend_ = rust.Tokenizer.from_str(state["backend_"])

    # -- pairing -------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that differ when any id could."""
        # The last digits of scores may change when a file is read.
        content = json.loads(self._fitted().to_str(), parse_float=lambda x: f"{float(x):.9g}")
        text = json.dumps({**content, "padding": None, "truncation": None}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def check_pairing(self, fingerprint: str, owner: str = "model") -> None:
        """Raise where a model was trained with another tokenizer.

        Parameters
        ----------
        fingerprint
            That of the tokenizer the model was trained with.
        owner
            The model, for the message.
        """
        if fingerprint != self.fingerprint:
            raise CheckpointMismatch(
                f"{owner}: the tokenizer must be the one it was trained with, fingerprint "
                f"{fingerprint}; got a {type(self).__name__} of {len(self):,} pieces with "
                f"{self.fingerprint}. Load the tokenizer that was saved with the model."
            )

    # -- small things --------------------------------------------------------------------------

    def _check(self) -> None:
        self.special = check_special(self.special)
        self.normalise = check_steps(self.normalise)

    def _adopt(self, backend: Any) -> Self:
        self.backend_ = backend
        for name in _CACHED:
            vars(self).pop(name, None)
        return self

    def _fitted(self) -> Any:
        if not hasattr(self, "backend_"):
            raise NotFittedError(
                f"{type(self).__name__}: must be fitted before it is used; call `fit(texts)`."
            )
        return self.backend_

    def _some(self, texts: Iterable[str]) -> Iterator[str]:
        """Pass texts on without special tokens; refuse a source without a character."""
        empty = True
        for text in texts:
            empty = empty and not text.strip()
            for token in self.special:
                if token in text:
                    text = text.replace(token, " ")
            yield text
        if empty:
            raise InvalidData(
                f"{type(self).__name__}.fit: the texts must hold at least one character; got none."
            )

    def _keep_special_apart(self, backend: Any) -> None:
        """Refuse special tokens that are made of merges: a text would turn into one."""
        merges = json.loads(backend.to_str())["model"].get("merges", ())
        made = {left + right for left, right in merges} & set(self.special)
        if made:
            raise InvalidParameter(
                f"{type(self).__name__}: `special` must be tokens that no word contains; got "
                f"{min(made)!r}, which the texts hold. Write it between brackets."
            )

    def _mentions_special(self, texts: Sequence[str]) -> bool:
        return any(token in text for text in texts for token in self.special)

    def _without_special(self, ids: list[int]) -> list[int]:
        """Make words that are spelled like special tokens unknown."""
        unknown = self.find_id("unknown")
        if unknown is None:
            return ids
        reserved = {self.find_id(token) for token in self.special}
        return [unknown if i in reserved else i for i in ids]

    def _unreadable(self, texts: Sequence[Any]) -> InvalidData:
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                said = f"got {type(text).__name__} {shorten(repr(text))} at place {place}"
                break
            bad = next((i for i, c in enumerate(text) if "\ud800" <= c <= "\udfff"), None)
            if bad is not None:
                said = (
                    f"got half a surrogate pair, {text[bad]!r}, at character {bad} of text {place}"
                )
                break
        else:
            said = "it could not be read"
        return InvalidData(f"{type(self).__name__}.encode: every text must be Unicode; {said}.")


def _read_text(file: Path) -> str:
    try:
        return read_regular(file).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedFile(f"Tokenizer.load: `{file}` must be JSON in UTF-8; {error}.") from None


def _read_json(file: Path) -> dict[str, Any]:
    try:
        found = parse_json(_read_text(file))
    except ValueError as error:
        raise DamagedFile(f"Tokenizer.load: `{file}` must be JSON in UTF-8; {error}.") from None
    if not isinstance(found, dict):
        raise DamagedFile(f"Tokenizer.load: `{file}` must hold a JSON object.")
    return found


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _special_of(backend: Any) -> tuple[str, ...]:
    added = sorted(backend.get_added_tokens_decoder().items())
    return tuple(token.content for _, token in added if token.special)
