"""Fits beside each other, in other processes and inside the caller's contexts."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from joblib import parallel_backend
from sklearn.model_selection import cross_val_score
from tests.processes import run_code

from castalia import (
    Callback,
    DeepEnsemble,
    KMeans,
    LinearRegression,
    MLPClassifier,
    MLPRegressor,
    Training,
)

X = np.random.default_rng(0).normal(size=(200, 6))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


def classifier(seed=0, **settings):
    return MLPClassifier(
        **{"hidden": (16,), "dropout": 0.3, "epochs": 4, "random_state": seed, **settings}
    )


def wide(seed=0):
    """A network whose steps are large enough for oneDNN and several threads."""
    return classifier(seed, hidden=(1024, 1024), epochs=1, batch_size=128)


def weights(model):
    return [value.clone() for value in model.module_.state_dict().values()]


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_fits_and_predictions_in_eight_threads_give_the_weights_of_each_alone():
    makers = [lambda s=s: (wide if s % 3 == 2 else classifier)(s) for s in range(8)]
    alone = [weights(make().fit(X, Y)) for make in makers]
    fitted, rows = classifier().fit(X, Y), np.tile(X, (50, 1))
    before = torch.get_rng_state(), torch._C._get_mkldnn_enabled(), torch.get_num_threads()

    def work(number):
        fitted.predict_proba(rows)
        found = weights(makers[number]().fit(X, Y))
        fitted.predict_proba(rows)
        return found

    with ThreadPoolExecutor(8) as pool:
        beside = list(pool.map(work, range(8)))
    assert all(equal(*pair) for pair in zip(alone, beside, strict=True))
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (torch._C._get_mkldnn_enabled(), torch.get_num_threads())


def test_a_prediction_does_not_wait_for_a_training_of_another_thread():
    fitted = classifier().fit(X, Y)
    expected, during = fitted.predict_proba(X), []

    def predict(state):
        with ThreadPoolExecutor(1) as pool:  # the training goes on when the answer is here
            during.append(pool.submit(fitted.predict_proba, X).result(timeout=30))

    callback = type("Predict", (Callback,), {"on_epoch_end": lambda self, state: predict(state)})
    classifier(1, epochs=2, training=Training(callbacks=[callback()])).fit(X, Y)
    assert len(during) == 2
    np.testing.assert_allclose(during[0], expected, atol=1e-6)


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])  # loky: with what needs it
def test_joblib_s_backends_give_the_scores_of_one_process(backend):
    one = cross_val_score(classifier(), X, Y, cv=2)
    with parallel_backend(backend, n_jobs=2):
        np.testing.assert_array_equal(cross_val_score(classifier(), X, Y, cv=2), one)


FORK = """
import multiprocessing, sys, torch
torch.set_num_threads(2)
sys.path.insert(0, {folder!r})
from tests.base.test_concurrent_fits import X, Y, classifier
import numpy as np
rows, labels = np.tile(X, (20, 1)), np.tile(Y, 20)
classifier(epochs=1, hidden=(64, 64)).fit(rows, labels)
child = multiprocessing.get_context("fork").Process(
    target=classifier(epochs=1, hidden=(64, 64)).fit, args=(rows, labels)
)
child.start(); child.join(60); child.kill()
sys.exit(child.exitcode if child.exitcode is not None else 9)
"""


def test_a_process_forked_after_a_fit_fits_too(zygote, tmp_path):
    code = FORK.format(folder=str(Path(__file__).parents[2]))
    done = run_code(zygote, tmp_path, code)
    assert done.returncode == 0, done.stderr


CONTEXTS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "float64": lambda: default_dtype(torch.float64),
}


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    "make",
    [
        classifier,
        lambda: DeepEnsemble(estimator=classifier(), members=2, random_state=0),
        lambda: MLPRegressor(hidden=(4,), epochs=2, random_state=0),
        lambda: LinearRegression(),
        lambda: KMeans(n_clusters=2, random_state=0),
    ],
    ids=["classifier", "ensemble", "regressor", "linear", "clusters"],
)
def test_a_fit_inside_a_context_of_torch_gives_the_same_answers(make, context):
    outside = make().fit(X, Y).predict(X)
    with CONTEXTS[context]():
        inside = make().fit(X, Y)
        assert torch.is_grad_enabled() == (context not in ("no_grad", "inference_mode"))
    np.testing.assert_array_equal(inside.predict(X), outside)


def test_partial_fit_inside_no_grad_trains():
    model = classifier().partial_fit(X, Y, classes=[0, 1])
    before = weights(model)
    with torch.no_grad():
        model.partial_fit(X, Y)
    assert not equal(before, weights(model))
