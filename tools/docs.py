"""Build the HTML documentation into ``site/``.

One page a package with the docstrings of its public names, taken from the live objects; the models
and the course as tables; the Markdown guides of the project. A link that leads nowhere is an error.
"""

import argparse
import html
import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

import castalia
from castalia.catalog import SYSTEMS
from castalia.catalog.course import CourseRow, course_table, load_course
from castalia.utils.text import shorten

__all__ = ["Page", "broken_links", "build", "docstring", "main", "markdown", "sections"]

ROOT = Path(__file__).parents[1]
THEME = ROOT / "docs" / "theme"
GUIDES = ("README", "ARCHITECTURE", "ADDING_A_SYSTEM", "CONTRIBUTING", "GLOSSARY", "CHANGELOG")
ALONE = ("castalia.errors", "castalia.protocols")  # modules that are public as they are
LISTS = {"Parameters", "Attributes", "Returns", "Yields", "Raises"}
LINES = {"References", "See Also", "Shapes"}  # every line stands alone
LIGHT, DARK = "friendly", "github-dark"


@dataclass
class Page:
    """One page of the site."""

    file: str
    title: str
    body: str
    group: str = ""
    label: str = ""
    depth: int = 0
    names: dict[str, str] = field(default_factory=dict)


# ---- Markdown ----


def _code(source: str, language: str, _attributes: str = "") -> str:
    """Colour a block of code."""
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    return highlight(source, lexer, HtmlFormatter(nowrap=True))


def _heading_id(text: str) -> str:
    """Return the anchor of a heading, made as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def markdown(text: str, link: Any = None) -> str:
    """Render Markdown; ``link`` maps each target to the one to write, or None to write no link."""
    parser = MarkdownIt("commonmark", {"html": False, "highlight": _code}).enable("table")
    tokens = parser.parse(text)
    for heading, inline in zip(tokens, tokens[1:], strict=False):
        if heading.type == "heading_open":
            heading.attrSet("id", _heading_id(inline.content.replace("`", "")))
    for token in tokens:
        if link is not None and token.children:
            token.children = _relink(token.children, link)
    rendered = parser.renderer.render(tokens, parser.options, {})
    return re.sub(r"(<table>.*?</table>)", r'<div class="scroll">\1</div>', rendered, flags=re.S)


def _relink(tokens: list[Any], link: Any) -> list[Any]:
    """Rewrite the targets of links and images."""
    kept, dropped = [], []
    for token in tokens:
        attribute = {"link_open": "href", "image": "src"}.get(token.type)
        if attribute:
            target = link(str(token.attrGet(attribute)))
            if token.type == "link_open":
                dropped.append(target is None)
            token.attrSet(attribute, target or "")
        if token.type == "link_open" and dropped[-1]:
            continue
        if token.type == "link_close" and dropped.pop():
            continue
        kept.append(token)
    return kept


# ---- docstrings ----


def sections(text: str) -> list[tuple[str, str]]:
    """Cut a numpydoc docstring at its headings; the text before the first one has no name."""
    pieces = re.split(r"^(\S[^\n]*)\n-{3,}[ ]*$", inspect.cleandoc(text), flags=re.M)
    found = [("", pieces[0].strip())]
    found += [
        (name.strip(), body.strip("\n")) for name, body in zip(*[iter(pieces[1:])] * 2, strict=True)
    ]
    return [(name, body) for name, body in found if name or body]


def _entries(body: str) -> list[tuple[str, str]]:
    """Cut a list section into names and what is said of them."""
    pieces = re.split(r"^(\S[^\n]*)$", body, flags=re.M)[1:]
    pairs = zip(*[iter(pieces)] * 2, strict=True)
    return [(name.strip(), inspect.cleandoc(said)) for name, said in pairs]


def _prose(text: str) -> str:
    """Render running text, with ``>>>`` blocks as code."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        doctest = block.lstrip().startswith(">>>")
        blocks.append(f"```pycon\n{inspect.cleandoc(block)}\n```" if doctest else block)
    return markdown("\n\n".join(blocks))


def docstring(thing: Any) -> str:
    """Render the docstring of an object, with the types of its annotations."""
    types = _types(thing)
    out = []
    for name, body in sections(inspect.getdoc(thing) or ""):
        if name:
            out.append(f'<p class="field">{html.escape(name)}</p>')
        if name in LISTS and not body.startswith(">>>"):
            out += [
                "<dl>",
                *(_entry(entry, said, types) for entry, said in _entries(body)),
                "</dl>",
            ]
        elif body:
            out.append(_prose(body.replace("\n", "  \n") if name in LINES else body))
    return "\n".join(out)


def _entry(name: str, said: str, types: dict[str, str]) -> str:
    name, _, written = name.partition(" : ")
    note = types.get(name, written)
    kind = f' <span class="type">{html.escape(note)}</span>' if note else ""
    return f"<dt><code>{html.escape(name)}</code>{kind}</dt><dd>{_prose(said)}</dd>"


def _types(thing: Any) -> dict[str, str]:
    """Return the annotations of an object's parameters as text."""
    notes = dict(getattr(thing, "__annotations__", {}) or {})
    if inspect.isclass(thing) and "__init__" in vars(thing):
        notes |= getattr(thing.__init__, "__annotations__", {})
    return {name: _type(note) for name, note in notes.items()}


def _type(note: Any) -> str:
    if isinstance(note, str):
        return note
    return inspect.formatannotation(note).replace("collections.abc.", "").replace("typing.", "")


def _signature(thing: Any) -> str:
    """Return the parameters of a callable without their types, which stand below."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    bare = inspect.Parameter.empty
    parameters = [p.replace(annotation=bare) for p in signature.parameters.values()]
    if parameters and parameters[0].name in {"self", "cls"}:
        parameters = parameters[1:]
    shown = signature.replace(parameters=parameters, return_annotation=bare)
    return str(shown).replace("<factory>", "…")


# ---- packages ----


def _modules() -> Iterator[ModuleType]:
    """Yield every package with a file, and the public modules beside them."""
    yield castalia
    for found in pkgutil.walk_packages(castalia.__path__, "castalia."):
        if found.ispkg or found.name in ALONE:
            yield importlib.import_module(found.name)


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public names of a package; one without ``__all__`` shows those of its modules."""
    if hasattr(module, "__all__"):
        yield from ((name, getattr(module, name)) for name in module.__all__)
        return
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not found.ispkg and not found.name.startswith("_"):
            inner = importlib.import_module(f"{module.__name__}.{found.name}")
            names = getattr(inner, "__all__", ())
            yield from ((f"{found.name}.{name}", getattr(inner, name)) for name in names)


def _method(name: str, thing: Any) -> str:
    summary = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    signature = "" if isinstance(thing, property) else _signature(thing)
    head = (
        f'<code>{html.escape(name)}<span class="signature">{html.escape(signature)}</span></code>'
    )
    return f"<dt>{head}</dt><dd>{_prose(summary)}</dd>"


def _methods(cls: type) -> str:
    """Render the public methods that a class has from the library itself."""
    owners = [owner for owner in cls.__mro__ if owner.__module__.startswith("castalia")]
    names = dict.fromkeys(name for owner in owners for name in vars(owner) if name[0] != "_")
    things = [(name, inspect.getattr_static(cls, name)) for name in names]
    things = [(name, getattr(thing, "__func__", thing)) for name, thing in things]
    shown = [p for p in things if inspect.isfunction(p[1]) or isinstance(p[1], property)]
    if not shown:
        return ""
    return "\n".join(
        ['<p class="field">Methods</p><dl>', *(_method(*pair) for pair in shown), "</dl>"]
    )


def _section(name: str, thing: Any) -> str:
    """Render one public name."""
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "value"
    signature = _signature(thing) if callable(thing) else ""
    title = f'{html.escape(name)}<span class="signature">{html.escape(signature)}</span>'
    body = docstring(thing) + (_methods(thing) if kind == "class" else "")
    if kind == "value":
        text = ", ".join(map(str, thing)) if isinstance(thing, dict) else repr(thing)
        body = f"<p><code>{html.escape(shorten(text, 300))}</code></p>"
    head = f'<h2><code>{title}</code> <span class="kind">{kind}</span></h2>'
    return f'<section class="name" id="{html.escape(name)}">{head}\n{body}</section>'


def _package_page(module: ModuleType) -> Page:
    """Render a package; names of the root live in the packages they come from."""
    depth = min(module.__name__.count("."), 2)
    file = f"{module.__name__}.html"
    names = {} if module is castalia else dict(_public(module))
    body = f"<h1><code>{module.__name__}</code></h1>\n{docstring(module)}"
    if module is castalia:
        body += "<p>" + " ".join(f"<code>{name}</code>" for name in castalia.__all__) + "</p>"
    body += "\n".join(_section(name, thing) for name, thing in names.items())
    anchors = {name.rpartition(".")[2]: f"{file}#{name}" for name in names}
    return Page(file, module.__name__, body, "Reference", module.__name__, depth, anchors)


# ---- tables and guides ----


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Render cells that are HTML already."""
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _models_page(pages: list[Page]) -> Page:
    known = {anchor for page in pages for anchor in page.names.values()}
    rows = []
    for record in SYSTEMS.values():
        target = record.path.replace(":", ".html#")
        name = f"<code>{html.escape(record.name)}</code>"
        name = f'<a href="{target}">{name}</a>' if target in known else name
        said = f"{html.escape(record.summary)}. {html.escape(record.reference)}"
        rows.append((name, ", ".join(record.tasks), record.data, record.tier, said))
    table = _table(("Name", "Tasks", "Data", "Tier", "What it is"), rows)
    return Page("models.html", "Models", f"<h1>Models</h1>\n{table}", "Start", "Models")


def _course_row(row: CourseRow) -> tuple[str, ...]:
    tests = "<br>".join(f"<code>{html.escape(test)}</code>" for test in row.tests)
    proof = tests or '<span class="open">open</span>'
    proof += f"<br>work of {html.escape(row.by)}" * bool(row.by)
    return (
        row.id,
        html.escape(row.name),
        f"<code>{html.escape(row.object)}</code>" * bool(row.object),
        proof,
    )


def _course_page() -> Page:
    rows = load_course(ROOT / "course.toml")
    shown = sum(bool(row.by) for row in rows)
    proven = sum(not row.open for row in rows) - shown
    said = f"{proven} of {len(rows)} rows are proven by a test"
    said += f", {shown} show the work of another library" * bool(shown)
    body = [f"<h1>The course</h1><p>{said}.</p>"]
    counts = []
    for area in course_table(rows):
        anchor = _heading_id(area["area"])
        bar = f'<progress value="{area["proven"]}" max="{area["rows"]}"></progress>'
        link = f'<a href="#{anchor}">{html.escape(area["area"])}</a>'
        counts.append((link, *(str(area[key]) for key in ("proven", "shown", "open")), bar))
    body.append(_table(("Area", "Proven", "Shown", "Open", ""), counts))
    for area in course_table(rows):
        inside = [_course_row(row) for row in rows if row.area == area["area"]]
        body.append(f'<h2 id="{_heading_id(area["area"])}">{html.escape(area["area"])}</h2>')
        body.append(_table(("Row", "Name", "Does it", "Proof"), inside))
    return Page("course.html", "The course", "\n".join(body), "Start", "The course")


def _guides(root: Path) -> dict[Path, str]:
    """Return the Markdown files of the project and the page each becomes."""
    files = [root / f"{name}.md" for name in GUIDES]
    files += sorted((root / "docs").glob("*.md"))
    pages = {file: f"{file.stem.lower()}.html" for file in files if file.is_file()}
    for file in sorted((root / "docs").glob("*/*.md")):  # a folder's index is named after it
        pages[file] = f"{file.parent.name if file.stem == 'index' else file.stem.lower()}.html"
    return pages


def _guide_page(file: Path, guides: dict[Path, str], out: Path) -> Page:
    def link(target: str) -> str | None:
        """Map a link of the source to a page, or copy the file it points at."""
        path, mark, anchor = target.partition("#")
        found = Path(os.path.normpath(file.parent / path))
        if not path or "://" in target or target.startswith("mailto:") or not found.exists():
            return target
        if found in guides:
            return guides[found] + mark + anchor
        if found.is_dir():
            return None
        copy = Path("files") / found.relative_to(ROOT)
        (out / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, out / copy)
        return copy.as_posix()

    text = file.read_text(encoding="utf-8")
    title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), file.stem)
    home = guides[file] == "index.html"
    label = "Home" if home else "Read me" if file.stem == "README" else title
    return Page(guides[file], title, markdown(text, link), _group(file), label)


def _group(file: Path) -> str:
    """Return the part of the menu; none for a page that the index of its folder leads to."""
    if file.stem in {"index", "README"} or file.parent.name == "docs":
        return "Start"
    return "" if file.parent.parent.name == "docs" else "Contribute"


# ---- the site ----


class _Links(HTMLParser):
    """Collects the anchors of a page and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in {"href", "src"} and value is not None:
                self.targets.add(value)


def broken_links(site: Path) -> list[str]:
    """List the links of a site to pages, files or anchors that are not in it."""
    pages = {
        file: _Links(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))
    }
    broken = []
    for file, links in pages.items():
        for target in sorted(links.targets):
            path, _, anchor = target.partition("#")
            there = (file.parent / path).resolve() if path else file
            if re.match(r"[a-z]+:", target):
                continue
            if not there.is_file() or (
                anchor and anchor not in getattr(pages.get(there), "anchors", ())
            ):
                broken.append(f"{file.relative_to(site)}: {target!r} leads nowhere")
    return broken


def _crosslink(body: str, names: dict[str, str]) -> str:
    """Turn the public names of classes that stand as code in the text into links."""

    def linked(found: re.Match[str]) -> str:
        target = names.get(found[1])
        return f'<a href="{target}">{found[0]}</a>' if target else found[0]

    return re.sub(r'(?<!">)<code>([A-Z]\w+)</code>', linked, body)


def build(out: Path) -> list[Page]:
    """Write the site into a folder, replacing an older site but nothing else."""
    out = out.resolve()
    if out.exists() and any(out.iterdir()) and not (out / "names.js").is_file():
        sys.exit(
            f"docs: `--out` must be a new folder or an older site; got {out}, which is neither."
        )
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    reference = [_package_page(module) for module in _modules()]
    guides = _guides(ROOT)
    pages = [_guide_page(file, guides, out) for file in guides]
    pages.sort(key=lambda page: page.file != "index.html")
    pages = [*pages, _models_page(reference), _course_page(), *reference]
    names = {name: target for page in reference for name, target in page.names.items()}
    template = jinja2.Template((THEME / "page.html").read_text(encoding="utf-8"))
    menu: dict[str, list[Page]] = {"Start": [], "Contribute": [], "Reference": []}
    for page in pages:
        if page.group:
            menu[page.group].append(page)
    for page in pages:
        page.body = _crosslink(page.body, names)
        text = template.render(page=page, menu=menu, version=castalia.__version__)
        (out / page.file).write_text(text, encoding="utf-8")
    (out / "names.js").write_text(f"const NAMES = {json.dumps(sorted(names.items()))};\n")
    (out / "style.css").write_text((THEME / "style.css").read_text() + _colours())
    shutil.copyfile(THEME / "search.js", out / "search.js")
    return pages


def _colours() -> str:
    """Return the colours of code in light and in dark."""
    light, dark = (HtmlFormatter(style=name).get_style_defs("pre") for name in (LIGHT, DARK))
    dark = f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
    return f"{light}\n{dark}\npre {{ background: var(--panel); }}\n"


def main(arguments: list[str] | None = None) -> int:
    """Build the site and return 1 if a link leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="folder to write")
    options = parser.parse_args(arguments)
    pages = build(options.out)
    broken = broken_links(options.out.resolve())
    for line in broken:
        print(line, file=sys.stderr)
    print(f"{len(pages)} pages in {options.out}; {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
