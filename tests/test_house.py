"""The rules of the house, checked on the syntax tree of the library.

Each rule is a function from modules to a list of faults; each is also shown a bad snippet, so that
a rule that has gone blind is noticed.
"""

import ast
import gc
import importlib
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from textwrap import dedent

import pytest

from castalia.catalog import SYSTEMS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "castalia"

FLOORS = {
    **dict.fromkeys(("errors", "protocols", "catalog", "utils"), 0.0),
    **dict.fromkeys(("nn", "autodiff", "probability"), 1.0),
    **dict.fromkeys(("nets", "objectives", "optim", "data", "sampling"), 2.0),
    "train": 3.0,
    "base": 4.0,
    "models": 5.0,
    "testing": 5.5,  # toy problems and contract checks; may use the models
    **dict.fromkeys(("diagnose", "tune", "evaluate"), 6.0),
    **dict.fromkeys(("lab", "method"), 7.0),
    "export": 7.5,
    "serve": 7.75,
    "studio": 7.9,
    "cli": 8.0,
    "doctor": 8.5,  # `python -m castalia.doctor`, a verb of the command line
    "__main__": 8.5,  # `python -m castalia`
    "pytest_plugin": 8.5,  # what pytest loads
    "": 9.0,  # castalia/__init__.py, which finds everything lazily
}
GROUND = {
    "errors": set(),
    "protocols": {"errors", "utils"},
    "utils": {"errors"},
    "catalog": {"errors", "utils"},
}
USE_OTHER_FAMILIES = {"strategies", "ensemble", "meta"}
HEAVY = ("torch", "sklearn", "pandas", "matplotlib", "pyarrow", "scipy")


# ---- reading the tree ----


@dataclass(frozen=True)
class Module:
    """One file of the library."""

    name: str
    tree: ast.Module
    package: bool = False
    calls: bool = True  # whether it may import by a call

    @property
    def part(self) -> str:
        """The package under castalia that it belongs to; empty for the root."""
        return part(self.name)


@dataclass(frozen=True)
class Import:
    """One name brought in from the library."""

    target: str
    name: str
    line: int
    at_top: bool


def part(name: str) -> str:
    return (name.split(".") + [""])[1]


def module(name: str, source: str, package: bool = False) -> Module:
    return Module(name, ast.parse(dedent(source)), package)


def files(folder: Path = SOURCE) -> dict[str, Path]:
    """Find every file of the library by the name of its module."""
    found = {}
    for file in sorted(folder.rglob("*.py")):
        words = file.relative_to(folder.parent).with_suffix("").parts
        found[".".join(words[:-1] if words[-1] == "__init__" else words)] = file
    return found


FILES = files()


@cache
def library() -> tuple[Module, ...]:
    """Parse every file of the library, when the first rule asks for it."""
    gc.disable()  # millions of nodes, none of them garbage
    found = tuple(parsed(name, file) for name, file in FILES.items())
    gc.enable()
    return found


def parsed(name: str, file: Path) -> Module:
    """Parse a file."""
    source = file.read_bytes()
    tree = ast.parse(source, filename=str(file))
    return Module(name, tree, file.stem == "__init__", b"import_module" in source)


@pytest.fixture(scope="module", autouse=True)
def _forget():
    """Let go of the trees when the last rule is checked."""
    yield
    library.cache_clear()


def called(call: ast.Call) -> str:
    """Return the last word of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def is_for_types(test: ast.expr) -> bool:
    """Whether a condition asks for ``TYPE_CHECKING``, which no program sees true."""
    if isinstance(test, ast.BoolOp):
        return any(map(is_for_types, test.values))
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(node: ast.AST) -> list[ast.AST]:
    """List the statements right below a node."""
    if isinstance(node, ast.expr):  # a lambda, whose body is an expression
        return []
    return [inner for name in BODIES for inner in getattr(node, name, ())]


def walk(node, below=ast.iter_child_nodes) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node that runs, and whether it runs when the module is imported."""
    todo = [(child, True) for child in below(node)][::-1]
    while todo:
        child, at_top = todo.pop()
        if isinstance(child, ast.If) and is_for_types(child.test):
            todo += [(other, at_top) for other in reversed(child.orelse)]
            continue
        yield child, at_top
        at_top = at_top and not isinstance(
            child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        )
        todo += [(inner, at_top) for inner in below(child)][::-1]


@cache
def imports(module: Module) -> tuple[Import, ...]:
    """Return what a module takes from the library, `import_module("castalia.x")` included."""
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[Import]:
    for node, at_top in walk(module.tree, ast.iter_child_nodes if module.calls else statements):
        if isinstance(node, ast.Import):
            found = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Call) and called(node).endswith("import_module"):
            first = node.args[0] if node.args else None
            found = [(str(first.value), "")] if isinstance(first, ast.Constant) else []
        else:
            continue
        for target, name in found:
            if target.split(".")[0] == "castalia":
                yield Import(target, name, node.lineno, at_top)


# ---- floors ----


def destination(taken: Import) -> str:
    """Return the package an import reaches; `from castalia import data` reaches `data`."""
    if taken.target == "castalia" and taken.name in FLOORS:
        return taken.name
    return part(taken.target)


def allowed(here: str, there: str) -> bool:
    """Say whether a package may import another."""
    if here == there:
        return True
    if here in GROUND:
        return there in GROUND[here]
    return there in FLOORS and FLOORS[there] < FLOORS[here]


def upward_imports(modules: Iterable[Module]) -> list[str]:
    """List the imports that do not go down; `__version__` may be read from anywhere."""
    faults = []
    for module in modules:
        if module.part not in FLOORS:
            faults.append(f"{module.name}: `{module.part}` has no floor")
            continue
        for taken in imports(module):
            there = destination(taken)
            version = (taken.target, taken.name) == ("castalia", "__version__")
            if not version and not allowed(module.part, there):
                faults.append(f"{module.name}:{taken.line}: imports `{there or 'castalia'}`")
    return faults


def test_imports_go_down_the_floors():
    assert upward_imports(library()) == []


@pytest.mark.parametrize(
    "name, source",
    [
        ("castalia.train.loop", "from castalia.base import Estimator"),
        ("castalia.train.loop", "def f():\n    from castalia.models.dense import MLPClassifier"),
        ("castalia.train.loop", "from castalia import base"),
        ("castalia.train.loop", "import castalia"),
        (
            "castalia.train.loop",
            "from importlib import import_module\nimport_module('castalia.cli')",
        ),
        ("castalia.nets.mlp", "from castalia.data import read"),
        ("castalia.diagnose.watch", "import castalia.evaluate.scores"),
        ("castalia.utils.text", "from castalia.catalog import SYSTEMS"),
        ("castalia.errors", "from castalia.utils.text import plural"),
        ("castalia.catalog.dense_systems", "from castalia.protocols import Spec"),
        ("castalia.models.dense", "from castalia.testing import toy"),
        ("castalia.nowhere.file", ""),
        ("castalia.train.loop", "if TYPE_CHECKING:\n    pass\nelse:\n    import castalia.cli"),
    ],
)
def test_an_import_that_goes_up_or_sideways_is_found(name, source):
    assert len(upward_imports([module(name, source)])) == 1


def test_imports_that_go_down_or_stay_in_the_package_pass():
    good = """
        from typing import TYPE_CHECKING
        import torch
        from castalia import __version__, optim
        from castalia.errors import Diverged
        from castalia.train.state import TrainState
        if TYPE_CHECKING:
            from castalia.base import Estimator
    """
    assert upward_imports([module("castalia.train.loop", good)]) == []


def family(name: str) -> str:
    words = name.split(".")
    return words[2] if words[1:2] == ["models"] and len(words) > 2 else ""


def family_imports(modules: Iterable[Module]) -> list[str]:
    """List the imports from one family of models to another."""
    faults = []
    for module in modules:
        here = family(module.name)
        if not here or here in USE_OTHER_FAMILIES:
            continue
        for taken in imports(module):
            there = family(taken.target) or family(f"{taken.target}.{taken.name}")
            if there and there != here:
                faults.append(f"{module.name}:{taken.line}: imports the family `{there}`")
    return faults


def test_families_of_models_do_not_import_each_other():
    assert family_imports(library()) == []


@pytest.mark.parametrize(
    "source",
    ["from castalia.models.dense import MLPClassifier", "from castalia.models import dense"],
)
def test_a_family_that_imports_another_is_found(source):
    assert len(family_imports([module("castalia.models.vision.resnet", source)])) == 1
    assert family_imports([module("castalia.models.ensemble.bagging", source)]) == []
    assert family_imports([module("castalia.models.dense.mlp_estimators", source)]) == []


# ---- cycles ----


def every_import(module: Module) -> Iterator[Import]:
    """Yield what a module takes from the library, for type checkers too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports(Module(module.name, ast.Module(node.body, []), module.package))
    yield from imports(module)


def cycle(modules: Iterable[Module]) -> list[str]:
    """Return one cycle of imports, wherever in a module they stand, or nothing."""
    modules = list(modules)
    known = {module.name for module in modules}
    graph = {}
    for module in modules:
        wanted = [(t.target, f"{t.target}.{t.name}") for t in every_import(module)]
        graph[module.name] = {inner if inner in known else target for target, inner in wanted}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_imports_itself_through_others():
    assert cycle(library()) == []


@pytest.mark.parametrize(
    "last",
    [
        "import castalia.nn.a",
        "def f():\n    import castalia.nn.a",
        "if TYPE_CHECKING:\n    from castalia.nn.a import A",
    ],
    ids=["at the top", "in a function", "for type checkers"],
)
def test_a_cycle_is_found_wherever_its_imports_stand(last):
    a = module("castalia.nn.a", "from castalia.nn import b")
    b = module("castalia.nn.b", "from castalia.nn.c import f")
    c = module("castalia.nn.c", last)
    assert set(cycle([a, b, c])) == {"castalia.nn.a", "castalia.nn.b", "castalia.nn.c"}
    assert cycle([a, b, module("castalia.nn.c", "import torch")]) == []


def test_a_file_that_imports_its_own_package_is_a_cycle():
    package = module("castalia.nn", "from castalia.nn.a import f", package=True)
    assert cycle([package, module("castalia.nn.a", "from castalia.nn import g")])


# Start-up time needs them there: the command line, and packages that find their names when asked.
LATE = {"cli", "doctor", "__main__", ""}


def late_imports(modules: Iterable[Module]) -> list[str]:
    """List imports of the library inside functions."""
    return [
        f"{module.name}:{taken.line}: imports `{taken.target}` late"
        for module in modules
        if module.part not in LATE
        for taken in imports(module)
        if not taken.at_top
    ]


def test_imports_of_the_library_stand_at_the_top_of_a_file():
    assert late_imports(library()) == []


def test_a_late_import_is_found_and_that_of_another_library_is_not():
    late = "def f():\n    from castalia.nn import b"
    assert len(late_imports([module("castalia.nn.a", late)])) == 1
    assert late_imports([module("castalia.cli.a", late)]) == []
    assert late_imports([module("castalia.nn.a", "def f():\n    import torch")]) == []


# ---- names of files ----

# Gerunds by which the field calls the thing itself.
FIELD = {
    "bagging", "decoding", "denoising", "early_stopping", "lightning", "negative_sampling",
    "not_training", "polynomial_overfitting", "positional_encoding", "pruning", "sampling",
    "testing", "training", "weight_scaling",
}  # fmt: skip


def shared_names(modules: Iterable[Module]) -> list[str]:
    """List the file names that two or more modules have."""
    names: dict[str, list[str]] = {}
    for module in modules:
        last = module.name.rpartition(".")[2]
        if not module.package and last != "__main__":
            names.setdefault(last, []).append(module.name)
    return [f"{name}: {', '.join(found)}" for name, found in names.items() if len(found) > 1]


def gerunds(modules: Iterable[Module]) -> list[str]:
    """List modules named by what is done in them instead of what they hold."""
    names = [module.name.rpartition(".")[2] for module in modules]
    return [name for name in names if name.endswith("ing") and name not in FIELD]


def test_a_file_s_name_is_enough_without_its_folder():
    assert shared_names(library()) == []
    assert gerunds(library()) == []


def test_a_shared_name_and_a_gerund_are_found():
    assert shared_names([module("castalia.nn.a", ""), module("castalia.data.a", "")])
    assert shared_names([module("castalia.nn", "", True), module("castalia.data.nn", "")]) == []
    assert gerunds([module("castalia.nn.telling", "")]) == ["telling"]


# ---- words ----

NAMES = ("README", "ARCHITECTURE", "CONTRIBUTING", "ADDING_A_SYSTEM")
DOCUMENTS = [*(ROOT / f"{name}.md" for name in NAMES), *sorted((ROOT / "docs").rglob("*.md"))]


def banned_words(glossary: str) -> list[str]:
    """Read the table of prose of the glossary: the words to avoid."""
    section = glossary.split("## Prose", 1)[1].split("##", 1)[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("|")][2:]
    return [word.strip() for row in rows for word in row[2].split(",")]


BANNED = re.compile(
    rf"\b({'|'.join(banned_words((ROOT / 'GLOSSARY.md').read_text(encoding='utf-8')))})\b", re.I
)
# Titles of papers and other people's names are quoted as they are.
QUOTED = re.compile(r"Reference|another look at the jackknife", re.I)


def unwanted(text: str) -> list[str]:
    """List the words that the glossary has another word for, with their lines."""
    return [
        f"{number}: {found.group(0)}"
        for number, line in enumerate(text.splitlines(), 1)
        if not QUOTED.search(line)
        for found in BANNED.finditer(line)
    ]


@pytest.mark.parametrize("folder", sorted({part(name) for name in FILES} - {""}))
def test_the_library_speaks_the_field_s_words(folder):
    files = [
        f for f in SOURCE.rglob("*.py") if f.relative_to(SOURCE).parts[0].split(".")[0] == folder
    ]
    found = {str(f): unwanted(f.read_text(encoding="utf-8")) for f in files}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_documents_speak_the_field_s_words(document):
    assert unwanted(document.read_text(encoding="utf-8")) == []


def test_a_banned_word_is_found_and_a_title_is_not():
    assert unwanted("the loss is told here") == ["1: told"]
    assert unwanted("Reference: 1979, Efron, another look at the jackknife") == []


# ---- forbidden statements ----


def forbidden(modules: Iterable[Module]) -> list[str]:
    """List asserts, prints, relative imports and star imports."""
    faults = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Assert):
                faults.append(f"{module.name}:{node.lineno}: assert")
            elif isinstance(node, ast.Name) and node.id in {"print", "pprint"}:
                faults.append(f"{module.name}:{node.lineno}: {node.id}")
            elif isinstance(node, ast.ImportFrom) and node.level:
                faults.append(f"{module.name}:{node.lineno}: relative import")
            elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                faults.append(f"{module.name}:{node.lineno}: star import")
    return faults


def test_the_library_neither_asserts_nor_prints_nor_imports_vaguely():
    assert forbidden(library()) == []


@pytest.mark.parametrize(
    "source",
    [
        "assert True",
        "def f():\n    print('x')",
        "show = print",
        "from . import a",
        "from .a import b",
        "from castalia.nn import *",
    ],
)
def test_a_forbidden_statement_is_found(source):
    assert len(forbidden([module("castalia.cli.app", source)])) == 1


def test_printing_through_a_console_passes():
    source = "'''print(x); assert y'''\nconsole.print('x')\ntyper.echo('x')"
    assert forbidden([module("castalia.cli.app", source)]) == []


# ---- a light start ----


def loaded_by(code: str, watched: Iterable[str] = HEAVY) -> list[str]:
    """Run code in a fresh interpreter and list which of the watched packages it imported."""
    ending = f"\nimport json, sys\nseen = [p for p in {list(watched)!r} if p in sys.modules]"
    ending += "\nsys.stderr.write('\\n' + json.dumps(seen))"
    done = subprocess.run(
        [sys.executable, "-c", code + ending],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def test_importing_castalia_imports_nothing_heavy():
    assert loaded_by("import castalia, castalia.catalog.course") == []


def test_importing_the_command_line_imports_nothing_heavy():
    assert loaded_by("from castalia.cli import main") == []


def test_the_help_of_the_command_line_imports_nothing_heavy():
    code = """
        import sys
        from castalia.cli import main
        sys.argv = ["castalia", "--help"]
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
    """
    assert loaded_by(dedent(code)) == []


def test_an_import_that_happened_is_seen():
    assert loaded_by("import wave", ["wave", "chunk"]) == ["wave"]


# ---- names and docstrings ----


def public_definitions(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [n for n in tree.body if isinstance(n, kinds) and not n.name.startswith("_")]


def declared(tree: ast.Module) -> list[str] | None:
    """Return the literal names of `__all__`; None where there is no `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [n.value for n in getattr(node.value, "elts", []) if isinstance(n, ast.Constant)]
    return None


def bound(tree: ast.Module) -> set[str]:
    """Return the names a module binds when it is imported."""
    names = set()
    for node, at_top in walk(tree):
        if not at_top:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def undeclared(modules: Iterable[Module]) -> list[str]:
    """List modules without docstring or `__all__`, and names of `__all__` that nothing binds."""
    faults = []
    for module in modules:
        if not ast.get_docstring(module.tree):
            faults.append(f"{module.name}: has no docstring")
        names, here = declared(module.tree), bound(module.tree)
        reexports = module.package and any(t.name and t.at_top for t in imports(module))
        if names is None and (public_definitions(module.tree) or reexports):
            faults.append(f"{module.name}: has public names but no `__all__`")
        if "__getattr__" not in here:
            faults += [f"{module.name}: `{n}` of `__all__`" for n in names or () if n not in here]
    return faults


def test_every_module_has_a_docstring_and_says_what_is_public():
    assert undeclared(library()) == []


@pytest.mark.parametrize(
    "source, package, said",
    [
        ("X = 1", False, "has no docstring"),
        ("'''D.'''\ndef f(): ...", False, "no `__all__`"),
        ("'''D.'''\nclass F: ...", False, "no `__all__`"),
        ("'''D.'''\nfrom castalia.nn.a import f", True, "no `__all__`"),
        ("'''D.'''\n__all__ = ['g']\ndef f(): ...", False, "`g` of `__all__`"),
        ("'''D.'''\n__all__ = ['g']\ndef f():\n    g = 1", False, "`g` of `__all__`"),
    ],
)
def test_a_module_that_hides_what_is_public_is_found(source, package, said):
    (fault,) = undeclared([module("castalia.nn.a", source, package)])
    assert said in fault


@pytest.mark.parametrize("name", [name for name, file in FILES.items() if file.stem == "__init__"])
def test_every_name_of_a_package_resolves(name):
    package = importlib.import_module(name)
    assert [n for n in getattr(package, "__all__", ()) if not hasattr(package, n)] == []


def undocumented(modules: Iterable[Module]) -> list[str]:
    """List public classes and functions without a docstring."""
    return [
        f"{module.name}:{node.lineno}: `{node.name}`"
        for module in modules
        for node in public_definitions(module.tree)
        if not ast.get_docstring(node)
    ]


def test_every_public_class_and_function_has_a_docstring():
    assert undocumented(library()) == []


def test_a_missing_docstring_is_found():
    bad = module(
        "castalia.nn.a", "def f(): ...\nclass C: ...\ndef g():\n    '''D.'''\ndef _h(): ..."
    )
    assert undocumented([bad]) == ["castalia.nn.a:1: `f`", "castalia.nn.a:2: `C`"]


# ---- one word for one thing ----


def synonyms(text: str) -> dict[str, str]:
    """Read the table of parameters of the glossary: a word to avoid, and the one to write."""
    table = text.split("## Parameters")[1].split("\n## ")[0]
    found = {}
    for line in table.splitlines():
        cells = [re.findall(r"`(\w+)`", cell) for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and cells[0]:
            found.update(dict.fromkeys(cells[2], " or ".join(cells[0])))
    return found


SYNONYMS = synonyms((ROOT / "GLOSSARY.md").read_text(encoding="utf-8"))


def strange_words(owner: str, parameters: Iterable[str]) -> list[str]:
    """List the parameters for which the glossary has another word."""
    faults = []
    for name in parameters:
        if name in SYNONYMS:
            faults.append(f"{owner}: `{name}`; the glossary writes `{SYNONYMS[name]}`")
        elif name.startswith("num_"):
            faults.append(f"{owner}: `{name}`; counts are `n_*`")
    return faults


def fields(node: ast.ClassDef) -> list[str]:
    """Return the constructor parameters of a class, from `__init__` or its dataclass fields."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return [a.arg for a in (*item.args.args[1:], *item.args.kwonlyargs)]
    if "dataclass" not in " ".join(ast.unparse(d) for d in node.decorator_list):
        return []
    annotated = [i for i in node.body if isinstance(i, ast.AnnAssign)]
    return [ast.unparse(i.target) for i in annotated if "ClassVar" not in ast.unparse(i.annotation)]


def strange_constructors(modules: Iterable[Module]) -> list[str]:
    """List strange words among the constructor parameters of networks and estimators."""
    return [
        fault
        for module in modules
        if module.part in {"nets", "base", "models"}
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for fault in strange_words(f"{module.name}.{node.name}", fields(node))
    ]


def catalogued() -> Iterator[type]:
    """Yield the catalogue's classes whose package is in the tree; test_catalog wants them all."""
    there = {name for name, file in FILES.items() if file.stem == "__init__"}
    for record in SYSTEMS.values():
        package, attribute = record.path.split(":")
        if package in there:
            yield getattr(importlib.import_module(package), attribute)


def test_the_glossary_rejects_the_usual_synonyms():
    usual = (
        "num_layers n_layers hidden_size learning_rate n_epochs max_epochs max_iter dropout_rate"
    )
    assert set(usual.split()) | {"n_heads", "seed"} <= set(SYNONYMS)
    assert SYNONYMS["n_heads"] == "heads"
    assert not set(SYNONYMS) & set(SYNONYMS.values())


def test_estimators_of_the_catalogue_use_the_words_of_the_glossary():
    constructors = {cls.__name__: inspect.signature(cls).parameters for cls in catalogued()}
    assert [f for owner, names in constructors.items() for f in strange_words(owner, names)] == []


def test_constructors_of_networks_and_estimators_use_the_words_of_the_glossary():
    assert strange_constructors(library()) == []


@pytest.mark.parametrize(
    "source",
    [
        "class Net:\n    def __init__(self, inputs, *, num_layers=2): ...",
        "@dataclass(kw_only=True)\nclass Net:\n    learning_rate: float = 0.1\n    hidden: int = 3",
        "class Net:\n    def __init__(self, num_things): ...",
    ],
)
def test_a_synonym_is_found(source):
    assert len(strange_constructors([module("castalia.nets.a", source)])) == 1
    assert strange_constructors([module("castalia.optim.a", source)]) == []


def test_words_of_the_glossary_pass():
    source = """
        @dataclass
        class Net:
            adapter: ClassVar[type] = None
            seed: ClassVar[int] = 0
            hidden: tuple[int, ...] = (64,)
            n_classes: int = 2
    """
    assert strange_constructors([module("castalia.models.dense.mlp_estimators", source)]) == []
