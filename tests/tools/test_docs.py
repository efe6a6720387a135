"""The documentation is built from what is there, and a link that leads nowhere is found."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def docs():
    file = ROOT / "tools" / "docs.py"
    spec = importlib.util.spec_from_file_location("docs_under_test", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def site(docs, tmp_path_factory):
    out = tmp_path_factory.mktemp("docs") / "site"
    docs.build(out)
    return out


def test_no_link_of_the_site_leads_nowhere(docs, site):
    assert docs.broken_links(site) == []


def test_every_package_has_a_page_with_its_docstrings(site):
    text = (site / "castalia.errors.html").read_text(encoding="utf-8")
    assert 'id="Diverged"' in text
    assert "Training produced a loss that is not a finite number." in text
    assert "resolve_device" in (site / "castalia.utils.html").read_text(encoding="utf-8")


def test_the_models_and_the_course_are_listed_whole(site):
    from castalia.catalog import SYSTEMS
    from castalia.catalog.course import load_course

    models, course = ((site / f"{n}.html").read_text("utf-8") for n in ("models", "course"))
    assert [name for name in SYSTEMS if f"<code>{name}</code>" not in models] == []
    assert [row.id for row in load_course() if f"<td>{row.id}</td>" not in course] == []


def test_links_between_guides_become_links_between_pages(site):
    text = (site / "contributing.html").read_text(encoding="utf-8")
    assert 'href="architecture.html"' in text
    assert ".md" not in re.sub(r"<(code|a)[^>]*>[^<]*</\1>", "", text)


def test_pages_of_a_folder_are_reached_from_its_index_and_not_from_the_menu(site):
    home, index = ((site / f"{n}.html").read_text("utf-8") for n in ("index", "findings"))
    assert 'href="findings.html"' in home
    assert 'href="cst101.html"' not in home
    assert 'href="cst101.html"' in index
    assert (site / "cst505.html").is_file()


def test_names_in_the_text_link_to_their_docstring(docs):
    names = {"Training": "castalia.train.html#Training"}
    body = '<code>Training</code> <a href="x"><code>Training</code></a> <code>other</code>'
    linked = docs._crosslink(body, names)
    assert linked.count(names["Training"]) == 1
    assert linked.startswith(f'<a href="{names["Training"]}">')


@pytest.mark.parametrize("target", ["gone.html", "b.html#gone", "#gone", "gone.css", "b.css#gone"])
def test_a_link_that_leads_nowhere_is_found(docs, tmp_path, target):
    (tmp_path / "a.html").write_text(f'<p id="here"><a href="{target}">x</a></p>')
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    (tmp_path / "b.css").write_text("")
    assert docs.broken_links(tmp_path) == [f"a.html: {target!r} leads nowhere"]


@pytest.mark.parametrize(
    "target", ["#here", "b.html", "b.html#there", "https://x.org/#y", "mailto:a@b"]
)
def test_a_link_that_leads_somewhere_passes(docs, tmp_path, target):
    (tmp_path / "a.html").write_text(f'<p id="here"><a href="{target}">x</a></p>')
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    assert docs.broken_links(tmp_path) == []


def test_a_broken_link_makes_the_command_fail(docs, tmp_path, monkeypatch, capsys):
    def build(out):
        out.mkdir()
        (out / "a.html").write_text("<a href='b'>")
        return []

    monkeypatch.setattr(docs, "build", build)
    assert docs.main(["--out", str(tmp_path / "site")]) == 1
    assert "a.html: 'b' leads nowhere" in capsys.readouterr().err


def test_a_folder_that_is_no_site_is_not_replaced(docs, tmp_path):
    (tmp_path / "precious.txt").write_text("x")
    with pytest.raises(SystemExit, match="must be a new folder or an older site"):
        docs.build(tmp_path)
    assert (tmp_path / "precious.txt").read_text() == "x"


def example(rate: float, *, name: str = "a") -> None:
    """One line with <angles>.

    More about it:

    >>> 1 < 2
    True

    Parameters
    ----------
    rate
        How fast,
        in two lines.
    name
        Of whom.

    Notes
    -----
    Costs nothing.
    """


def test_a_docstring_is_cut_at_its_headings(docs):
    found = dict(docs.sections(example.__doc__))
    assert list(found) == ["", "Parameters", "Notes"]
    assert found["Notes"] == "Costs nothing."


def test_a_docstring_is_rendered_with_types_and_examples(docs):
    text = docs.docstring(example)
    assert "One line with &lt;angles&gt;." in text
    assert '<dt><code>rate</code> <span class="type">float</span></dt>' in text
    assert "How fast,\nin two lines." in text
    assert 'class="language-pycon"' in text


def test_headings_of_guides_can_be_linked_to(docs):
    assert '<h2 id="the-life-of-a-fit">' in docs.markdown("## The life of a `fit`")


def test_a_guide_cannot_smuggle_in_markup(docs):
    assert "<script>" not in docs.markdown("<script>alert(1)</script>")


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
