"""One program, two trainings: as it was posted and as it was answered."""

import functools
import io
from collections.abc import Callable
from contextlib import redirect_stdout

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from evidence.corpus.cases import case
from evidence.corpus.programs._loops import posted

Program = Callable[[int, bool], float]
LOADERS = {
    "digits": load_digits,
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}


def pair(code: str, *, dose: str = "severe", data: str = "tabular", net: str = "mlp", accept=()):
    """Put the program into the corpus with its fault, and as ``…_done_right`` without."""

    def register(program: Program) -> Program:
        run = posted(_quietly(program))
        case(code, dose=dose, data=data, net=net, accept=tuple(accept))(run)
        right = functools.partial(run, fault=False)
        right.__name__, right.__module__ = f"{program.__name__}_done_right", program.__module__
        case(None, data=data, net=net)(right)
        return program

    return register


def _quietly(program: Program) -> Program:
    """The programs print as they please; the output is discarded."""

    @functools.wraps(program)
    def run(seed: int, fault: bool) -> float:
        np.random.seed(seed)
        with redirect_stdout(io.StringIO()):
            return program(seed, fault)

    return run


def split(name: str, seed: int, scale: bool = True, test_size: float = 0.25):
    """X_train, X_test, y_train, y_test of a set of scikit-learn, in float32."""
    X, y = LOADERS[name](return_X_y=True)
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True, scaled=not scale)
    parts = train_test_split(X, y, test_size=test_size, random_state=seed)
    X_train, X_test, y_train, y_test = parts
    if scale:
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return X_train.astype(np.float32), X_test.astype(np.float32), y_train, y_test


def digit_images(seed: int, n: int = 1000):
    """Digits of 8 by 8 in [0, 1] with a channel, and their labels: torch tensors."""
    digits = load_digits()
    X = torch.tensor(digits.images[:, None] / 16.0, dtype=torch.float32)
    y = torch.tensor(digits.target)
    idx = torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))
    train, test = idx[:n], idx[n : n + 400]
    return X[train], X[test], y[train], y[test]


def series(seed: int, n: int = 500, window: int = 12, level: float = 0.0, size: float = 1.0):
    """Windows (N, T, 1) of a noisy wave and the value after each (N, 1), in their order."""
    rng = np.random.RandomState(seed)
    t = np.arange(n + window)
    wave = np.sin(2 * np.pi * t / 25) + 0.5 * np.sin(2 * np.pi * t / 7) + 0.05 * rng.randn(len(t))
    wave = (level + size * wave).astype(np.float32)
    X = np.stack([wave[i : i + window] for i in range(n)])[:, :, None]
    return X, wave[window:, None]


def r2_score(pred, y) -> float:
    """Share of the variance explained, of tensors or arrays of any shape."""
    pred, y = np.asarray(pred, float).ravel(), np.asarray(y, float).ravel()
    return float(1 - ((pred - y) ** 2).sum() / ((y - y.mean()) ** 2).sum())
