"""The benchmark of default recipes: what it measures, keeps and ranks."""

import json

import numpy as np
import pytest
from evidence import defaults
from evidence.table_collection import Table, load, save


def table(name="t", rows=150):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(rows, 2))
    numbers[::9, 0] = np.nan
    words = np.where(rng.random((rows, 1)) < 0.5, "red", "")
    return Table(name, numbers, words, np.where(numbers[:, 1] > 0, "yes", "no"))


def test_a_collection_comes_back_from_its_file(tmp_path):
    save([table()], str(tmp_path / "tables.npz"))
    (found,) = load(str(tmp_path / "tables.npz"))
    assert found.name == "t"
    for part, wanted in zip(found[1:], table()[1:], strict=True):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("recipe", ["tabular:epochs=20", "mlp:lr=0.01", "sklearn-mlp", "boosting"])
def test_every_recipe_learns_a_table_with_words_and_gaps(recipe):
    found = defaults.measure(table(), 0, recipe)
    assert found.score > 0.85
    assert found.recipe == recipe


def test_small_tables_are_tested_whole_and_large_ones_by_a_fifth():
    small = [held for _, held in defaults.folds(table(), 0)]
    assert sorted(np.concatenate(small)) == list(range(150))
    (large,) = [held for _, held in defaults.folds(table(rows=1_000), 0)]
    assert len(large) == 200


def test_results_are_ranked_by_table_and_read_again(tmp_path, capsys):
    scores = {"a": (0.9, 0.5), "b": (0.8, 0.6), defaults.BEFORE: (0.7, 0.4)}
    results = [
        defaults.Result(name, 0, recipe, found[i], 1.0 + i, 150)
        for recipe, found in scores.items()
        for i, name in enumerate(("x", "y"))
    ]
    path = tmp_path / "results.json"
    path.write_text("\n".join(json.dumps(r._asdict()) for r in results))
    assert defaults.read_results(path) == results
    defaults.report(results, list(scores), "Ranks", lambda i: True)
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    ranks = {line[0].strip("| "): line[1] for line in lines if len(line) > 5}
    assert (ranks["a"], ranks["b"], ranks[defaults.BEFORE]) == ("1.50", "1.50", "3.00")
