"""The README's Python runs as it stands, and its claims are read from it and checked."""

import json
import re
import tomllib

import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
from tests.contract.test_contract import EXCUSED
from tests.documents import NUMBERS, ROOT, document, missing_links, sentence
from typer.testing import CliRunner

import castalia
from castalia.catalog import SYSTEMS
from castalia.catalog.course import load_course
from castalia.cli import app
from castalia.diagnose import preflight

README = document("README.md")
PROJECT = tomllib.loads(document("pyproject.toml"))["project"]
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "ADDING_A_SYSTEM.md", "CONTRIBUTING.md", "GLOSSARY.md"]
PAGES = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they write runs and models
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    assert len(blocks) == 5
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["doctor"].diagnosis().codes[0] == "CST301"
    names["doctor"].close()
    assert names["search"].best_score_ > 0.9
    new = (names["digits"].images[1400:], names["digits"].target[1400:])
    assert names["network"].score(*new) > 0.95
    assert (tmp_path / "digits-model" / "model.json").is_file()
    assert (tmp_path / "gradient.svg").is_file()


def test_the_tagline_is_the_same_everywhere():
    tagline = sentence(README, r"^# Castalia \*([^*]+)\.\*").group(1)
    assert PROJECT["description"] == f"{tagline}."
    assert castalia.__doc__.splitlines()[0] == f"{tagline}."
    assert document("docs/index.md").splitlines()[2] == f"{tagline}."
    assert tagline in " ".join(CliRunner().invoke(app, ["--help"]).output.split())


def test_the_excused_estimators_are_those_that_are_named():
    said = sentence(README, r"no expected failure, but for ([^;]+) from the (\w+) checks that")
    assert set(re.findall(r"`(\w+)`", said.group(1))) == set(EXCUSED)
    own = {cls.__name__: set(checks) for cls, checks in PER_ESTIMATOR_XFAIL_CHECKS.items()}
    for checks in EXCUSED.values():
        assert len(checks) <= NUMBERS[said.group(2)]
        assert set(checks) <= own["Perceptron"]  # scikit-learn's


def test_the_commands_exist_and_take_the_options_that_are_shown():
    verbs = {command.callback.__name__ for command in app.registered_commands}
    found = re.findall(r"(?:`|\$ )castalia ([a-z]+)([^`\n]*)", README)
    assert {verb for verb, _ in found} >= {"fit", "doctor", "demo", "models", "course"}
    for verb, rest in found:
        assert verb in verbs
        shown = CliRunner().invoke(app, [verb, "--help"]).output
        assert [o for o in re.findall(r"--[a-z-]+", rest) if o not in shown] == []


def test_a_model_is_a_plain_module_and_its_file_is_json_and_safetensors(tmp_path):
    said = sentence(
        README, r"`est\.(\w+)` is a plain `([\w.]+)`; saved models are JSON and safetens"
    )
    assert said.group(2) == "torch.nn.Module"
    model = castalia.MLPClassifier(hidden=(4,), epochs=1, random_state=0).fit(
        *load_iris(return_X_y=True)
    )
    module = getattr(model, said.group(1))
    assert isinstance(module, torch.nn.Module)
    castalia.save(model, tmp_path / "model")
    listed = sentence(README, r"castalia\.save\(model, [^)]+\) # ([\w.]+) and ([\w.]+)").groups()
    assert {path.name for path in (tmp_path / "model").iterdir()} == set(listed)
    json.loads((tmp_path / "model" / "model.json").read_text())


def test_the_version_and_what_it_needs():
    said = sentence(README, r"The library is young \((\d+\.\d+)\)").group(1)
    assert castalia.__version__.startswith(f"{said}.")
    python = sentence(README, r"They need Python (\d+\.\d+) or newer").group(1)
    assert PROJECT["requires-python"] == f">={python}"
    wanted = sentence(README, r"torch >= (\d+\.\d+)").group(1)
    assert f"torch>={wanted}" in [need.replace(" ", "") for need in PROJECT["dependencies"]]


def test_the_families_are_those_of_the_catalogue():
    said = sentence(README, r"the doctor, the (.+?) families; `castalia models`").group(1)
    named = re.findall(r"\w+", re.sub(r"\([^)]*\)|\band\b", "", said))
    assert set(named) == {record.family for record in SYSTEMS.values()}


def test_what_is_to_come_is_not_there_yet():
    coming = sentence(README, r"Not finished\. Checkpoints by shard \(`([\w.]+)`\)").group(1)
    library = (ROOT / "src").rglob("*.py")
    assert not [file for file in library if coming in file.read_text(encoding="utf-8")]


def test_the_course_has_as_many_rows_as_the_readme_says():
    assert int(sentence(README, r"which of the (\d+) topics").group(1)) == len(load_course())


def test_the_two_commands_are_targets_of_the_makefile():
    block = sentence(README, r"## (\w+) commands ```console (.*?)```")
    targets = re.findall(r"\$ make (\w+)", block.group(2))
    assert len(targets) == NUMBERS[block.group(1).lower()]
    assert all(re.search(rf"^{target}:", document("Makefile"), re.M) for target in targets)


def test_there_are_as_many_examples_as_the_heading_says():
    found = re.search(r"## (\w+) examples\n(.*?)\n## ", README, re.S)
    assert len(re.findall(r"^\*\*[^*]+\*\*", found[2], re.M)) == NUMBERS[found[1].lower()]


def test_the_preflight_checks_are_those_that_are_shown():
    shown = re.findall(r"^  ok +([\w-]+) +(.*)$", README, re.M)
    passed = sentence(README, r"Preflight checks: (\d) of (\d) passed")
    assert passed.groups() == (str(len(shown)),) * 2
    model = castalia.MLPClassifier(hidden=(32,), lr=1e-2, random_state=0)
    found = {c.name: c.message for c in preflight(model, *load_iris(return_X_y=True), seconds=60)}
    assert list(found) == [name for name, _ in shown]
    said = dict(shown)["tiny-fit"]
    assert re.sub(r"\d+", "N", found["tiny-fit"]).startswith(re.sub(r"\d+", "N", said))


@pytest.mark.parametrize("name", [*DOCUMENTS, *PAGES])
def test_links_lead_somewhere(name):
    assert missing_links(name) == []


def test_every_figure_of_the_table_of_costs_is_among_the_results():
    results = document("benchmarks/RESULTS.md") + document("evidence/RESULTS.md")
    known = [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", results)]
    table = README.split("## What it costs")[1].split("\n\n")[1]
    for line in table.splitlines()[2:]:
        for figure in re.findall(r"\d[\d,]*(?:\.\d+)?", line.strip("| ").split("|")[-1]):
            value, places = float(figure.replace(",", "")), len(figure.partition(".")[2])
            assert any(value in (round(n, places), round(100 * n, places)) for n in known), line
