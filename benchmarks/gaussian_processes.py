"""Exact GP regression, 2,000 x 5, hyperparameters learnt: ours, scikit-learn's and GPyTorch's.

``--gpu``: seconds of one hyperparameter step on 8,000 rows on CUDA, against GPyTorch's default.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Contender, Report, installed, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    rows: int
    test: int
    rounds: int
    gpu_rows: int = 8000


SIZES = {"full": Size(2000, 1000, 1), "quick": Size(500, 300, 1), "tiny": Size(60, 30, 1, 300)}


def data(rows: int, width: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of four of five columns, with noise of deviation 0.1."""
    random = np.random.default_rng(0)
    X = random.uniform(-2, 2, (rows, width))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + np.cos(3 * X[:, 3])
    return X, f + 0.1 * random.normal(size=rows)


def run(scale: str = "full", gpu: int = 0) -> Report:
    """Time whole fits; the score is the mean log-likelihood of test rows."""
    size = SIZES[scale]
    if gpu:
        return step_report(size)
    X, y = data(size.rows + size.test)
    split = (X[: size.rows], y[: size.rows], X[size.rows :], y[size.rows :])
    sides: list[tuple[str, Callable[..., Any]]] = [("castalia", ours), ("scikit-learn", sklearn)]
    if installed("gpytorch"):
        sides.append(("gpytorch", gpytorch))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contenders = [Contender(name, lambda fit=fit: fit(*split)) for name, fit in sides]
        found = race(contenders, size.rounds, warm_up=0 if scale == "full" else 1)
    bars = []
    for name in list(found)[1:]:
        faster = ratio(found[name], found["castalia"], "wall").median
        bars.append(Bar(f"times as fast as {name}", faster, ">=", 3.0))
        lost = (found[name].score or 0) - (found["castalia"].score or 0)
        bars.append(Bar(f"test log-likelihood below {name}'s", lost, "<=", 0.005))
    text = table(found, "castalia", "test log-likelihood")
    figures = {name: vars(result) for name, result in found.items()}
    setting = f"{size.rows:,} rows, 5 columns, ARD RBF + noise, {size.rounds} rounds."
    return Report("gaussian_processes", setting, text, bars, figures)


def likelihood(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> float:
    z = (y - mean) / std
    return float(np.mean(-0.5 * z**2 - np.log(std) - 0.5 * math.log(2 * math.pi)))


def ours(X: Any, y: Any, X_test: Any, y_test: Any) -> Callable[[], float]:
    from castalia import GaussianProcessRegressor

    model = GaussianProcessRegressor(random_state=0, device="cpu").fit(X, y)
    return lambda: likelihood(y_test, *model.predict(X_test, return_std=True))


def sklearn(X: Any, y: Any, X_test: Any, y_test: Any) -> Callable[[], float]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel() * RBF(np.full(X.shape[1], 2.6)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    return lambda: likelihood(y_test, *model.predict(X_test, return_std=True))


def gpytorch_parts(X: Any, y: Any, device: str = "cpu", dtype: str = "float64") -> Any:
    """Return model, likelihood and marginal likelihood of GPyTorch, ARD RBF."""
    import gpytorch
    import torch

    x = torch.as_tensor(X, dtype=getattr(torch, dtype), device=device)
    t = torch.as_tensor((y - y.mean()) / y.std(), dtype=getattr(torch, dtype), device=device)
    noise = gpytorch.likelihoods.GaussianLikelihood().to(x)

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(x, t, noise)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=x.shape[1])
            )

        def forward(self, rows: Any) -> Any:
            mean, cov = self.mean_module(rows), self.covar_module(rows)
            return gpytorch.distributions.MultivariateNormal(mean, cov)

    model = Model().to(x)
    return model, noise, gpytorch.mlls.ExactMarginalLogLikelihood(noise, model), x, t


def gpytorch(X: Any, y: Any, X_test: Any, y_test: Any) -> Callable[[], float]:
    """GPyTorch by Cholesky's factor; Adam at 0.1 for 50 steps, as its tutorial does."""
    import gpytorch as g
    import torch

    model, noise, evidence, x, t = gpytorch_parts(X, y)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    with g.settings.fast_computations(False, False, False), g.settings.max_cholesky_size(10**6):
        for _ in range(50):
            optimizer.zero_grad()
            loss = -evidence(model(x), t)
            loss.backward()
            optimizer.step()

    def score() -> float:
        model.eval()
        with torch.no_grad(), g.settings.max_cholesky_size(10**6):
            found = noise(model(torch.as_tensor(X_test)))
        mean = found.mean.numpy() * y.std() + y.mean()
        return likelihood(y_test, mean, found.stddev.numpy() * y.std())

    return score


def step_report(size: Size) -> Report:
    """Median seconds of value and gradient of the marginal likelihood on CUDA."""
    import torch

    from castalia.models.kernel import RBF, Constant, White
    from castalia.models.kernel.gaussian_evidence import GaussianEvidence

    device = "cuda" if torch.cuda.is_available() else "cpu"
    X, y = data(size.gpu_rows)
    x = torch.as_tensor(X, device=device)
    t = torch.as_tensor((y - y.mean()) / y.std(), device=device)[:, None]
    kernel = Constant() * RBF((2.6,) * 5) + White(0.1)
    evidence = GaussianEvidence(kernel, x, t, None, "benchmark")
    theta = kernel.theta(5).to(device)
    figures: dict[str, Any] = {
        "castalia": _seconds(lambda: evidence.value_and_slope(theta), device)
    }
    if installed("gpytorch"):
        model, _, marginal, gx, gt = gpytorch_parts(X, y, device, "float32")
        model.train()

        def step() -> None:
            model.zero_grad()
            (-marginal(model(gx), gt)).backward()

        figures["gpytorch, default, float32"] = _seconds(step, device)
    text = "\n".join(f"| {name} | {1e3 * s:.1f} ms |" for name, s in figures.items())
    bars = [
        Bar("one hyperparameter step, exact Cholesky", 1e3 * figures["castalia"], "<=", 38, " ms")
    ]
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    setting = f"{size.gpu_rows:,} x 5, float64, value and gradient, {name}."
    return Report("gaussian_processes_gpu", setting, text, bars, figures)


def _seconds(step: Callable[[], Any], device: str, repeats: int = 10) -> float:
    import torch

    found = []
    for i in range(repeats + 3):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        if i >= 3:
            found.append(time.perf_counter() - start)
    return float(np.median(found))


if __name__ == "__main__":
    main(run, gpu=int)
