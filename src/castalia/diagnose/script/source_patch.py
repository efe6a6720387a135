"""Remedies as a diff of the script, where a finding names the line that causes it.

Only edits that leave no choice are proposed: a rate, a reset of gradients, a softmax too many, a
missing squeeze, a loader that does not shuffle. Nothing is written to the script.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_record import Finding, SourceLine

__all__ = ["proposed_diff"]


@dataclass(frozen=True)
class Edit:
    """Text to put in the place of some columns of a line, or before the line when `stop` is 0."""

    line: int
    start: int
    stop: int
    text: str


def proposed_diff(diagnosis: DiagnosisRecord) -> str:
    """Return a unified diff of the files that findings point at; empty where none can be edited.

    Examples
    --------
    >>> from castalia.diagnose import Diagnosis
    >>> proposed_diff(Diagnosis())
    ''
    """
    located = [found for found in diagnosis.findings if found.source and found.code in EDITS]
    paths = dict.fromkeys(found.source.path for found in located if found.source)
    return "".join(_diff(path, [f for f in located if _path(f) == path]) for path in paths)


def _path(found: Finding) -> str:
    return found.source.path if found.source else ""


def _diff(path: str, findings: Iterable[Finding]) -> str:
    try:
        source = Path(path).read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError):  # gone, not text, or a cell of a notebook
        return ""
    before = source.splitlines(keepends=True)
    edits = {edit for found in findings for edit in _edits(tree, source, found)}
    after = _edited(before, edits)
    return "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))


def _edits(tree: ast.AST, source: str, found: Finding) -> Iterator[Edit]:
    if found.source is not None:
        yield from EDITS[found.code](tree, source, found, found.source)


def _edited(lines: list[str], edits: Iterable[Edit]) -> list[str]:
    """Make the edits from the last to the first, so that places stay true."""
    lines = list(lines)
    for edit in sorted(edits, key=lambda e: (e.line, e.start), reverse=True):
        old = lines[edit.line - 1]
        raw = old.encode()  # the columns of ast are bytes
        kept = raw[: edit.start].decode() + edit.text + raw[edit.stop :].decode()
        lines[edit.line - 1] = edit.text + old if edit.stop == 0 else kept
    return "".join(lines).splitlines(keepends=True)


def _calls(tree: ast.AST, at: SourceLine, name: str = "") -> Iterator[ast.Call]:
    """Yield the calls of a function that stand on a line, or that the line belongs to."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or (name and _name(node.func) != name):
            continue
        if node.lineno <= at.line <= (node.end_lineno or 0):
            yield node


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _replaced(node: ast.expr, text: str) -> Iterator[Edit]:
    """Put a text in the place of an expression that lies on one line."""
    if node.lineno == node.end_lineno and node.end_col_offset:
        yield Edit(node.lineno, node.col_offset, node.end_col_offset, text)


def _rate(tree: ast.AST, source: str, found: Finding, at: SourceLine) -> Iterator[Edit]:
    """Change the number that the optimizer is given as its rate, here or under its only name."""
    rate = found.remedy.changes.get("lr")
    for call in _calls(tree, at):
        given = [word.value for word in call.keywords if word.arg == "lr"]
        numbers = [_number(tree, value) for value in (given or call.args[1:2])]
        for node in numbers:
            if node is not None and rate is not None:
                yield from _replaced(node, f"{rate:g}")


def _number(tree: ast.AST, value: ast.expr) -> ast.Constant | None:
    """Return the number that an expression is: itself, or what its name is set to once."""
    if isinstance(value, ast.Name):
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == value.id]
        set_to = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and [*map(ast.unparse, node.targets)] == [value.id]
        ]
        stored = sum(isinstance(name.ctx, ast.Store) for name in names)
        parameters = [a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)]
        if len(set_to) != 1 or stored != 1 or value.id in parameters:
            return None
        value = set_to[0]
    plain = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
    return value if plain and isinstance(value, ast.Constant) else None


def _reset(tree: ast.AST, source: str, found: Finding, at: SourceLine) -> Iterator[Edit]:
    """Reset the gradients before the backward pass, by the optimizer that steps after it."""
    steps = [
        node.func.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
        and node.lineno >= at.line
        and not node.args
    ]
    line = source.splitlines()[at.line - 1]
    if steps and "backward" in line:
        optimizer = ast.unparse(min(steps, key=lambda node: node.lineno))
        space = line[: len(line) - len(line.lstrip())]
        yield Edit(at.line, 0, 0, f"{space}{optimizer}.zero_grad()\n")


def _no_softmax(tree: ast.AST, source: str, found: Finding, at: SourceLine) -> Iterator[Edit]:
    """Take the only softmax layer out of the file's networks."""
    layers = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name(node.func) in ("Softmax", "LogSoftmax", "Sigmoid")
    ]
    wanted = "Sigmoid" if "sigmoid" in found.summary.lower() else "Softmax"
    layers = [node for node in layers if _name(node.func).endswith(wanted)]
    if len(layers) == 1 and "remove" in str(found.remedy).lower():
        owner = getattr(layers[0].func, "value", None)
        prefix = f"{ast.unparse(owner)}." if isinstance(owner, ast.expr) else ""
        yield from _replaced(layers[0], f"{prefix}Identity()")


def _squeezed(tree: ast.AST, source: str, found: Finding, at: SourceLine) -> Iterator[Edit]:
    """Give outputs the shape of the targets."""
    for call in _calls(tree, at):
        if len(call.args) == 2 and _name(call.func) not in ("log", "print"):
            yield from _replaced(call.args[0], f"{ast.unparse(call.args[0])}.squeeze(-1)")
            return


def _shuffled(tree: ast.AST, source: str, found: Finding, at: SourceLine) -> Iterator[Edit]:
    """Let the loader shuffle."""
    for call in _calls(tree, at, "DataLoader"):
        said = [word.value for word in call.keywords if word.arg == "shuffle"]
        if said:
            yield from _replaced(said[0], "True")
        elif (
            call.lineno == call.end_lineno and call.end_col_offset and (call.args or call.keywords)
        ):
            end = call.end_col_offset - 1
            yield Edit(call.lineno, end, end, ", shuffle=True")


EDITS: dict[str, Callable[[ast.AST, str, Finding, SourceLine], Iterator[Edit]]] = {
    "CST101": _rate,
    "CST102": _rate,
    "CST112": _reset,
    "CST209": _shuffled,
    "CST301": _no_softmax,
    "CST304": _squeezed,
}
