"""Sentences about films and whether they praise: MR and the Stanford Sentiment Treebank.

References: 2005, Pang and Lee, Seeing stars, ACL (MR); 2013, Socher et al., Recursive deep models
for semantic compositionality over a sentiment treebank, EMNLP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from castalia.data.text.text_datasets import load_text
from castalia.errors import InvalidParameter

__all__ = ["load_reviews", "phrases"]

NEUTRAL = 2
_MARKS = re.compile(r"\((\d) |\)|[^()\s]+")


def load_reviews(
    name: str, part: str = "train", *, parts_too: bool = False
) -> tuple[list[str], np.ndarray]:
    """Load sentences and their labels, 1 for praise, from the cache of ``castalia.data.datasets``.

    Labels of ``"sst-5"`` run from 0, very bad, to 4.

    Parameters
    ----------
    name
        ``"mr"``: 10,662 sentences without parts. ``"sst-2"``: the treebank's sentences, the
        neutral ones left out. ``"sst-5"``: all of them, judged in five steps.
    part
        ``"train"``, ``"validation"`` or ``"test"`` of the treebank.
    parts_too
        Return every phrase that was judged, and not neutral, instead of whole sentences only.
    """
    if name == "mr":
        sides = [load_text(f"mr-{side}").split("\n") for side in ("negative", "positive")]
        return [line.strip() for side in sides for line in side], np.repeat(
            [0, 1], [len(side) for side in sides]
        )
    if name == "sst-5":
        whole = [[*phrases(tree)][-1] for tree in load_text("sst-trees", part).split("\n")]
        return [text.lower() for text, _ in whole], np.array([label for _, label in whole])
    if name != "sst-2":
        raise InvalidParameter(
            f"load_reviews: `name` must be 'mr', 'sst-2' or 'sst-5'; got {name!r}."
        )
    if parts_too:
        judged = dict(
            pair for tree in load_text("sst-trees", part).split("\n") for pair in phrases(tree)
        )
        kept = {text.lower(): label for text, label in judged.items() if label != NEUTRAL}
        return list(kept), np.array([label > NEUTRAL for label in kept.values()], dtype=np.int64)
    lines = [line.split(" ", 1) for line in load_text("sst-2", part).split("\n")]
    return [text for _, text in lines], np.array([int(label) for label, _ in lines])


def phrases(tree: str) -> Iterator[tuple[str, int]]:
    """Yield every phrase of a tree of the treebank with its label from 0, very bad, to 4.

    >>> list(phrases("(4 (2 a) (4 (3 lovely) (2 film)))"))
    [('a', 2), ('lovely', 3), ('film', 2), ('lovely film', 4), ('a lovely film', 4)]
    """
    open_ones: list[tuple[int, int]] = []  # label, and how many words stood before
    words: list[str] = []
    for mark in _MARKS.finditer(tree):
        if mark[1] is not None:
            open_ones.append((int(mark[1]), len(words)))
        elif mark[0] == ")":
            label, begin = open_ones.pop()
            yield " ".join(words[begin:]), label
        else:
            words.append(mark[0])
