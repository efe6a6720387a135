"""The graph of every exportable system answers as the model does."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

import castalia
from castalia.catalog import SYSTEMS
from castalia.errors import InvalidData
from castalia.export.model_graph import graph_of
from castalia.export.refusals import REFUSALS
from castalia.method.classic_model import ClassicModel

GOLDEN = Path(__file__).parents[1] / "golden" / castalia.__version__
EXPORTED = sorted(set(SYSTEMS) - set(REFUSALS))


def golden(name):
    """Return a saved model of a system and rows for it."""
    rows = json.loads((GOLDEN / name / "expected.json").read_text())["rows"]
    kind = SYSTEMS[name].data
    X = rows if kind == "text" else np.array(rows, dtype="u1" if kind == "image" else None)
    return castalia.load(GOLDEN / name / "model"), X


class Endless(torch.Tensor):
    """Has no `len()`: it would fix the number of rows of a traced graph; `shape[0]` does not."""

    def __len__(self):
        raise AssertionError("an exported graph must take `x.shape[0]`, not `len(x)`")


@pytest.mark.parametrize("name", EXPORTED)
def test_a_graph_answers_as_its_model_with_any_number_of_rows(name):
    model, X = golden(name)
    graph = graph_of(model)
    feeds = [torch.from_numpy(f).as_subclass(Endless) for f in graph.entry.feeds(X).values()]
    found, wanted = graph(*feeds), graph.answer.expected(X)
    for name, part, truth in zip(graph.answer.outputs, found, wanted, strict=True):
        values = part.as_subclass(torch.Tensor).numpy()
        if name == "prediction" and graph.answer.classes is not None:
            assert (graph.answer.classes[values] == truth).all()
        else:
            np.testing.assert_allclose(values, truth, rtol=1e-5, atol=1e-5)


def test_every_refusal_is_of_a_system_and_one_sentence():
    assert set(REFUSALS) <= set(SYSTEMS)
    for reason in REFUSALS.values():
        assert reason[0].islower()
        assert not reason.endswith(".")


@pytest.mark.parametrize("name", ["GPTLanguageModel", "StyleTransfer", "GaussianProcessRegressor"])
def test_a_model_without_a_graph_says_why(name):
    model, _ = golden(name)
    with pytest.raises(InvalidData, match=f"export: {name} cannot be exported: .{{20,}}"):
        graph_of(model)


def test_a_model_of_scikit_learn_is_refused_by_its_name():
    model = ClassicModel(HistGradientBoostingClassifier(), None)
    with pytest.raises(InvalidData, match="a HistGradientBoostingClassifier cannot .* `--model`"):
        graph_of(model)


def test_the_page_lists_every_refusal_with_its_reason():
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    shown = {name.strip("` "): row[1] for row in rows for name in row[0].split(",")}
    assert {name: shown.get(name) for name in REFUSALS} == REFUSALS
