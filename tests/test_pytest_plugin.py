"""``castalia_doctor``: a test fails where the training in it has a fault."""

import sys

import pytest
import torch

from castalia.base import estimator
from castalia.diagnose import watch

pytest_plugins = ["pytester"]

TRAINING = """
import pytest
import torch
from torch import nn


def train(castalia_doctor, reset):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    castalia_doctor(net, optimizer)
    X = torch.randn(64, 4)
    y = (X[:, 0] + X[:, 1] > 0).long()
    for _ in range(30):
        if reset:
            optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()


def test_healthy(castalia_doctor):
    train(castalia_doctor, reset=True)


def test_faulty(castalia_doctor):
    train(castalia_doctor, reset=False)


@pytest.mark.castalia(mute=["CST112", "CST101"])
def test_muted(castalia_doctor):
    train(castalia_doctor, reset=False)


@pytest.mark.castalia(fail_on="never")
def test_wrong(castalia_doctor):
    pass


def test_watches_nothing(castalia_doctor):
    pass


def test_without():
    pass
"""


# The third would collect garbage five times, in all that other tests have loaded.
OFF = ("cacheprovider", "xdist", "unraisableexception")


@pytest.fixture
def loaded():
    """Import what an optimizer does: what pytester is the first to import is forgotten after it."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).step()


def test_only_the_faulty_training_fails(loaded, pytester):
    pytester.makepyfile(TRAINING)
    off = [word for name in OFF for word in ("-p", f"no:{name}")]
    found = pytester.runpytest_inprocess("-p", "castalia.pytest_plugin", "-Wdefault", *off)
    found.assert_outcomes(passed=4, failed=1, errors=1, warnings=1)
    found.stdout.fnmatch_lines(["*castalia_doctor watched nothing: call castalia_doctor(net*"])
    found.stdout.fnmatch_lines(["*CST112 gradients-accumulate*"])
    found.stdout.fnmatch_lines(["*`fail_on` must be 'error' or 'warning'; got 'never'*"])


def test_pytest_looks_for_no_asserts_in_the_library():
    for module in (estimator, sys.modules[watch.__module__]):
        assert "rewrite" not in type(module.__loader__).__module__
    assert "rewrite" in type(sys.modules[__name__].__loader__).__module__
