"""The sources of the documentation are made from what is there; Sphinx renders them apart."""

import ast
import html
import importlib.util
import re
from pathlib import Path

import pytest
from tests.documents import missing_links

from castalia.catalog import SYSTEMS
from castalia.catalog.course import load_course

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    file = ROOT / "tools" / "doc_pages.py"
    spec = importlib.util.spec_from_file_location("doc_pages_under_test", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = tmp_path_factory.mktemp("docs") / "source"
    module.write_pages(out)
    return out


def read(pages, name):
    return (pages / name).read_text(encoding="utf-8")


def test_every_package_has_a_page_with_its_public_names(pages):
    errors = read(pages, "reference/castalia.errors.rst")
    assert ".. autoclass:: castalia.errors.Diverged" in errors
    assert "resolve_device" in read(pages, "reference/castalia.utils.rst")
    dense = read(pages, "reference/castalia.models.dense.rst")
    assert ".. autoclass:: castalia.models.dense.MLPClassifier" in dense
    assert "``predict(X)``" in dense
    root = read(pages, "reference/castalia.rst")
    assert "   castalia.models\n" in root
    assert "   castalia.errors\n" in root


def test_every_model_has_an_entry_that_its_row_links_to(pages):
    models = read(pages, "reference/models.md")
    for name, record in SYSTEMS.items():
        package, _, attribute = record.path.partition(":")
        assert f"`{name} <{package}.{attribute}>`" in models
        reference = read(pages, f"reference/{package}.rst")
        assert f".. autoclass:: {package}.{attribute}\n" in reference, name


def test_every_row_of_the_course_has_its_object_and_its_test(pages):
    course = html.unescape(read(pages, "reference/course.md").replace("<wbr>", ""))
    for row in load_course(ROOT / "course.toml"):
        (line,) = re.findall(rf"^\| .*>{re.escape(row.id)}</span> \|.*$", course, flags=re.M)
        assert f"<code>{row.object}</code>" in line or not row.object
        assert all(f"<code>{test}</code>".replace("|", "\\|") in line for test in row.tests)


def test_the_gallery_has_every_figure_of_the_lab(pages):
    gallery = read(pages, "reference/gallery.md")
    figures = {path.name for path in (ROOT / "docs" / "images" / "lab").glob("*.png")}
    assert {Path(p).name for p in re.findall(r"\{figure\} (\S+)", gallery)} == figures
    assert all((pages / "docs" / "images" / "lab" / name).is_file() for name in figures)


def test_the_menu_has_every_page_and_nothing_else(pages):
    menu = "".join(read(pages, f"{n}.md") for n in ("index", "user-guide", "tools", "about"))
    listed = re.findall(r"^(?:docs|reference|benchmarks|evidence)/\S+$", menu, re.M)
    there = [pages / f"{name}.md" for name in listed]
    assert [p.name for p in there if not p.is_file() and not p.with_suffix(".rst").is_file()] == []
    guides = {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")} - {"docs/index"}
    assert guides <= set(listed)
    index = read(pages, "docs/findings/index.md").rpartition(":hidden:")[2]
    assert re.findall(r"^CST\d+$", index, re.M) == sorted(
        path.stem for path in (ROOT / "docs" / "findings").glob("CST*.md")
    )


@pytest.mark.parametrize(
    "guide", sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
)
def test_no_link_of_a_guide_leads_nowhere(guide):
    assert missing_links(guide) == []


GUIDES = sorted(path.name for path in ROOT.glob("*.md"))


@pytest.mark.parametrize("guide", GUIDES)
def test_python_in_the_guides_can_be_parsed(guide):
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / guide).read_text("utf-8"), flags=re.M | re.S
    )
    for block in blocks:
        ast.parse(block)


def test_the_network_of_the_guide_passes_the_tests_of_the_guide():
    text = (ROOT / "ADDING_A_SYSTEM.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    network = next(block for block in blocks if block.startswith('"""Maxout network'))
    tests = next(block for block in blocks if block.startswith("import torch"))
    names: dict = {}
    exec(network, names)
    exec(re.sub(r"^from castalia.*\n", "", tests, flags=re.M), names)
    checks = [names[name] for name in names if name.startswith("test_")]
    assert len(checks) == 3
    for check in checks:
        check()
