"""What the page shows of a search is what the search itself says."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from castalia.studio.search_trials import searched
from castalia.tune import Choice, RandomSearch, Uniform
from castalia.tune.search_record import SearchRecord

SPACE = {"alpha": Uniform(1e-3, 1e3, log=True), "fit_intercept": Choice(True, False)}


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] + 4 + rng.normal(size=60)
    settings = {"trials": 10, "cv": 2, "prune": False, "refit": False, "random_state": 0}
    found = RandomSearch(
        Ridge(), SPACE, scoring="neg_mean_absolute_error", study=folder / "study.sqlite", **settings
    )
    return folder, found.fit(X, y)


def test_trials_are_shown_with_their_scores_and_what_mattered(search):
    folder, found = search
    assert searched(folder) is None  # nothing says what the settings are
    SearchRecord("mae", False, SPACE).write(folder)
    shown = searched(folder)
    scores = np.array([trial["score"] for trial in shown["trials"]], dtype=float)
    np.testing.assert_allclose(scores, -found.cv_results_["mean_test_score"])
    alphas = [trial["values"][0] for trial in shown["trials"]]
    np.testing.assert_allclose(alphas, found.cv_results_["param_alpha"].astype(float))
    places = [int(trial["values"][1]) for trial in shown["trials"]]
    words = shown["axes"][1]["words"]
    assert [words[place] for place in places] == [
        str(params["fit_intercept"]) for params in found.cv_results_["params"]
    ]
    assert dict(shown["importances"]) == pytest.approx(found.importances_)


def test_a_damaged_search_is_left_out(search, tmp_path):
    for content in ("{", '{"metric": 1, "higher": true, "space": {"lr": 3}}'):
        (tmp_path / "search.json").write_text(content)
        assert searched(tmp_path) is None
    SearchRecord("mae", False, SPACE).write(tmp_path)
    (tmp_path / "study.sqlite").write_bytes(b"no database")
    assert searched(tmp_path) is None
