"""Tags of words and answers in texts, on an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import nn

from castalia.base import Estimator, Interval, Target, TargetCodec
from castalia.base.input_checks import same_rows
from castalia.data.text import SpanAdapter, WordAdapter
from castalia.errors import CheckpointMismatch, InvalidData
from castalia.models.language.pretrained.encoder_parameters import Startable
from castalia.models.language.pretrained.start_weights import StartReader
from castalia.models.language.pretrained.task_exchange import TaskExchange
from castalia.models.language.word_tagger import WordTagger
from castalia.nets.language import EncoderSpans, EncoderTagger, TaskFolder
from castalia.objectives import Objective, SpanCrossEntropy
from castalia.protocols import Spec

__all__ = ["BERTQuestionAnswerer", "BERTTagger"]


@dataclass(kw_only=True, eq=False, repr=False)
class BERTTagger(TaskExchange, Startable, WordTagger):
    """Transformer encoder that gives a tag to every word of a sentence.

    A linear layer on the vector of each word's first piece; cross-entropy is minimised. Right for
    names, parts of speech and other tags of words, as in CoNLL's files; with a ``start`` it needs
    few sentences.

    Parameters
    ----------
    context
        Most tokens of a sentence; words after them get the tag that is commonest.
    tokenizer, dim, depth, heads, hidden, dropout, start, batch_tokens, train, adapt
        As for ``BERTClassifier``.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The tags.
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.EncoderTagger``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n lists of words.  y: n lists of as many tags.  ``predict``: n lists of tags.

    Notes
    -----
    ``score`` is the share of words with the right tag.

    References
    ----------
    2019, Devlin, Chang, Lee, Toutanova, BERT, arXiv 1810.04805, 5.3.

    See Also
    --------
    BERTClassifier : one label for a text.

    Examples
    --------
    >>> X = [["Ann", "sees", "Bob"], ["Bob", "sleeps"]] * 20
    >>> y = [["NAME", "VERB", "NAME"], ["NAME", "VERB"]] * 20
    >>> model = BERTTagger(
    ...     context=16, dim=16, depth=1, heads=2, dropout=0.0, epochs=10, lr=0.01, random_state=0)
    >>> model.fit(X, y).predict([["Bob", "sees", "Ann"]]).tolist()
    [['NAME', 'VERB', 'NAME']]
    """

    adapter: ClassVar[Any] = StartReader(WordAdapter)
    _task: ClassVar[str] = "TokenClassification"

    def _network(self, spec: Spec) -> nn.Module:
        encoder = self._encoder(spec, masked=False, pooler=False, next_sentence=False)
        ids = {"end": spec.extra["end"], "padding": spec.extra["padding"]}
        return self._finished(EncoderTagger(encoder, spec.outputs, **ids, dropout=self.dropout))

    def _name_outputs(self, found: TaskFolder) -> None:
        self.classes_ = np.array(found.labels)
        self.commonest_ = "O" if "O" in found.labels else found.labels[0]


class SpanCodec(TargetCodec):
    """Answers as the characters of the text where they begin and end, (N, 2)."""

    def check(self, est: Any, adapter: Any, X: np.ndarray, y: Any) -> np.ndarray:
        """Return where each answer stands in its text."""
        name = type(est).__name__
        same_rows(name, X, y)
        spans = [_span(name, k, text, answer) for k, (text, answer) in enumerate(_rows(X, y))]
        return np.array(spans, dtype=np.int64)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Return them as they are."""
        return Target(torch.from_numpy(y), 2)


@dataclass(kw_only=True, eq=False, repr=False)
class BERTQuestionAnswerer(TaskExchange, Startable, Estimator):
    """Transformer encoder that finds the answer to a question in a text, or says there is none.

    Two scores at each token, as the first and as the last of the answer; the mean of their
    cross-entropies is minimised. Questions without an answer point at the first token. Right for
    questions whose answer stands in the text word by word; with a ``start`` only, unless there are
    very many questions.

    Parameters
    ----------
    context
        Most tokens of question and text; longer texts are cut.
    longest
        Most tokens of an answer.
    threshold
        How much better than no answer an answer must score; larger values answer less often.
    tokenizer, dim, depth, heads, hidden, dropout, start, batch_tokens, train, adapt
        As for ``BERTClassifier``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.EncoderSpans``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n pairs (question, text).  y: n answers: a string that stands in the text, (beginning, end)
    among its characters, or ``""`` or None for no answer.  ``predict``: (n,) strings.

    Notes
    -----
    ``score`` is the mean F1 over words between the answer given and the true one, as for SQuAD.

    References
    ----------
    2018, Rajpurkar, Jia, Liang, Know what you don't know: unanswerable questions for SQuAD, arXiv
    1806.03822; 2019, Devlin, Chang, Lee, Toutanova, BERT, arXiv 1810.04805, 4.2 and 4.3.

    See Also
    --------
    BERTTagger : a tag for every word.

    Examples
    --------
    >>> X = [("who", "Ann is here"), ("where", "Ann is here")] * 20
    >>> model = BERTQuestionAnswerer(
    ...     context=16, dim=16, depth=1, heads=2, dropout=0.0, epochs=20, batch_size=8, lr=0.01,
    ...     random_state=0)
    >>> model.fit(X, ["Ann", "here"] * 20).predict([("where", "Ann is here")]).tolist()
    ['here']
    """

    adapter: ClassVar[Any] = StartReader(SpanAdapter)
    codec: ClassVar[TargetCodec] = SpanCodec()
    _task: ClassVar[str] = "QuestionAnswering"

    longest: Annotated[int, Interval(1, whole=True)] = 30
    threshold: Annotated[float, Interval(-np.inf)] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        encoder = self._encoder(spec, masked=False, pooler=False, next_sentence=False)
        ids = {"end": spec.extra["end"], "padding": spec.extra["padding"]}
        return self._finished(EncoderSpans(encoder, **ids, dropout=self.dropout))

    def _objective(self, spec: Spec) -> Objective:
        return SpanCrossEntropy()

    def _labels(self) -> list[str]:
        return ["LABEL_0", "LABEL_1"]

    def _name_outputs(self, found: TaskFolder) -> None:
        if len(found.labels) != 2:
            raise CheckpointMismatch(
                "BERTQuestionAnswerer.from_pretrained: the head must have two outputs, the first "
                f"and the last token of an answer; got {len(found.labels)}."
            )

    def decision_function(self, X: Any) -> np.ndarray:
        """Return by how much the best answer scores above no answer, (n,)."""
        return self._search(X)[0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the answer to each question, ``""`` where there is none."""
        margin, places = self._search(X)
        texts = self._checked(X)[:, 1]
        said = [text[a:b] for text, (a, b) in zip(texts, places, strict=True)]
        return np.where(margin > self.threshold, np.array(said, dtype=object), "")

    def _search(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return margins, (n,), and the characters of the best answers, (n, 2)."""
        pairs, margins, places = self._checked(X), [], []
        blocks = zip(self.adapter_.blocks(pairs, None), self._through(pairs), strict=True)
        for rows, scores in blocks:
            first, last = scores.unbind(dim=-1)  # (B, T)
            both = first[:, :, None] + last[:, None]  # (B, T, T)
            size = both.shape[1]
            allowed = torch.ones(size, size).triu().tril(self.longest - 1).bool()
            inside = rows[:, 2] > 0
            allowed = allowed & inside[:, :, None] & inside[:, None]
            best, flat = both.masked_fill(~allowed, -torch.inf).flatten(1).max(dim=1)
            margins.append(best - first[:, 0] - last[:, 0])
            a, b = flat // size, flat % size
            k = torch.arange(len(rows))
            places.append(torch.stack([rows[k, 1, a] - 1, rows[k, 2, b]], dim=1))
        return torch.cat(margins).numpy(), torch.cat(places).numpy()

    def score(self, X: Any, y: Any) -> float:
        """Return the mean F1 over words of the answers."""
        pairs = self._checked(X)
        spans = self.codec.check(self, self.adapter_, pairs, y)
        true = [t[a - 1 : b] if a else "" for t, (a, b) in zip(pairs[:, 1], spans, strict=True)]
        said = self.predict(X)
        return float(np.mean([_word_f1(a, b) for a, b in zip(said, true, strict=True)]))


def _rows(X: np.ndarray, y: Any) -> list[tuple[str, Any]]:
    return list(zip(X[:, 1], y, strict=True))


def _span(owner: str, place: int, text: str, answer: Any) -> tuple[int, int]:
    """Return where an answer begins and ends among the characters, from 1; (0, 0): none."""
    if answer is None or (isinstance(answer, str) and not answer):
        return 0, 0
    if isinstance(answer, str):
        begin = text.find(answer)
        end = begin + len(answer)
    elif isinstance(answer, tuple | list | np.ndarray) and len(answer) == 2:
        begin, end = int(answer[0]), int(answer[1])
    else:
        begin = end = -1
    if not 0 <= begin < end <= len(text):
        raise InvalidData(
            f"{owner}: an answer must stand in its text; got {answer!r} in row {place}. Give None "
            "where there is no answer."
        )
    return begin + 1, end


def _word_f1(said: str, true: str) -> float:
    """Return the F1 of two answers as bags of words; 1 where both are empty."""
    one, other = said.lower().split(), true.lower().split()
    if not one or not other:
        return float(one == other)
    rest, common = list(other), 0
    for word in one:
        if word in rest:
            rest.remove(word)
            common += 1
    return 2 * common / (len(one) + len(other))
