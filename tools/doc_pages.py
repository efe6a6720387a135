"""Write the sources of the documentation site into ``build/docs``, for Sphinx to render.

The Markdown of the project is copied with what it links to, so that links hold as they stand.
The programs of ``docs/examples`` are run by sphinx-gallery. Written from the library itself are a
page for every package with its public names, the models, the course with the test of every row, and
the gallery of the experiments.
"""

import argparse
import html
import importlib
import inspect
import os
import pkgutil
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import castalia
from castalia.catalog import SYSTEMS
from castalia.catalog.course import course_table, load_course

__all__ = ["main", "write_pages"]

ROOT = Path(__file__).parents[1]
PROJECT = (
    *("README", "ARCHITECTURE", "ADDING_A_SYSTEM", "CONTRIBUTING", "GLOSSARY", "CHANGELOG"),
    "SECURITY",
)
RESULTS = ("benchmarks/RESULTS.md", "evidence/RESULTS.md")
ALONE = ("castalia.errors", "castalia.protocols")  # modules that are public as they are
GUIDES = {
    "User guide": (
        "tutorial tables images text sequences graphs-networks generative probabilistic paradigms "
        "explain optimizers inside graphs lab"
    ),
    "Tools": "doctor findings/index studio serve export scale",
    "About": "comparison",
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def write_pages(out: Path) -> None:
    """Write every source into a folder that is replaced."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "reference").mkdir(parents=True)
    shutil.copyfile(ROOT / "docs" / "conf.py", out / "conf.py")
    shutil.copytree(ROOT / "docs" / "theme", out / "theme")
    shutil.copytree(ROOT / "docs" / "examples", out / "examples-source")
    files = [ROOT / f"{name}.md" for name in PROJECT]
    files += [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in RESULTS)]
    for file in files:
        _copy_guide(file, out)
    home = (out / "docs" / "index.md").read_text(encoding="utf-8")
    (out / "docs" / "index.md").unlink()
    (out / "index.md").write_text(_home(home), encoding="utf-8")
    _menu(out)
    _findings(out / "docs" / "findings")
    modules = list(_modules())
    homes = _homes(modules)
    for module in modules:
        _write(out, module.__name__ + ".rst", _package(module, homes))
    _write(out, "index.rst", _reference_index())
    for name, text in {"models": _models(), "course": _course(), "gallery": _gallery()}.items():
        _write(out, f"{name}.md", text)


def _write(out: Path, name: str, text: str) -> None:
    (out / "reference" / name).write_text(text + "\n", encoding="utf-8")


# ---- guides ----


def _copy_guide(file: Path, out: Path) -> None:
    """Copy a page and the files that it links to; a folder of the source is no link any more."""

    def kept(found: re.Match[str]) -> str:
        target = found[3].partition("#")[0]
        there = Path(os.path.normpath(file.parent / target))
        if not target or ":" in target or not there.exists():
            return found[0]
        if there.is_dir():
            return found[2]
        if there.suffix != ".md":
            copy = out / there.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(there, copy)
        return found[0]

    copy = out / file.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(_LINK.sub(kept, file.read_text(encoding="utf-8")), encoding="utf-8")


def _home(text: str) -> str:
    """Return the first page: the index of the guides, seen from one folder above, and the menu."""
    moved = _LINK.sub(lambda f: f"{f[1]}[{f[2]}]({os.path.normpath('docs/' + f[3])})", text)
    looked = ["examples/index"]
    looked += [f"reference/{page}" for page in ("models", "gallery", "course", "index")]
    return f"{moved}\n\n{_toctree(['user-guide', 'tools', *looked, 'about'], ':hidden:')}"


def _menu(out: Path) -> None:
    """Write the pages of the menu that list others."""
    pages = {name: [f"docs/{page}" for page in found.split()] for name, found in GUIDES.items()}
    pages["User guide"] = ["README", *pages["User guide"]]
    pages["About"] += [*(name.removesuffix(".md") for name in RESULTS), *PROJECT[1:]]
    for name, listed in pages.items():
        text = f"# {name}\n\n{_toctree(listed, ':maxdepth: 1')}\n"
        (out / f"{_slug(name)}.md").write_text(text, encoding="utf-8")


def _findings(folder: Path) -> None:
    """Put the page of every finding below their index, so that it has a place in the menu."""
    pages = sorted(page.stem for page in folder.glob("CST*.md"))
    with (folder / "index.md").open("a", encoding="utf-8") as index:
        index.write(f"\n{_toctree(pages, ':hidden:')}\n")


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")


def _toctree(pages: Iterable[str], option: str) -> str:
    return "\n".join(["```{toctree}", option, "", *pages, "```"])


# ---- packages ----


def _modules() -> Iterator[ModuleType]:
    """Yield every package with a file, and the public modules beside them."""
    yield castalia
    for found in pkgutil.walk_packages(castalia.__path__, "castalia."):
        if found.ispkg or found.name in ALONE:
            yield importlib.import_module(found.name)


def _public(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a package; one without ``__all__`` has those of its modules."""
    if module is castalia:
        return {}
    if hasattr(module, "__all__"):
        return {name: getattr(module, name) for name in module.__all__}
    found = {}
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not inner.ispkg and not inner.name.startswith("_"):
            file = importlib.import_module(f"{module.__name__}.{inner.name}")
            names = getattr(file, "__all__", ())
            found |= {f"{inner.name}.{name}": getattr(file, name) for name in names}
    return found


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def _homes(modules: Iterable[ModuleType]) -> dict[int, str]:
    """Return under which name an object is described: systems as in the catalogue, else first."""
    found = {}
    for record in SYSTEMS.values():
        package, _, name = record.path.partition(":")
        found[id(getattr(importlib.import_module(package), name))] = f"{package}.{name}"
    for module in modules:
        for name, thing in _public(module).items():
            found.setdefault(id(thing), f"{module.__name__}.{name}")
    return found


def _package(module: ModuleType, homes: dict[int, str]) -> str:
    """Return the page of a package: what it is for, and every public name with its docstring."""
    name = module.__name__
    parts = [_title(name), f".. automodule:: {name}\n   :no-members:\n   :no-index:"]
    inside = [
        f"   {name}.{found.name}"
        for found in pkgutil.iter_modules(getattr(module, "__path__", ()))
        if found.ispkg or f"{name}.{found.name}" in ALONE
    ]
    if inside:
        parts.append("\n".join([".. toctree::", "   :maxdepth: 1", "", *inside]))
    if module is castalia:
        kept = [n for n in castalia.__all__ if n not in SYSTEMS and n != "__version__"]
        parts += [f".. autofunction:: castalia.{n}" for n in kept if n in ("log", "read")]
    for each, thing in _public(module).items():
        home = homes[id(thing)]
        plain = inspect.isclass(thing) or inspect.isroutine(thing)
        if plain and not str(thing.__module__).startswith("castalia"):
            parts.append(f"* ``{each}`` is ``{thing.__module__}.{thing.__qualname__}``")
        elif home == f"{name}.{each}":
            parts.append(_entry(name, each, thing))
        else:
            parts.append(f"* ``{each}``: :py:obj:`{home}`")
    return "\n\n".join(parts)


def _entry(package: str, name: str, thing: Any) -> str:
    """Return the directive of one public name; a class shows its methods as a list."""
    head = f"\n{_title(name.rpartition('.')[2], '-')}\n"
    if inspect.isclass(thing):
        return f"{head}.. autoclass:: {package}.{name}\n{_methods(thing)}"
    kind = "function" if callable(thing) else "data"
    return f"{head}.. auto{kind}:: {package}.{name}"


def _methods(cls: type) -> str:
    """List the public methods that a class has from the library itself, with their first lines."""
    owners = [owner for owner in cls.__mro__ if owner.__module__.startswith("castalia")]
    names = dict.fromkeys(name for owner in owners for name in vars(owner) if name[0] != "_")
    rows = []
    for name in names:
        thing = inspect.getattr_static(cls, name)
        thing = getattr(thing, "__func__", thing)
        if inspect.isfunction(thing) or isinstance(thing, property):
            said = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
            rows.append(f"   * - ``{name}{_signature(thing)}``\n     - {said}")
    if not rows:
        return ""
    head = "\n.. list-table::\n   :widths: 45 55\n   :class: methods\n\n"
    return head + "\n".join(rows)


def _signature(thing: Any) -> str:
    if isinstance(thing, property):
        return ""
    bare = inspect.Parameter.empty
    found = inspect.signature(thing)
    kept = [p.replace(annotation=bare) for p in found.parameters.values()]
    kept = kept[1:] if kept and kept[0].name in ("self", "cls") else kept
    return str(found.replace(parameters=kept, return_annotation=bare))


def _reference_index() -> str:
    tree = [".. toctree::", "   :maxdepth: 2", "", "   castalia"]
    said = "Every public name with its docstring, by package, from the ground up."
    return "\n".join([_title("Reference"), said, "", *tree])


# ---- tables ----


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(heads)]
    cells += [["---"] * len(cells[0]), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in cells)


def _models() -> str:
    """Return every system of the catalogue, by family."""
    families: dict[str, list[Any]] = {}
    for record in SYSTEMS.values():
        families.setdefault(record.family, []).append(record)
    parts = [f"# Models\n\n{len(SYSTEMS)} systems; `castalia models` lists them in a terminal."]
    for family, records in families.items():
        rows = [
            (
                f"{{py:class}}`{record.name} <{record.path.replace(':', '.')}>`",
                ", ".join(record.tasks),
                record.data,
                f"{record.summary}. {record.reference}",
            )
            for record in records
        ]
        parts.append(f"## {family.capitalize()}\n\n")
        parts.append(_table(("Name", "Tasks", "Data", "What it is"), rows))
    return "\n\n".join(parts)


def _course() -> str:
    """Return every row of the course with the object that does it and the test that proves it."""
    rows = load_course(ROOT / "course.toml")
    proven = sum(not row.open for row in rows)
    parts = [f"# The course\n\n{proven} of {len(rows)} rows are proven by a test."]
    for area in course_table(rows):
        inside = [
            (
                f'<span class="whole">{row.id}</span>',
                row.name,
                _breaking(row.object or ""),
                "<br>".join(map(_breaking, row.tests)) or "open",
            )
            for row in rows
            if row.area == area["area"]
        ]
        parts += [f"## {area['area']}", _table(("Row", "Name", "Does it", "Proof"), inside)]
    return "\n\n".join(parts)


def _breaking(name: str) -> str:
    """Return a long name as code that may go on in a new line after each of its parts."""
    parts = re.sub("([/._:]+)", r"\1<wbr>", html.escape(name))
    return f"<code>{parts}</code>" if name else ""


def _gallery() -> str:
    """Return the figures of the guides, each with the sentence under it and its command."""
    text = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
    parts = ["# Gallery\n\nFigures of the [experiments](../docs/lab.md); each is one command."]
    for chapter in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, body = chapter.partition("\n")
        cards = [
            f"```{{figure}} ../docs/{path}\n:alt: {alt}\n"
            f":target: ../docs/lab.html#{anchor}\n\n{alt}\n```"
            for anchor, alt, path in re.findall(
                r"^### (\S+)\n(?:(?!^###).)*?!\[([^\]]*)\]\(([^)]+)\)", body, flags=re.M | re.S
            )
        ]
        if cards:
            parts += [f"## {title}", "::::{container} gallery", *cards, "::::"]
    return "\n\n".join(parts)


def main(arguments: list[str] | None = None) -> None:
    """Write the sources."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="folder to write")
    write_pages(parser.parse_args(arguments).out)


if __name__ == "__main__":
    main()
