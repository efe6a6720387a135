"""Sparse rows give what dense ones give, a block at a time."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from castalia import MLPClassifier, MLPRegressor
from castalia.catalog import SYSTEMS
from castalia.testing.contract import make

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((150, 12)) < 0.7, 0.0, RNG.normal(size=(150, 12)).round(2))
LABELS = (DENSE[:, 0] + DENSE[:, 1] > 0.1).astype(int)
KINDS = [sp.csr_matrix, sp.csc_array, sp.coo_matrix]
# A mixture has dense covariances; scikit-learn's own refuses sparse rows too.
# Methods of dense matrices, which scikit-learn's check refuses sparse rows for.
DENSE_ONLY = (
    *("GaussianMixture", "GaussianProcessRegressor", "GaussianProcessClassifier", "PCA"),
    *("SparseGaussianProcess", "KernelRidge", "SupportVectorMachine", "LogisticKernelMachine"),
    *("RestrictedBoltzmannMachine", "DeepBeliefNetwork", "BayesianNetwork", "BoltzmannMachine"),
    "DriftDetector",
)
DRAWS_ONLY = ("GenerativeAdversarialNetwork", "MomentMatching", "DiffusionModel")  # no answers
TABLES = [
    record
    for record in SYSTEMS.values()
    if record.data == "table" and record.name not in (*DENSE_ONLY, *DRAWS_ONLY)
]


def net(**settings):
    return MLPClassifier(**{"hidden": (8,), "epochs": 3, "random_state": 0, **settings})


@pytest.mark.parametrize("kind", KINDS)
def test_a_sparse_matrix_is_fitted_to_the_bit_as_its_dense_form(kind):
    dense, sparse = net().fit(DENSE, LABELS), net().fit(kind(DENSE), LABELS)
    expected = dense.predict_proba(DENSE)
    assert np.array_equal(sparse.predict_proba(kind(DENSE)), expected)
    assert np.array_equal(sparse.predict_proba(DENSE), expected)
    assert sparse.history_[-1]["val_loss"] == dense.history_[-1]["val_loss"]


def test_missing_values_and_weights_are_those_of_the_dense_form():
    holed, weight = DENSE.copy(), RNG.integers(0, 3, len(DENSE)).astype(float)
    holed[3, 2] = np.nan
    dense = net().fit(holed, LABELS, sample_weight=weight)
    sparse = net().fit(sp.csr_matrix(holed), LABELS, sample_weight=weight)
    assert np.array_equal(sparse.predict_proba(sp.csr_matrix(holed)), dense.predict_proba(holed))


def test_no_more_than_a_block_is_made_dense(monkeypatch):
    made, whole = [], sp.csr_matrix.toarray

    def toarray(self, *args, **options):
        made.append(self.shape)
        return whole(self, *args, **options)

    monkeypatch.setattr(sp.csr_matrix, "toarray", toarray)
    monkeypatch.setattr("castalia.utils.sparse_blocks.NUMBERS", 600)
    monkeypatch.setattr("castalia.utils.sparse_blocks.dense_blocks.__defaults__", (600,))
    monkeypatch.setattr("castalia.data.tables.table_encoder._COLUMNS", 4)
    model = net(batch_size=32).fit(sp.csr_matrix(DENSE), LABELS)
    model.predict(sp.csr_matrix(DENSE))
    assert made
    assert max(rows * columns for rows, columns in made) < DENSE.size


def test_words_encoded_by_a_column_transformer_go_through_a_pipeline():
    words = np.array(["red", "green", "blue"], object)[RNG.integers(0, 3, 150)]
    table = np.column_stack([words, DENSE[:, :2]]).astype(object)

    def pipeline(sparse):
        encode = OneHotEncoder(sparse_output=sparse)
        threshold = 1.0 if sparse else 0.0
        columns = ColumnTransformer(
            [("words", encode, [0])], remainder="passthrough", sparse_threshold=threshold
        )
        return make_pipeline(columns, net())

    found = pipeline(True).fit(table, LABELS)
    assert sp.issparse(found[0].transform(table))
    expected = pipeline(False).fit(table, LABELS).predict_proba(table)
    assert np.allclose(found.predict_proba(table), expected, atol=1e-6)


def test_validation_rows_and_parts_may_be_sparse():
    sparse = sp.csr_array(DENSE)
    model = net().fit(sparse[:100], LABELS[:100], validation=(sparse[100:], LABELS[100:]))
    assert model.settings_["validation_rows"] == 50
    values = DENSE @ np.arange(12.0)
    one, other = (MLPRegressor(hidden=(4,), random_state=0) for _ in range(2))
    for _ in range(2):
        one.partial_fit(sparse, values)
        other.partial_fit(DENSE, values)
    assert np.array_equal(one.predict(sparse), other.predict(DENSE))


@pytest.mark.parametrize("record", TABLES, ids=lambda record: record.name)
def test_every_table_model_answers_sparse_rows_as_dense_ones(record):
    model = make(record)
    short = {"epochs": 3} if hasattr(model, "epochs") else {}
    model.set_params(**short)
    target = DENSE @ np.ones(12) if "regression" in record.tasks else LABELS
    if "classification" in record.tasks:
        target = LABELS
    rows = DENSE[:, :3] if record.name in ("PolynomialRegression", "BasisRegression") else DENSE
    model.fit(sp.csr_matrix(rows), target)
    answer = next(m for m in ("predict_proba", "predict", "transform") if hasattr(model, m))
    found, expected = (getattr(model, answer)(part) for part in (sp.csr_matrix(rows), rows))
    assert np.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", DENSE_ONLY)
def test_methods_of_dense_matrices_say_so(name):
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        make(SYSTEMS[name]).fit(sp.csr_matrix(DENSE), LABELS)
