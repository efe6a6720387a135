"""Trials and members go where joblib sends them: processes, or machines without our files."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import effective_n_jobs, parallel_config, register_parallel_backend
from joblib.parallel import ThreadingBackend

from castalia import DeepEnsemble, MLPClassifier, Training, cluster
from castalia.errors import InvalidParameter, MissingPackage
from castalia.tune import RandomSearch, Uniform
from castalia.tune.trial_table import TrialTable
from castalia.utils.worker_cluster import held, public, runs_elsewhere

X = np.random.default_rng(0).normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)


class Elsewhere(ThreadingBackend):
    """A worker that gets copies, as those on other machines do, and does its tasks at once."""

    tasks = 0

    def submit(self, func, callback=None):
        Elsewhere.tasks += 1
        callback((pickle.loads(pickle.dumps(func))(), None))

    def retrieve_result_callback(self, out):
        return out[0]


register_parallel_backend("elsewhere", Elsewhere)


@pytest.fixture
def tables(monkeypatch):
    """Count how often a table of trials is opened."""
    opened, init = [], TrialTable.__init__
    monkeypatch.setattr(TrialTable, "__init__", lambda self, *a: opened.append(a) or init(self, *a))
    return opened


def search(**settings):
    model = MLPClassifier(
        hidden=(4,), epochs=1, random_state=0, training=Training(verbose=False, watch=False)
    )
    space = {"lr": Uniform(1e-3, 1e-1, log=True)}
    return RandomSearch(model, space, trials=4, cv=2, random_state=0, **settings).fit(X, Y)


def test_a_search_elsewhere_equals_the_one_here_and_only_this_process_writes(tmp_path, tables):
    here = search()
    with parallel_config("elsewhere", n_jobs=2):
        assert runs_elsewhere()
        apart = search()
        kept = search(study=tmp_path / "study.sqlite")
    assert len(tables) == 1  # none for the first, and no worker opens that of the second
    for found in (apart, kept):
        np.testing.assert_array_equal(
            found.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"]
        )


def test_a_search_elsewhere_goes_on_without_repeating_trials(tmp_path, monkeypatch):
    with parallel_config("elsewhere", n_jobs=2):
        first = search(study=tmp_path / "study.sqlite")
        monkeypatch.setattr(MLPClassifier, "fit", None)
        again = search(study=tmp_path / "study.sqlite", refit=False)
    assert again.best_params_ == first.best_params_


def test_an_ensemble_takes_the_workers_of_the_cluster():
    member = MLPClassifier(epochs=1, training=Training(optimizer="lbfgs", watch=False))
    model = DeepEnsemble(member, members=2, random_state=0)
    here = model.fit(X, Y).predict_proba(X)
    before = Elsewhere.tasks
    with parallel_config("elsewhere", n_jobs=2):
        np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), here)
    assert Elsewhere.tasks == before + 2


def test_processes_of_this_machine_are_a_cluster_too():
    with cluster(workers=3) as workers:
        assert workers == effective_n_jobs(None) == 3
        assert not runs_elsewhere()
        assert held(X)() is X
    assert effective_n_jobs(None) == 1
    with pytest.raises(InvalidParameter, match="`workers` must be at least 1 or None; got 0"):
        cluster(workers=0).__enter__()


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackage, match=r"cluster: needs .*`ray`.*castalia\[cluster\]"):
        cluster("local").__enter__()


def test_a_dead_head_is_named_without_its_password(monkeypatch):
    def dead(address, **options):
        raise ConnectionError(f"ray client connection timeout at {address}")

    ray = SimpleNamespace(is_initialized=lambda: False, init=dead)
    joblib = SimpleNamespace(register_ray=lambda: None)
    for name, module in {"ray": ray, "ray.util": ray, "ray.util.joblib": joblib}.items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(InvalidParameter, match="got 'ray://head:10001': .*timeout") as caught:
        cluster("ray://me:secret@head:10001").__enter__()
    assert "secret" not in str(caught.value)


def test_a_password_of_a_study_is_not_shown():
    assert public("postgresql://me:secret@host/db") == "postgresql://host/db"
    with pytest.raises(InvalidParameter, match="'nonsense://host/db' cannot be opened") as caught:
        TrialTable("nonsense://me:secret@host/db", "study", "RandomSearch")
    assert "secret" not in str(caught.value)
