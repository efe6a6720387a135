"""How long the files, functions and classes of the library are.

Run ``python tools/sizes.py``; ``--json`` for machines, ``--compare REV`` to set a commit beside the
working tree. The numbers are a guide for people, not a gate: a file of about 500 lines, a network
of 300, nine functions in ten under 30 lines of code, a class of 250 lines and 8 constructor fields
are where it is worth asking whether something wants to be two things.
"""

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

__all__ = ["File", "Sizes", "compare", "main", "measure", "percentiles", "summary"]

ROOT = Path(__file__).parents[1]
LIBRARY = "src/castalia"
KINDS = ("file", "function", "code", "class", "fields")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Sizes = dict[str, dict[str, int]]


@dataclass(frozen=True)
class File:
    """The sizes found in one file.

    ``function`` counts every line from the first decorator to the end; ``code`` leaves out the
    docstring, blank lines and comments. ``fields`` counts the constructor parameters a class adds
    itself.
    """

    path: str
    lines: int
    function: tuple[int, ...]
    code: tuple[int, ...]
    classes: tuple[int, ...]
    fields: tuple[int, ...]

    @property
    def package(self) -> str:
        """The package under ``castalia``; the files beside ``__init__`` count as ``(root)``."""
        inner = Path(self.path).relative_to(LIBRARY).parts
        return inner[0] if len(inner) > 1 else "(root)"


def measure(path: str, text: str) -> File:
    """Measure one file."""
    rows = text.splitlines()
    nodes = list(ast.walk(ast.parse(text)))
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return File(
        path,
        len(rows),
        tuple(_length(node) for node in functions),
        tuple(_code(node, rows) for node in functions),
        tuple(_length(node) for node in classes),
        tuple(_fields(node) for node in classes),
    )


def percentiles(values: Iterable[int]) -> dict[str, int]:
    """Return the nearest-rank median and ninetieth percentile, and the largest value.

    >>> percentiles(range(1, 11))
    {'p50': 5, 'p90': 9, 'max': 10}
    """
    ranked = sorted(values) or [0]
    p50, p90 = (ranked[ceil(part * len(ranked) / 100) - 1] for part in (50, 90))
    return {"p50": p50, "p90": p90, "max": ranked[-1]}


def summary(files: Iterable[File]) -> dict[str, Sizes]:
    """Return the percentiles of every package, and of all of them as ``total``."""
    groups: dict[str, list[File]] = {"total": []}
    for file in sorted(files, key=lambda file: file.path):
        groups["total"].append(file)
        groups.setdefault(file.package, []).append(file)
    return {name: _sizes(group) for name, group in groups.items()}


def compare(now: Mapping[str, Sizes], was: Mapping[str, Sizes]) -> list[str]:
    """Say, line by line, which percentiles moved."""
    moved = []
    for package in sorted({*now, *was}, key=lambda name: (name != "total", name)):
        for kind in ("all", *KINDS):
            new = now.get(package, {}).get(kind, {})
            old = was.get(package, {}).get(kind, {})
            for key in new or old:
                if new.get(key, 0) != old.get(key, 0):
                    line = f"{package:<14} {kind:<9} {key:<6} {old.get(key, 0):>7,}"
                    moved.append(f"{line} -> {new.get(key, 0):,}")
    return moved


def main(arguments: list[str] | None = None) -> int:
    """Print the report and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--compare", metavar="REV", help="a commit to set beside the working tree")
    parser.add_argument("--top", type=int, default=15, help="how many of the longest files to list")
    options = parser.parse_args(arguments)
    files = [measure(path, text) for path, text in _working_tree(ROOT)]
    now = summary(files)
    was = None
    if options.compare:
        was = summary(measure(path, text) for path, text in _commit(ROOT, options.compare))
    longest = sorted(files, key=lambda file: -file.lines)[: options.top]
    if options.json:
        top = {file.path: file.lines for file in longest}
        print(json.dumps({"longest": top, "sizes": now, "compared": was}, indent=2))
    else:
        print("\n".join(_report(longest, now)))
        if was is not None:
            print(
                "\n".join(["", f"since {options.compare}:", *(compare(now, was) or ["the same"])])
            )
    return 0


def _length(node: ast.AST) -> int:
    first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
    return node.end_lineno - first + 1


def _code(node: ast.AST, rows: list[str]) -> int:
    skipped = set()
    if ast.get_docstring(node, clean=False) is not None:
        skipped = set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    body = [
        rows[n - 1].strip() for n in range(node.lineno, node.end_lineno + 1) if n not in skipped
    ]
    return sum(1 for line in body if line and not line.startswith("#"))


def _fields(node: ast.ClassDef) -> int:
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return len(item.args.posonlyargs + item.args.args) - 1 + len(item.args.kwonlyargs)
    if not any("dataclass" in ast.unparse(mark) for mark in node.decorator_list):
        return 0
    notes = [ast.unparse(item.annotation) for item in node.body if isinstance(item, ast.AnnAssign)]
    return sum(1 for note in notes if "ClassVar" not in note)


def _sizes(files: list[File]) -> Sizes:
    values = {
        "file": [file.lines for file in files],
        "function": [size for file in files for size in file.function],
        "code": [size for file in files for size in file.code],
        "class": [size for file in files for size in file.classes],
        "fields": [size for file in files for size in file.fields],
    }
    count = {
        "files": len(files),
        "lines": sum(values["file"]),
        "functions": len(values["function"]),
    }
    return {"all": count} | {kind: percentiles(values[kind]) for kind in KINDS}


def _working_tree(root: Path) -> Iterator[tuple[str, str]]:
    for file in sorted((root / LIBRARY).rglob("*.py")):
        yield file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")


def _commit(root: Path, revision: str) -> Iterator[tuple[str, str]]:
    for path in _git(root, "ls-tree", "-r", "--name-only", revision, LIBRARY).splitlines():
        if path.endswith(".py"):
            yield path, _git(root, "show", f"{revision}:{path}")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"sizes: git could not read {arguments[-1]!r}: {done.stderr.strip()}")
    return done.stdout


def _report(longest: list[File], sizes: Mapping[str, Sizes]) -> list[str]:
    lines = ["longest files", *(f"{file.lines:>6,}  {file.path}" for file in longest), ""]
    lines.append("percentiles as p50/p90/max")
    heads = ("files", "lines", *KINDS)
    lines.append(f"{'package':<14}" + "".join(f"{head:>14}" for head in heads))
    for package, size in sizes.items():
        cells = [f"{size['all']['files']:,}", f"{size['all']['lines']:,}"]
        cells += ["/".join(str(value) for value in size[kind].values()) for kind in KINDS]
        lines.append(f"{package:<14}" + "".join(f"{cell:>14}" for cell in cells))
    return lines


if __name__ == "__main__":
    sys.exit(main())
