"""What the processes of joblib's give is what one process gives: files, folds and trials.

These tests stand together because the two processes import torch and the library, which takes five
seconds each: joblib keeps them for the next test.
"""

import numpy as np
from joblib import parallel_backend
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from tests.base.test_concurrent_fits import X as ROWS
from tests.base.test_concurrent_fits import Y as LABELS
from tests.base.test_concurrent_fits import classifier
from tests.method.test_batch_predictions import many_files
from tests.tune.test_search import X, y

from castalia import cluster
from castalia.method.batch_predictions import predict_files
from castalia.tune import BayesianSearch, GridSearch, Uniform


def test_folds_in_processes_give_the_scores_of_one_process():
    one = cross_val_score(classifier(), ROWS, LABELS, cv=2)
    with parallel_backend("loky", n_jobs=2):
        np.testing.assert_array_equal(cross_val_score(classifier(), ROWS, LABELS, cv=2), one)


def test_workers_of_a_cluster_divide_the_files(tmp_path):
    folder, files, _ = many_files(tmp_path / "home")
    alone = dict(predict_files(folder, files, tmp_path / "alone"))
    with cluster(workers=2):
        found = dict(predict_files(folder, files[:5], tmp_path / "many"))
        found |= {p: n for p, n in predict_files(folder, files, tmp_path / "many") if n}
    assert list(found.values()) == list(alone.values())
    for path in alone:
        other = tmp_path / "many" / path.relative_to(tmp_path / "alone")
        assert other.read_bytes() == path.read_bytes()


def test_trials_in_processes_of_their_own_give_what_one_process_gives(tmp_path):
    grid = {"alpha": [0.01, 1.0, 100.0], "fit_intercept": [True, False]}
    told = []
    one = GridSearch(Ridge(), grid, cv=3).fit(X, y)
    two = GridSearch(Ridge(), grid, cv=3, n_jobs=2, callback=told.append).fit(X, y)
    for name in ("split0_test_score", "mean_test_score", "rank_test_score"):
        np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])
    assert one.cv_results_["params"] == two.cv_results_["params"]
    assert [trial["number"] for trial in told] == [1, 2, 3, 4, 5, 6]
    space, settings = {"alpha": Uniform(0.1, 10.0)}, {"trials": 12, "cv": 2, "random_state": 0}
    found = [
        BayesianSearch(Ridge(), space, n_jobs=2, study=study, **settings).fit(X, y)
        for study in (None, tmp_path / "s.db")
    ]
    assert found[0].cv_results_["params"] == found[1].cv_results_["params"]
