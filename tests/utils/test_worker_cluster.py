"""Trials and members go where joblib sends them: processes, or machines without our files."""

import os
import pickle
import sys
from pathlib import Path
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, delayed, effective_n_jobs, parallel_config, register_parallel_backend
from joblib.parallel import ThreadingBackend

from castalia import DeepEnsemble, FederatedAveraging, MLPClassifier, Training, cluster
from castalia.errors import CastaliaError, InvalidParameter, MissingPackage
from castalia.tune import RandomSearch, Uniform
from castalia.tune.trial_table import TrialTable
from castalia.utils import ray_tasks, worker_cluster
from castalia.utils.joblib_backend import runs_elsewhere
from castalia.utils.text import public
from castalia.utils.worker_cluster import held

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


def test_clients_train_on_the_workers_and_end_as_in_one_process():
    member = MLPClassifier(hidden=(4,), training=Training(watch=False, validation=0))
    model = FederatedAveraging(member, rounds=2, local_epochs=1, random_state=0)
    here = model.fit(X, Y, groups=np.arange(len(X)) % 3).predict_proba(X)
    before = Elsewhere.tasks
    with parallel_config("elsewhere", n_jobs=2):
        model.fit(X, Y, groups=np.arange(len(X)) % 3)
    np.testing.assert_array_equal(model.predict_proba(X), here)
    assert Elsewhere.tasks == before + 6


def test_on_ray_the_rows_of_clients_travel_once(ray):
    member = MLPClassifier(hidden=(4,), training=Training(watch=False, validation=0))
    model = FederatedAveraging(member, rounds=3, local_epochs=1, clients=2, random_state=0)
    here = model.fit(X, Y).predict_proba(X)
    with cluster("local", workers=2):
        np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), here)
    assert ray.puts == 2


def test_members_in_threads_come_one_after_the_other_and_end_as_alone():
    member = MLPClassifier(epochs=1, training=Training(optimizer="lbfgs", watch=False))
    model = DeepEnsemble(member, members=2, random_state=0)
    here = model.fit(X, Y).predict_proba(X)
    with parallel_config("threading", n_jobs=2):
        np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), here)


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


class Ray(SimpleNamespace):
    """Ray in this process: what is stored or sent is pickled, and a task runs at once."""

    def __init__(self):
        super().__init__(
            full=False,
            home=None,  # where a worker is
            kept=[],
            puts=0,
            sent=0,
            cancelled=[],
            limits={},
            there={"CPU": 3.0, "GPU": 1.0},
        )
        self.lost = type("WorkerCrashedError", (Exception,), {})
        self.exceptions = SimpleNamespace(RayTaskError=Failed, RayError=self.lost)

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return self.there

    def put(self, value):
        if self.full:
            raise self.lost("the object store is full")
        self.puts += 1
        return self._keep(value)

    def _keep(self, value):
        self.kept.append(pickle.dumps(value))
        return len(self.kept) - 1

    def get(self, place):
        found = pickle.loads(self.kept[place])
        if isinstance(found, Exception):
            raise Failed(found) if not isinstance(found, MemoryError) else self.lost("killed")
        return found

    def cancel(self, place):
        self.cancelled.append(place)

    def remote(self, function):
        def send(batch):
            raw = pickle.dumps(batch)
            self.sent += len(raw)
            os.chdir(self.home or os.getcwd())
            try:
                return self._keep(function(pickle.loads(raw)))
            except Exception as error:
                return self._keep(error)

        return SimpleNamespace(options=lambda **kw: self.limits.update(kw) or Sender(send))


class Failed(Exception):
    def __init__(self, cause):
        self.cause = cause


class Sender(SimpleNamespace):
    def __init__(self, send):
        super().__init__(remote=send)


@pytest.fixture
def ray(monkeypatch):
    found = Ray()
    monkeypatch.setitem(sys.modules, "ray", found)
    return found


def test_a_local_cluster_is_a_new_one_whatever_ran_here_before(ray, monkeypatch):
    asked = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **options: asked.append(options), raising=False)
    monkeypatch.setattr(ray, "shutdown", lambda: asked.append("ended"), raising=False)
    with cluster("local", workers=2):
        assert asked[0]["address"] == "local"
        assert asked[0]["num_cpus"] == 2
    assert asked[1:] == ["ended"]


def row(table, i, *, scale=1.0):
    return scale * float(table[i, 0])


def failing(i):
    raise (MemoryError() if i else KeyError("two"))


def test_on_ray_large_arguments_are_sent_once_and_results_come_in_order(ray):
    table = np.arange(40_000.0).reshape(-1, 2)
    with cluster("auto", gpus=0.25) as workers:
        assert workers == 3  # four tasks a device, one a core
        found = Parallel()(delayed(row)(table, i, scale=2.0) for i in range(9))
    assert found == [4.0 * i for i in range(9)]
    assert ray.puts == 1
    assert ray.sent < table.nbytes / 10
    assert ray.limits["num_gpus"] == 0.25
    assert ray.limits["max_retries"] > 0


def test_on_ray_a_search_equals_the_one_here_and_its_rows_travel_once(ray, tmp_path):
    here = search()
    with cluster("auto", workers=2):
        found = search(study=tmp_path / "study.sqlite")
    assert ray.puts == 1
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize(("i", "error"), [(0, KeyError), (1, CastaliaError)])
def test_on_ray_what_a_task_raises_is_raised_here(ray, i, error):
    with cluster("auto", workers=2), pytest.raises(error):
        Parallel()(delayed(failing)(i) for _ in range(3))


def test_on_ray_relative_paths_mean_those_of_the_one_who_asks(ray, tmp_path, monkeypatch):
    (tmp_path / "near").write_text("")
    monkeypatch.chdir(tmp_path)
    ray.home = Path(__file__).parent
    with cluster("auto", workers=2):
        assert Parallel()([delayed(os.path.exists)("near")]) == [True]


def test_on_ray_a_full_object_store_is_said(ray):
    ray.full = True
    message = r"0.00032 GB of rows must fit .* the object store is full. Start it with a larger"
    with cluster("auto", workers=2), pytest.raises(CastaliaError, match=message):
        Parallel()(delayed(row)(np.zeros((40_000, 1)), i) for i in range(3))


def test_on_ray_a_worker_of_another_version_is_named(ray, monkeypatch):
    versions = iter([{"castalia": "0.4.0"}, {"castalia": "0.3.0"}])
    monkeypatch.setattr(ray_tasks, "_versions", lambda: next(versions))
    message = "must have castalia 0.4.0, as this process has; one has 0.3.0"
    with cluster("auto", workers=2), pytest.raises(InvalidParameter, match=message):
        Parallel()([delayed(row)(X, 0)])


def test_on_ray_what_cannot_be_sent_is_named(ray):
    message = "cannot pickle '_thread.lock'"
    with cluster("auto"), pytest.raises(InvalidParameter, match=message):
        Parallel()(delayed(len)(Lock()) for _ in range(3))
    with cluster("auto"), pytest.raises(InvalidParameter, match=message):
        held(Lock())


def test_fewer_devices_than_a_task_needs_are_named(ray):
    with pytest.raises(InvalidParameter, match="has 1 GPU, and a task needs 2"):
        cluster("auto", gpus=2).__enter__()
    with pytest.raises(InvalidParameter, match="`gpus` needs an `address` of Ray; got 1"):
        cluster(gpus=1).__enter__()


def test_a_head_that_nobody_answers_for_is_refused_at_once(ray, monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    for address in ("127.0.0.1:1", "ray://me:secret@127.0.0.1:1"):
        with pytest.raises(InvalidParameter, match="127.0.0.1:1': nothing answers there") as caught:
            cluster(address).__enter__()
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("error", [ConnectionError, RuntimeError])
def test_a_dead_head_is_named_without_its_password(ray, monkeypatch, error):
    monkeypatch.setattr(worker_cluster, "_reach", lambda address: None)

    def dead(address, **options):
        raise error(f"ray client connection timeout at {address}")

    monkeypatch.setattr(ray, "init", dead, raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(InvalidParameter, match="got 'ray://head:10001': .*timeout") as caught:
        cluster("ray://me:secret@head:10001").__enter__()
    assert "secret" not in str(caught.value)


def test_a_password_of_a_study_is_not_shown():
    assert public("postgresql://me:secret@host/db") == "postgresql://host/db"
    with pytest.raises(InvalidParameter, match="'nonsense://host/db' cannot be opened") as caught:
        TrialTable("nonsense://me:secret@host/db", "study", "RandomSearch")
    assert "secret" not in str(caught.value)
