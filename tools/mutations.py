"""Small faults put into a function while it is loaded: the source stays as it is."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

__all__ = ["KINDS", "Entries", "Mutation", "mutations_of", "source", "tables_of"]

SKIPPED = {"annotation", "returns", "decorator_list", "defaults", "kw_defaults", "type_params"}
OPPOSITE: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Site:
    """A node of a function, and where its parent holds it."""

    holder: ast.AST
    field: str
    index: int | None
    node: Any

    def put(self, new: ast.AST) -> None:
        """Replace the node."""
        new = ast.fix_missing_locations(ast.copy_location(new, self.node))
        if self.index is None:
            setattr(self.holder, self.field, new)
        else:
            getattr(self.holder, self.field)[self.index] = new


@dataclass(frozen=True)
class Mutation:
    """One fault in one function."""

    file: str
    function: str
    first: int
    site: int
    kind: str
    line: int
    said: str

    def apply(self) -> bool:
        """Break the function in this process; return whether it could be done."""
        tree = ast.parse(source(self.file))
        function = _find(tree, self.first, self.function.rpartition(".")[2])
        if function is None:
            return False
        site = list(_sites(function))[self.site]
        site.put(KINDS[self.kind](site.node, _first_parameter(function)))
        try:
            return _swap(self.file, compile(tree, self.file, "exec", dont_inherit=True))
        except (
            ValueError,
            SyntaxError,
            TypeError,
        ):  # the fault changes which names are closed over
            return False


@dataclass(frozen=True)
class Entries:
    """Two entries of a table exchanged."""

    path: str
    one: str
    other: str
    kind: str = "swap entries"
    line: int = 0

    @property
    def said(self) -> str:
        """What is broken."""
        return f"`{self.one}` and `{self.other}` exchanged"

    def apply(self) -> bool:
        """Exchange them in this process."""
        from tools.course_code import resolve

        table = resolve(self.path)
        table[self.one], table[self.other] = table[self.other], table[self.one]
        return True


@cache
def source(file: str) -> str:
    """Read a file once: it may change while what was imported from it stays."""
    return Path(file).read_text(encoding="utf-8")


def mutations_of(function: FunctionType) -> list[Mutation]:
    """List the faults that fit a function."""
    code = function.__code__
    file = Path(code.co_filename)
    if not file.is_file():
        return []
    node = _find(ast.parse(source(str(file))), code.co_firstlineno, code.co_name)
    if node is None:
        return []
    found = []
    for number, site in enumerate(_sites(node)):
        for kind, change in KINDS.items():
            new = change(site.node, _first_parameter(node))
            if new is not None:
                said = f"`{_short(site.node)}` becomes `{_short(new)}`"
                place = code.co_qualname, code.co_firstlineno
                found.append(Mutation(str(file), *place, number, kind, site.node.lineno, said))
    return found


def tables_of(path: str, table: Any) -> list[Entries]:
    """List the neighbours of a table that can be exchanged."""
    if not isinstance(table, Mapping):
        return []
    names = list(table)
    return [Entries(path, a, b) for a, b in zip(names, names[1:], strict=False)]


def _find(tree: ast.AST, first: int, name: str) -> ast.AST | None:
    """Find the function that begins in a line, decorators included."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            if min([node.lineno, *(d.lineno for d in node.decorator_list)]) == first:
                return node
        elif isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == first:
            found.append(node)
    return found[0] if len(found) == 1 else None


def _sites(function: ast.AST) -> Iterator[Site]:
    """Walk a function's body without docstrings, annotations, defaults, messages and errors."""
    for field, value in ast.iter_fields(function):
        if field in SKIPPED or isinstance(function, ast.arguments | ast.Raise | ast.JoinedStr):
            continue
        nodes = [(None, value)] if isinstance(value, ast.AST) else []
        nodes += list(enumerate(value)) if isinstance(value, list) else []
        for index, node in nodes:
            if isinstance(node, ast.AST) and not _is_docstring(node):
                if hasattr(node, "lineno"):
                    yield Site(function, field, index, node)
                yield from _sites(node)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _first_parameter(function: Any) -> str:
    """Return what a function could give back instead of its result."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return next((name for name in names if name not in ("self", "cls")), "")


def _short(node: ast.AST, width: int = 60) -> str:
    text = " ".join(ast.unparse(node).split()).replace("`", "'")
    return text if len(text) <= width else text[: width - 1] + "…"


def _flip(node: Any, _: str) -> ast.AST | None:
    """``a + b`` to ``a - b``, ``a * b`` to ``a / b``, ``-a`` to ``a``."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPPOSITE:
        fields = dict(ast.iter_fields(node)) | {"op": OPPOSITE[type(node.op)]()}
        return type(node)(**fields)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return None if isinstance(node.operand, ast.Constant) else node.operand
    return None


def _drop(node: Any, _: str) -> ast.AST | None:
    """``a + b`` to ``a``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        return node.left
    return ast.Pass() if isinstance(node, ast.AugAssign) else None


def _compare(node: Any, _: str) -> ast.AST | None:
    """``a < b`` to ``a >= b``, ``and`` to ``or``, a condition to its contrary."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITE:
        return ast.Compare(node.left, [OPPOSITE[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(OPPOSITE[type(node.op)](), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, node.orelse, node.body)
    return None


def _constant(node: Any, _: str) -> ast.AST | None:
    """A number to another number, ``True`` to ``False``."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, bool | int | float):
        return None
    return ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)


def _arguments(node: Any, _: str) -> ast.AST | None:
    """``f(a, b)`` to ``f(b, a)``, ``a @ b`` to ``b @ a``."""
    if isinstance(node, ast.Call) and len(node.args) > 1:
        one, other, *rest = node.args
        if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
            return ast.Call(node.func, [other, one, *rest], node.keywords)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div | ast.MatMult):
        return ast.BinOp(node.right, node.op, node.left)
    return None


def _call(node: Any, _: str) -> ast.AST | None:
    """``x.f(a)`` to ``x``, ``f(a)`` to ``a``, a call that stands alone to nothing."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return None if "super()" in ast.unparse(node) else ast.Pass()
    if not isinstance(node, ast.Call) or "super()" in ast.unparse(node.func):
        return None
    if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
        return node.func.value
    if node.args and not isinstance(node.args[0], ast.Starred):
        return node.args[0]
    return None


def _is_module(node: ast.AST) -> bool:
    """Whether ``x`` of ``x.f(a)`` is ``torch``, ``np`` and the like."""
    return ast.unparse(node).split(".")[0] in ("torch", "np", "numpy", "math", "F", "nn", "scipy")


def _give_back(node: Any, parameter: str) -> ast.AST | None:
    """``return f(x)`` to ``return x``."""
    if not isinstance(node, ast.Return) or node.value is None or not parameter:
        return None
    if isinstance(node.value, ast.Name) and node.value.id == parameter:
        return None
    return ast.Return(ast.Name(parameter, ast.Load()))


# In the order of preference: those that change a value before those that may only crash.
KINDS = {
    "flip a sign": _flip,
    "drop a term": _drop,
    "change a comparison": _compare,
    "change a constant": _constant,
    "swap arguments": _arguments,
    "return the input": _give_back,
    "remove a call": _call,
}


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _swap(file: str, module: CodeType) -> bool:
    """Give every live function of a file its code in the broken module; say whether any changed."""
    new: dict[tuple[str, int], CodeType | None] = {}
    for code in _codes(module):  # two lambdas of one line cannot be told apart
        place = code.co_qualname, code.co_firstlineno
        new[place] = None if place in new else code
    changed = False
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename == file:
            code = new.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if code is not None and code != function.__code__:
                function.__code__ = code
                changed = True
    return changed
