"""Toy texts."""

from __future__ import annotations

from itertools import combinations

import numpy as np

__all__ = [
    "chain",
    "opinions",
    "paraphrases",
    "questions",
    "reversal",
    "reviews",
    "tagged",
    "topics",
]

Data = tuple[np.ndarray, np.ndarray]


def chain(n: int = 400, seed: int = 0) -> tuple[list[str], None]:
    """Sentences of a Markov chain of six words, each with a usual successor.

    The chain's own perplexity on such texts, their ends included, is about 2.9; that of a model
    without context about 6.9.

    >>> chain()[0][:2]
    ['f a d', 'd e']
    """
    random = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        state = int(random.integers(6))
        text = ["abcdef"[state]]
        while random.random() < 0.9:
            state = (state + 1) % 6 if random.random() < 0.8 else int(random.integers(6))
            text.append("abcdef"[state])
        texts.append(" ".join(text))
    return texts, None


def topics(n: int = 400, seed: int = 0) -> tuple[list[str], None]:
    """Sentences of eight words, three quarters from one of four topics, the rest from any.

    Words of one topic begin with the same letter. Two neighbours are from one topic in about two
    of three cases; a model that puts topics apart prefers them to words drawn at random in about
    three of four.

    >>> topics()[0][0]
    'd7 d0 d5 d5 d2 d0 c2 d3'
    """
    random = np.random.default_rng(seed)
    texts = []
    for topic in random.integers(4, size=n):
        own = random.random(8) < 0.75
        drawn = np.where(own, topic, random.integers(4, size=8))
        words = random.integers(8, size=8)
        texts.append(" ".join(f"{'abcd'[t]}{w}" for t, w in zip(drawn, words, strict=True)))
    return texts, None


def paraphrases(n: int = 200, seed: int = 0) -> tuple[list[tuple[str, str]], None]:
    """Pairs of texts that say three of twelve things in two languages, each in its own order.

    No word occurs in both texts, and no two pairs say the same.

    >>> paraphrases()[0][0]
    ('b h i', 't u n')
    """
    random = np.random.default_rng(seed)
    meanings = list(combinations("abcdefghijkl", 3))
    pairs = []
    for place in random.permutation(len(meanings))[:n]:
        one, other = (random.permutation(list(meanings[place])).tolist() for _ in range(2))
        pairs.append((" ".join(one), " ".join(chr(ord(letter) + 12) for letter in other)))
    return pairs, None


def reviews(n: int = 300, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Short documents of two to four sentences, one of which says whether it is praise (1) or not.

    A word of that sentence decides, and in three cases of ten ``not`` turns it round: weights of
    single words are not enough.

    >>> texts, y = reviews()
    >>> texts[0], int(y[0])
    ('it was a poor film . my friend was there .', 0)
    """
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    words = {1: ["good", "fine", "great"], 0: ["bad", "poor", "dull"]}
    others = ["i saw it here .", "it is short .", "my friend was there .", "it is long ."]
    texts = []
    for label in y:
        turned = random.random() < 0.3
        word = random.choice(words[int(label) ^ turned])
        rest = random.permutation(others)[: random.integers(1, 4)].tolist()
        verdict = f"it was {'not ' if turned else ''}a {word} film ."
        rest.insert(int(random.integers(len(rest) + 1)), verdict)
        texts.append(" ".join(rest))
    return texts, y


def reversal(n: int = 400, length: int = 5, seed: int = 0) -> Data:
    """Texts of four words or more out of eight, and the same texts backwards.

    >>> X, y = reversal()
    >>> X[0], y[0]
    ('f e c c a', 'a c c e f')
    """
    random = np.random.default_rng(seed)
    X, y = np.empty(n, dtype=object), np.empty(n, dtype=object)
    for i in range(n):
        words = ["abcdefgh"[k] for k in random.integers(8, size=random.integers(4, length + 1))]
        X[i], y[i] = " ".join(words), " ".join(reversed(words))
    return X, y


def opinions(n: int = 240, seed: int = 0) -> Data:
    """Texts of ten words out of thirty, and whether more of them are praise than blame.

    >>> X, y = opinions()
    >>> len(X[0].split()), sorted(set(y.tolist()))
    (10, [0, 1])
    """
    random = np.random.default_rng(seed)
    words = np.array([f"{kind}{k}" for kind in ("plain", "good", "bad") for k in range(10)])
    X, y = np.empty(n, dtype=object), np.arange(n) % 2
    for i in range(n):
        kinds = np.array([0] * 7 + [2 - y[i]] * 2 + [random.integers(3)])
        X[i] = " ".join(words[10 * random.permutation(kinds) + random.integers(10, size=10)])
    return X, y


def tagged(n: int = 120, seed: int = 0) -> Data:
    """Sentences of three to six words, and for each word its kind, which its ending shows.

    >>> X, y = tagged()
    >>> X[0][:3], y[0][:3]
    (('kiro', 'kiro', 'toa'), ('O', 'O', 'A'))
    """
    random = np.random.default_rng(seed)
    starts, endings = ("ki", "lu", "nam", "to"), {"a": "A", "ro": "O", "m": "M"}
    X, y = np.empty(n, dtype=object), np.empty(n, dtype=object)
    for i in range(n):
        ends = random.choice(list(endings), size=random.integers(3, 7))
        X[i] = tuple(f"{random.choice(starts)}{end}" for end in ends)
        y[i] = tuple(endings[end] for end in ends)
    return X, y


def questions(n: int = 240, seed: int = 0) -> Data:
    """Questions who, where and when to a text that says who is where, but not when.

    >>> X, y = questions()
    >>> X[:2].tolist(), y[:3].tolist()
    ([['who', 'Dee is in Pisa'], ['where', 'Cid is in Rome']], ['Dee', 'Rome', ''])
    """
    random = np.random.default_rng(seed)
    X, y = np.empty((n, 2), dtype=object), np.empty(n, dtype=object)
    for i in range(n):
        who = str(random.choice(["Ann", "Bob", "Cid", "Dee"]))
        where = str(random.choice(["Rome", "Pisa", "Bari"]))
        asked = ("who", "where", "when")[i % 3]
        X[i] = asked, f"{who} is in {where}"
        y[i] = {"who": who, "where": where, "when": ""}[asked]
    return X, y
