"""PyTorch Geometric, which the layers are compared with."""

import importlib
import warnings

import pytest


@pytest.fixture(scope="session")
def pyg():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it scripts functions when it is imported
        return importlib.import_module("torch_geometric.nn")
