"""The linear autoencoder of the course: its error is what the singular values left out say."""

import numpy as np
import pytest

from castalia import PCA


def test_two_components_of_fifty_centred_rows_of_five_leave_the_other_singular_values():  # WE-77
    X = np.random.default_rng(0).normal(size=(50, 5)) * [3, 2, 1, 0.5, 0.1]
    X -= X.mean(axis=0)
    W = PCA(components=2).fit(X).components_  # (2, 5), the first rows of U^T of the SVD of X^T
    error = np.square(X - X @ W.T @ W).sum()
    singular = np.linalg.svd(X, compute_uv=False)
    assert error == pytest.approx(np.square(singular[2:]).sum(), rel=1e-10)
