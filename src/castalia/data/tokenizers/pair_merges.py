"""Merging pairs of symbols: how merges are learnt, and how they are applied to a word.

Here in Python, step by step, for study; tokenizers are trained and run in Rust.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["CRITERIA", "Merge", "Pairs", "apply_merges", "learn_merges", "replay_merges"]

Pair = tuple[str, str]


@dataclass(frozen=True)
class Merge:
    """One merge.

    Attributes
    ----------
    left, right
        The symbols that become one.
    piece
        That one.
    count
        How often the pair stood in the words at that moment; None when no words were given.
    score
        What the merge was chosen by.
    """

    left: str
    right: str
    piece: str
    count: int | None = None
    score: float | None = None


class Pairs:
    """Words as symbols, with the counts of symbols and of neighbouring pairs kept up to date.

    Parameters
    ----------
    words
        Words and how often each occurs.
    prefix
        What marks a symbol that continues a word; ``"##"`` for WordPiece.

    Examples
    --------
    >>> Pairs({"hug": 10, "pug": 5}).pairs["u", "g"]
    15
    """

    def __init__(self, words: Mapping[str, int], prefix: str = "") -> None:
        self.prefix = prefix
        self.words = [[w[0], *(prefix + c for c in w[1:])] for w in words if w]
        self.counts = [count for word, count in words.items() if word]
        self.total = 0
        self.symbols: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, set[int]] = defaultdict(set)
        for place in range(len(self.words)):
            self._add(place, +1)

    def _add(self, place: int, sign: int) -> None:
        word, count = self.words[place], sign * self.counts[place]
        self.total += count * len(word)
        for symbol in word:
            self.symbols[symbol] += count
        for pair in zip(word, word[1:], strict=False):
            self.pairs[pair] += count
            self.places[pair].add(place)

    def joined(self, pair: Pair) -> str:
        """Return the piece that a pair becomes."""
        return pair[0] + pair[1].removeprefix(self.prefix)

    def merge(self, pair: Pair) -> None:
        """Merge a pair wherever it stands, from left to right in each word."""
        for place in self.places.pop(pair, ()):
            self._add(place, -1)
            self.words[place] = _merged(self.words[place], pair, self.joined(pair))
            self._add(place, +1)
        self.pairs += Counter()  # drops what occurs no more
        self.symbols += Counter()


def _merged(word: Sequence[str], pair: Pair, piece: str) -> list[str]:
    made: list[str] = []
    for symbol in word:
        # A piece just made is no left half: in "aaa" only the first two are merged.
        if made and made[-1] is not piece and (made[-1], symbol) == pair:
            made[-1] = piece
        else:
            made.append(symbol)
    return made


def _frequency(pairs: Pairs, pair: Pair) -> float:
    return float(pairs.pairs[pair])


def _score(pairs: Pairs, pair: Pair) -> float:
    """Return count(ab) / (count(a) count(b)): pointwise mutual information without its log."""
    return pairs.pairs[pair] / (pairs.symbols[pair[0]] * pairs.symbols[pair[1]])


def _likelihood(pairs: Pairs, pair: Pair) -> float:
    """Return what the merge adds to the log-likelihood of the words under a unigram model.

    The log-likelihood is sum_x c_x log(c_x / N); a merge takes n from c_a, c_b and N.
    """
    n, total = pairs.pairs[pair], pairs.total
    left, right = (pairs.symbols[symbol] for symbol in pair)
    if pair[0] == pair[1]:
        change = _xlogx(left - 2 * n) - _xlogx(left)
    else:
        change = _xlogx(left - n) + _xlogx(right - n) - _xlogx(left) - _xlogx(right)
    return change + _xlogx(n) - _xlogx(total - n) + _xlogx(total)


def _xlogx(x: int) -> float:
    return x * log(x) if x > 0 else 0.0


CRITERIA = {"frequency": _frequency, "score": _score, "likelihood": _likelihood}


def learn_merges(
    words: Mapping[str, int],
    merges: int,
    *,
    criterion: str = "frequency",
    prefix: str = "",
) -> Iterator[Merge]:
    """Yield the merges that a criterion chooses, best first at every step.

    Parameters
    ----------
    words
        Words and how often each occurs.
    merges
        Most merges.
    criterion
        ``"frequency"``: the pair that occurs most often (byte-pair encoding). ``"score"``: the one
        with the largest count(ab) / (count(a) count(b)). ``"likelihood"``: the one that adds most
        to the log-likelihood of the words. Ties go to the pair that comes first in the alphabet.
    prefix
        What marks a symbol that continues a word.

    Examples
    --------
    >>> words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    >>> [(merge.piece, merge.count) for merge in learn_merges(words, 3)]
    [('ug', 20), ('un', 16), ('hug', 15)]
    """
    if criterion not in CRITERIA:
        raise InvalidParameter(
            f"learn_merges: `criterion` must be {listing(CRITERIA)}; got {criterion!r}."
            f"{did_you_mean(str(criterion), CRITERIA)}"
        )
    pairs, worth = Pairs(words, prefix), CRITERIA[criterion]
    for _ in range(merges):
        if not pairs.pairs:
            return
        pair = min(pairs.pairs, key=lambda pair: (-worth(pairs, pair), pair))
        yield Merge(*pair, pairs.joined(pair), pairs.pairs[pair], worth(pairs, pair))
        pairs.merge(pair)


def replay_merges(words: Mapping[str, int], merges: Iterable[Pair]) -> Iterator[Merge]:
    """Yield merges learnt elsewhere with how often each pair stood in these words."""
    pairs = Pairs(words)
    for pair in merges:
        count = pairs.pairs[pair]
        yield Merge(*pair, pairs.joined(pair), count, float(count))
        pairs.merge(pair)


def apply_merges(
    symbols: Sequence[str], merges: Sequence[Pair], *, queue: bool = True
) -> tuple[list[str], int]:
    """Merge the symbols of a word, earliest learnt merge first, and count the pairs compared.

    Parameters
    ----------
    symbols
        Characters.
    merges
        Pairs in the order they were learnt.
    queue
        True keeps the pairs in a priority queue and compares only the neighbours of a merge:
        O(N log N) for N symbols. False compares all pairs again before every merge: O(N²). The
        pieces are the same.

    Returns
    -------
    pieces : list of str
    compared : int
        How many pairs were compared.

    Examples
    --------
    >>> apply_merges("hugs", [("u", "g"), ("h", "ug")])[0]
    ['hug', 's']
    """
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    return _by_queue(symbols, ranks) if queue else _by_scan(symbols, ranks)


def _by_scan(symbols: Sequence[str], ranks: Mapping[Pair, int]) -> tuple[list[str], int]:
    pieces, looked = list(symbols), 0
    while True:
        known = [
            (ranks[pair], place)
            for place, pair in enumerate(zip(pieces, pieces[1:], strict=False))
            if pair in ranks
        ]
        looked += max(len(pieces) - 1, 0)
        if not known:
            return pieces, looked
        place = min(known)[1]
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]


def _by_queue(symbols: Sequence[str], ranks: Mapping[Pair, int]) -> tuple[list[str], int]:
    pieces: list[str | None] = list(symbols)
    after = [*range(1, len(pieces)), None] if pieces else []  # a linked list of what is left
    before = [None, *range(len(pieces) - 1)]
    waiting: list[tuple[int, int, Pair]] = []
    looked = 0

    def look(left: int | None, right: int | None) -> None:
        nonlocal looked
        if left is None or right is None:
            return
        looked += 1
        pair = (pieces[left] or "", pieces[right] or "")
        if pair in ranks:
            heapq.heappush(waiting, (ranks[pair], left, pair))

    for left in range(len(pieces) - 1):
        look(left, left + 1)
    while waiting:
        _, left, pair = heapq.heappop(waiting)
        right = after[left] if pieces[left] == pair[0] else None
        if right is None or pieces[right] != pair[1]:
            continue  # one of the two was merged since
        pieces[left], pieces[right] = pair[0] + pair[1], None
        after[left] = following = after[right]
        if following is not None:
            before[following] = left
        look(before[left], left)
        look(left, following)
    return [piece for piece in pieces if piece is not None], looked
