"""Texts from web pages: what is kept of a page, and what is no text at all.

The rules are those of the Colossal Clean Crawled Corpus: lines that end like sentences and are long
enough stay; menus, notices about JavaScript and cookies, source code, filler texts and pages that
are too short go; of stretches of three sentences that occur again only the first stays.
Reference: 2020, Raffel et al., Exploring the limits of transfer learning, arXiv 1910.10683, 2.2.
Departs from it: a rule for the language is a function to give, and no list of bad words comes with
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise

from castalia.errors import InvalidParameter

__all__ = ["clean_lines", "clean_page", "clean_pages", "drop_repeated", "is_prose"]

_ENDS = (".", "!", "?", '"', "”", "’")
_NOTICES = (
    "javascript",
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
_MARKERS = re.compile(r"\[(?:\d+|edit|citation needed)\]")
# A stretch that no sign ends is matched too, so that the search never begins within it again.
_STRETCH = re.compile(r"[^\s.!?][^.!?\n]*(?:([.!?]+[\"”’)]*)|(?=\n|\Z))")


def clean_lines(page: str, words: int = 5) -> str:
    r"""Return the lines of a page that are sentences, without marks of citations.

    A line stays when it ends in a full stop, an exclamation or question mark or a closing quote,
    has enough words, and is no notice about JavaScript, cookies or terms of use.

    Examples
    --------
    >>> clean_lines("Menu\nThe lemon is a small evergreen tree.[1]\nWe use cookies on this site.")
    'The lemon is a small evergreen tree.'
    """
    found = []
    for line in page.splitlines():
        line = _MARKERS.sub("", line).strip()
        ends = line.endswith(_ENDS) and not line.endswith("...")
        low = line.lower()
        if ends and len(line.split()) >= words and not any(notice in low for notice in _NOTICES):
            found.append(line)
    return "\n".join(found)


def is_prose(page: str, bad_words: Collection[str] = ()) -> bool:
    """Whether a page is a text, and neither source code nor a filler text.

    Examples
    --------
    >>> is_prose("Lorem ipsum dolor sit amet."), is_prose("f(r) { return r; }"), is_prose("A text.")
    (False, False, True)
    """
    low = page.lower()
    if "{" in page or "lorem ipsum" in low:
        return False
    return not bad_words or set(bad_words).isdisjoint(re.findall(r"\w+", low))


def clean_page(
    page: str, *, words: int = 5, sentences: int = 3, bad_words: Collection[str] = ()
) -> str | None:
    r"""Return what is kept of a page, or None when nothing is.

    Examples
    --------
    >>> clean_page("Home\nShop") is None
    True
    """
    if words < 1 or sentences < 1:
        raise InvalidParameter(
            f"clean_page: `words` and `sentences` must be at least 1; got {words} and {sentences}."
        )
    if not is_prose(page, bad_words):
        return None
    kept = clean_lines(page, words)
    return kept if len(_sentences(kept)) >= sentences else None


def drop_repeated(pages: Iterable[str], span: int = 3) -> Iterator[str]:
    """Yield pages without stretches of sentences that occurred before, in this page or another.

    Parameters
    ----------
    pages
        Texts.
    span
        Sentences of a stretch; a page with fewer is one stretch.

    Examples
    --------
    >>> list(drop_repeated(["It rains. It pours. Go home.", "So. It rains. It pours. Go home."]))
    ['It rains. It pours. Go home.', 'So.']
    """
    seen: set[int] = set()
    for page in pages:
        found = _sentences(page)
        plain = [" ".join(match.group().lower().split()) for match in found]
        repeated: set[int] = set()
        for k in range(max(1, len(plain) - span + 1)):
            stretch = hash(tuple(plain[k : k + span]))  # a number a stretch: corpora are large
            if stretch in seen:
                repeated.update(range(k, min(k + span, len(plain))))
            seen.add(stretch)
        kept = _without(page, [found[k].span() for k in sorted(repeated)])
        if kept:
            yield kept


def _sentences(text: str) -> list[re.Match[str]]:
    """Return the stretches that a full stop, an exclamation or a question mark ends."""
    return [match for match in _STRETCH.finditer(text) if match[1]]


def _without(page: str, spans: list[tuple[int, int]]) -> str:
    """Return a page without some of its stretches; lines that lose all they had go too."""
    if not spans:
        return page
    edges = [0, *(edge for span in spans for edge in span), len(page)]
    kept = "".join(page[a:b] for a, b in list(pairwise(edges))[::2])
    lines = (" ".join(line.split()) for line in kept.splitlines())
    return "\n".join(line for line in lines if line)


def clean_pages(
    pages: Iterable[str],
    *,
    words: int = 5,
    sentences: int = 3,
    bad_words: Collection[str] = (),
    language: Callable[[str], bool] | None = None,
) -> Iterator[str]:
    r"""Yield the texts of web pages, one after another: corpora may be larger than memory.

    Parameters
    ----------
    pages
        Texts of pages.
    words, sentences, bad_words
        As for ``clean_page``.
    language
        Says whether a cleaned text is in the language wanted; None: all are.

    Examples
    --------
    >>> page = "Menu\nIt rained all day long. We stayed at home then. It was warm in there."
    >>> list(clean_pages([page, "Menu\nShop", page]))
    ['It rained all day long. We stayed at home then. It was warm in there.']
    """
    settings = {"words": words, "sentences": sentences, "bad_words": bad_words}
    cleaned = (clean_page(page, **settings) for page in pages)  # type: ignore[arg-type]
    kept = (page for page in cleaned if page is not None and (language is None or language(page)))
    return drop_repeated(kept)
