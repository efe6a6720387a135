"""Words for messages and tables."""

import difflib
import re
from collections.abc import Iterable

__all__ = ["agreeing", "did_you_mean", "listing", "number", "plural", "public", "shorten"]

PLAIN = 1e5  # numbers below it are written out
FORMS = {"s": ("s", ""), "they": ("it", "they"), "them": ("it", "them"), "are": ("is", "are")}
FORMS["were"] = ("was", "were")


def agreeing(count: int, words: str) -> str:
    """Let the verbs and pronouns of a sentence agree with how many it is about.

    >>> agreeing(1, "never change{s}: {they} {are} frozen"), agreeing(2, "Drop {them}.")
    ('never changes: it is frozen', 'Drop them.')
    """
    return words.format(**{name: forms[count != 1] for name, forms in FORMS.items()})


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `` Did you mean `x`?`` for the nearest known word, or nothing.

    >>> did_you_mean("Survivd", ["Survived", "Age"])
    ' Did you mean `Survived`?'
    """
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if not near:
        lower = {k.lower(): k for k in known}
        near = [lower[m] for m in difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)]
    return f" Did you mean `{near[0]}`?" if near else ""


def listing(words: Iterable[object], last: str = "or", most: int = 12) -> str:
    """Join words for a sentence.

    >>> listing(["a", "b", "c"])
    '`a`, `b` or `c`'
    """
    names = [f"`{w}`" for w in words]
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return (
        names[0]
        if len(names) == 1
        else f"{', '.join(names[:-1])} {last} {names[-1]}"
        if names
        else "nothing"
    )


def plural(count: int, noun: str) -> str:
    """Count a noun.

    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def number(value: float, digits: int = 4) -> str:
    """Format a number to a few significant digits, without trailing zeros.

    >>> number(0.123456), number(1234567.0), number(2.0), number(99.9, 2)
    ('0.1235', '1.235e+06', '2', '100')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < PLAIN else text


def shorten(text: object, width: int = 60) -> str:
    """Cut a long representation in the middle.

    >>> shorten("abcdefghij", 7)
    'abc…hij'
    """
    text = str(text)
    if len(text) <= width:
        return text
    half = (width - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def public(text: object) -> str:
    """Return an address, or words about it, without user and password.

    >>> public("ray://me:s@cret@head:10001")
    'ray://head:10001'
    """
    return re.sub(r"//[^/\s]*@", "//", " ".join(str(text).split()))
