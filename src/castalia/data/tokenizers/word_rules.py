"""Cutting words by rules, in the way of spaCy: exceptions, prefixes, suffixes, infixes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castalia.errors import InvalidParameter

__all__ = ["ENGLISH", "Rules"]

_OPEN = r"[(\[{<«“‘\"'`¡¿$£€¥#*&_~]|\.{2,}|…|--+|—|–"
_CLOSE = r"[)\]}>»”’\"'`!?,;:%*&_~]|\.{2,}|…|--+|—|–|'s|’s|'S|’S"
_STOP = r"(?<=[a-z0-9)\]\"'%²³])\.|(?<=[A-Z]{2})\."  # a full stop, not that of an initial
_BETWEEN = r"\.{2,}|…|--+|—|–|(?<=[A-Za-z])[,:<>=/](?=[A-Za-z])|(?<=[A-Za-z])-(?=[A-Za-z])"


@dataclass(frozen=True)
class Rules:
    """Rules for one language.

    Attributes
    ----------
    exceptions
        Chunks and how each is cut; the parts join to the chunk.
    prefix, suffix, infix
        What is cut off in front, behind, and inside.
    """

    exceptions: Mapping[str, Sequence[str]]
    prefix: re.Pattern[str]
    suffix: re.Pattern[str]
    infix: re.Pattern[str]

    def extended(self, exceptions: Mapping[str, Sequence[str]]) -> Rules:
        """Return the rules with more exceptions."""
        if not exceptions:
            return self
        for chunk, parts in exceptions.items():
            if "".join(parts) != chunk:
                raise InvalidParameter(
                    f"RuleTokenizer: the parts of an exception must join to it; got {parts!r} for "
                    f"{chunk!r}."
                )
        return Rules({**self.exceptions, **exceptions}, self.prefix, self.suffix, self.infix)

    def split(self, text: str) -> list[str]:
        """Return the words of a text.

        >>> ENGLISH.split("(We don't.)")
        ['(', 'We', 'do', "n't", '.', ')']
        """
        return [word for chunk in text.split() for word in self._cut(chunk)]

    def _cut(self, chunk: str) -> list[str]:
        before: list[str] = []
        after: list[str] = []
        while chunk and chunk not in self.exceptions:
            if (found := self.prefix.match(chunk)) and found.end() < len(chunk):
                before.append(found.group())
                chunk = chunk[found.end() :]
            elif (found := self.suffix.search(chunk)) and found.start():
                after.append(found.group())
                chunk = chunk[: found.start()]
            else:
                break
        middle = self.exceptions.get(chunk) or self._inside(chunk)
        return [*before, *middle, *reversed(after)]

    def _inside(self, chunk: str) -> list[str]:
        parts, start = [], 0
        for found in self.infix.finditer(chunk):
            parts += [chunk[start : found.start()], found.group()]
            start = found.end()
        return [part for part in [*parts, chunk[start:]] if part]


def _english() -> dict[str, list[str]]:
    """List the contractions and abbreviations of English."""
    nots = (
        "do does did is are was were has have had would could should must might need dare "
        "ca wo sha ai"
    )
    subjects = "I you he she it we they who what that there here how where when why let"
    ends = ("'m", "'re", "'ve", "'ll", "'d", "'s")
    cut = {f"{verb}n't": [verb, "n't"] for verb in nots.split()}
    cut |= {f"{who}{end}": [who, end] for who in subjects.split() for end in ends}
    cut |= {"cannot": ["can", "not"], "gonna": ["gon", "na"], "gotta": ["got", "ta"]}
    cut |= {chunk.capitalize(): [p[0].capitalize(), *p[1:]] for chunk, p in cut.items()}
    cut |= {c.replace("'", "’"): [q.replace("'", "’") for q in p] for c, p in cut.items()}
    whole = (
        "a.m. p.m. e.g. i.e. Mr. Mrs. Ms. Dr. Prof. St. Jr. Sr. vs. Inc. Ltd. Co. Corp. U.S. "
        ":) :( ;)"
    )
    return cut | {word: [word] for word in whole.split()}


ENGLISH = Rules(
    _english(),
    re.compile(rf"(?:{_OPEN})"),
    re.compile(rf"(?:{_CLOSE}|{_STOP})$"),
    re.compile(_BETWEEN),
)
