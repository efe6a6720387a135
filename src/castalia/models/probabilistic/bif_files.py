"""Networks of tables in the Bayesian interchange format (BIF).

``variable x { type discrete [ 2 ] { yes, no }; }`` and ``probability ( x | p ) { (a) 0.1, 0.9; }``.
"""

from __future__ import annotations

import gzip
import itertools
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from castalia.errors import InvalidData
from castalia.models.probabilistic.conditional_nodes import Node, TableNode
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.text import listing, shorten

__all__ = ["read_bif", "written_bif"]

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]+', re.DOTALL)


class _Token(NamedTuple):
    text: str
    line: int


class _Reader:
    """Walks through the tokens of a file and says in which line something else was expected."""

    def __init__(self, text: str, source: str) -> None:
        self.source, self.at = source, 0
        self.tokens = []
        line, end = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", end, match.start())
            end = match.start()
            word = match.group()
            if not word.startswith(("//", "/*")):
                self.tokens.append(_Token(word.strip('"') or '""', line))
        self.last = 1 + text.rstrip().count("\n")

    def fail(self, wanted: str, token: _Token | None = None) -> NoReturn:
        found = token or self.ahead()
        got = "the end" if found is None else shorten(repr(found.text))
        line = self.last if found is None else found.line
        raise InvalidData(f"BIF: line {line} of {self.source} must have {wanted}; got {got}.")

    def ahead(self) -> _Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def next(self, wanted: str = "") -> _Token:
        token = self.ahead()
        if token is None or (wanted and token.text != wanted):
            self.fail(f"`{wanted}`" if wanted else "more")
        self.at += 1
        return token

    def is_next(self, word: str) -> bool:
        token = self.ahead()
        return token is not None and token.text == word

    def words(self, end: str) -> list[_Token]:
        """Read words up to an end sign, commas between them or not."""
        found = []
        while not self.is_next(end):
            token = self.next()
            if token.text in "{}()[];|":
                self.fail(f"`{end}`", token)
            if token.text != ",":
                found.append(token)
        self.next(end)
        return found

    def skip_block(self) -> None:
        self.next("{")
        while not self.is_next("}"):
            self.next()
        self.next("}")


def read_bif(path: str | os.PathLike[str]) -> list[TableNode]:
    """Read the nodes of a BIF file, also one packed by gzip."""
    raw = Path(path).read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8", "replace")
    reader = _Reader(text, f"`{Path(path).name}`")
    states: dict[str, tuple[str, ...]] = {}
    nodes: dict[str, TableNode] = {}
    while (token := reader.ahead()) is not None:
        reader.next()
        if token.text == "network":
            while not reader.is_next("{"):
                reader.next()
            reader.skip_block()
        elif token.text == "variable":
            name, found = _variable(reader)
            states[name] = found
        elif token.text == "probability":
            node = _probability(reader, states)
            nodes[node.name] = node
        else:
            reader.fail("`network`, `variable` or `probability`", token)
    missing = [name for name in states if name not in nodes]
    if missing:
        raise InvalidData(
            f"BIF: {reader.source} must have a probability for every variable; "
            f"{listing(missing, 'and', 5)} has none."
        )
    return [nodes[name] for name in states]


def _variable(reader: _Reader) -> tuple[str, tuple[str, ...]]:
    name = reader.next().text
    reader.next("{")
    found: tuple[str, ...] = ()
    while not reader.is_next("}"):
        word = reader.next()
        if word.text == "property":
            while not reader.is_next(";"):
                reader.next()
            reader.next(";")
            continue
        if word.text != "type":
            reader.fail("`type discrete [ n ] { states };`", word)
        reader.next("discrete")
        reader.next("[")
        count = reader.next()
        reader.next("]")
        reader.next("{")
        found = tuple(token.text for token in reader.words("}"))
        reader.next(";")
        if not count.text.isdigit() or int(count.text) != len(found):
            reader.fail(f"the number of states, {len(found)}", count)
    reader.next("}")
    return name, found


def _probability(reader: _Reader, states: Mapping[str, tuple[str, ...]]) -> TableNode:
    reader.next("(")
    names = [reader.next()]
    if reader.is_next("|"):
        reader.next("|")
        names += reader.words(")")
    else:
        reader.next(")")
    for token in names:
        if token.text not in states:
            reader.fail("a variable declared above", token)
    child, parents = names[0].text, tuple(token.text for token in names[1:])
    shape = [len(states[name]) for name in (*parents, child)]
    table = np.full(shape, np.nan)
    reader.next("{")
    while not reader.is_next("}"):
        _entries(reader, table, child, parents, states)
    end = reader.next("}")
    if np.isnan(table).any():
        at = np.argwhere(np.isnan(table))[0]
        case = [states[p][i] for p, i in zip(parents, at[:-1], strict=True)]
        reader.fail(f"a row of `{child}` for {listing(case, 'and')} before it", end)
    return TableNode(child, states[child], table, parents)


def _entries(
    reader: _Reader,
    table: np.ndarray,
    child: str,
    parents: tuple[str, ...],
    states: Mapping[str, tuple[str, ...]],
) -> None:
    start = reader.next()
    if start.text == "property":
        reader.words(";")
        return
    case: tuple[int, ...] = ()
    if start.text == "(":
        words = reader.words(")")
        if len(words) != len(parents):
            reader.fail(f"a state of each of {len(parents)} parents", start)
        case = tuple(
            _state(reader, word, name, states[name])
            for word, name in zip(words, parents, strict=True)
        )
    elif start.text not in ("table", "default"):
        reader.fail("`table`, `default` or the states of the parents in parentheses", start)
    numbers = [_number(reader, word) for word in reader.words(";")]
    wanted = table.shape[-1] if start.text != "table" else table.size
    if len(numbers) != wanted:
        reader.fail(f"{wanted} numbers for `{child}` (it has {len(numbers)})", start)
    if start.text == "table":  # the first variable, the child, changes slowest
        table[...] = np.moveaxis(np.reshape(numbers, (table.shape[-1], *table.shape[:-1])), 0, -1)
    elif start.text == "default":
        table[np.isnan(table).all(axis=-1)] = numbers
    else:
        table[case] = numbers


def _state(reader: _Reader, word: _Token, name: str, known: tuple[str, ...]) -> int:
    if word.text not in known:
        reader.fail(f"a state of `{name}`, {listing(known)}", word)
    return known.index(word.text)


def _number(reader: _Reader, word: _Token) -> float:
    try:
        value = float(word.text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1 + 1e-9:
        reader.fail("probabilities between 0 and 1", word)
    return value


def written_bif(nodes: Mapping[str, Node], path: str | os.PathLike[str]) -> Path:
    """Write the tables of a network as a BIF file; numbers are read back to the last bit."""
    lines = ["network castalia {", "}"]
    for name, node in nodes.items():
        if not isinstance(node, TableNode):
            raise InvalidData(
                f"BayesianNetwork.write: BIF holds tables only; `{name}` is continuous. Use "
                "`castalia.save`."
            )
        words = ", ".join(_word(state) for state in node.states)
        lines += [f"variable {_word(name)} {{"]
        lines += [f"  type discrete [ {len(node.states)} ] {{ {words} }};", "}"]
    for node in nodes.values():
        lines += _block(node, nodes)  # type: ignore[arg-type]
    with writing("BayesianNetwork.write", Path(path)):
        atomic_write(path, "\n".join(lines) + "\n")
    return Path(path)


def _block(node: TableNode, nodes: Mapping[str, TableNode]) -> list[str]:
    given = f" | {', '.join(_word(name) for name in node.parents)}" if node.parents else ""
    lines = [f"probability ( {_word(node.name)}{given} ) {{"]
    states = [nodes[name].states for name in node.parents]
    for case, row in zip(
        itertools.product(*states), node.table.reshape(-1, len(node.states)), strict=True
    ):
        head = f"({', '.join(map(_word, case))})" if case else "table"
        lines.append(f"  {head} {', '.join(repr(float(value)) for value in row)};")
    return [*lines, "}"]


def _word(value: object) -> str:
    text = str(value)
    return text if re.fullmatch(r'[^\s{}()\[\];,|"]+', text) else f'"{text}"'
