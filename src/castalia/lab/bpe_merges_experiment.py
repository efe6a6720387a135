"""Byte-pair encoding: the commonest pair of neighbours becomes a symbol, again and again.

On the words of the notes (hug 10, pug 5, pun 12, bun 4, hugs 5) the merges are ug, un and hug; on a
longer text the number of tokens falls while the vocabulary grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from castalia.data.tokenizers import BPETokenizer, Merge, apply_merges, learn_merges
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.utils.figure_style import COLOURS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["run"]

WORDS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
# Shakespeare, Hamlet, act 3, scene 1.
TEXT = """To be, or not to be, that is the question:
Whether 'tis nobler in the mind to suffer
The slings and arrows of outrageous fortune,
Or to take arms against a sea of troubles
And by opposing end them. To die: to sleep;
No more; and by a sleep to say we end
The heart-ache and the thousand natural shocks
That flesh is heir to, 'tis a consummation
Devoutly to be wish'd. To die, to sleep;
To sleep: perchance to dream: ay, there's the rub;
For in that sleep of death what dreams may come
When we have shuffled off this mortal coil,
Must give us pause: there's the respect
That makes calamity of so long life."""
STEPS = 4


def run(*, quick: bool = False) -> Outcome:
    """Merge step by step, and count the tokens of a text for vocabularies of several sizes."""
    merges = list(learn_merges(WORDS, STEPS))
    figure, (left, right) = panels(2, (10, 4))
    _draw_steps(left, merges)
    sizes = (0, 10, 50, 150) if quick else (0, 5, 10, 20, 40, 80, 120, 160, 200, 260)
    tokens = [_tokens(TEXT, count) for count in sizes]
    right.plot(sizes, tokens, "o-", color=COLOURS[0])
    right.set(xlabel="merges", ylabel="tokens of Hamlet's soliloquy", ylim=(0, None))
    made = BPETokenizer(special=("<unk>",), vocabulary_size=9 + 3).fit(WORDS)
    numbers = {
        **{f"count of {merge.piece}": float(merge.count or 0) for merge in merges},
        "pieces of bug": float(len(made.tokens("bug"))),
        "tokens without merges": float(tokens[0]),
        "tokens with most merges": float(tokens[-1]),
    }
    said = (
        f"The third merge makes {merges[2].piece} ({merges[2].count} times); {sizes[-1]} merges "
        f"turn {tokens[0]:,} characters of Hamlet into {tokens[-1]:,} tokens."
    )
    return Outcome(figure, numbers, said)


def _tokens(text: str, merges: int) -> int:
    """Return the number of tokens of a text with so many merges learnt on it."""
    alphabet = {*text.replace(" ", "▁"), "▁"}
    size = len(alphabet) + 1 + merges
    made = BPETokenizer(special=("<unk>",), vocabulary_size=size).fit(text)
    return len(made.encode(text))


def _draw_steps(ax: Axes, merges: list[Merge]) -> None:
    """Draw every word as the boxes of its pieces, a column a merge."""
    pairs = [(merge.left, merge.right) for merge in merges]
    titles = ["letters", *(f"{merge.piece} ({merge.count})" for merge in merges)]
    for column in range(len(merges) + 1):
        for row, word in enumerate(WORDS):
            at = 1.0 * column
            for piece in apply_merges(word, pairs[:column])[0]:
                wide = 0.19 * len(piece)
                colour = COLOURS[0] if len(piece) == 1 else COLOURS[1]
                ax.barh(-row, wide - 0.02, 0.6, at, color=colour, edgecolor=colour, alpha=0.25)
                ax.text(at + wide / 2 - 0.01, -row, piece, ha="center", va="center", color=INK)
                at += wide
    ax.set_xticks([column + 0.3 for column in range(len(titles))], titles)
    ax.set_yticks([-row for row in range(len(WORDS))], [f"{w} × {n}" for w, n in WORDS.items()])
    ax.set(xlim=(-0.1, len(titles)), ylim=(0.6 - len(WORDS), 0.6), xlabel="after merging (count)")
    ax.grid(False)
