"""Linear regressions on a long table: our fits against scikit-learn's, at equal objective."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.harness import Bar, Contender, Report, Spread, main, race, ratio, table

ALPHA = {"LinearRegression": {}, "Ridge": {"alpha": 1.0}, "Lasso": {"alpha": 0.1}}


@dataclass(frozen=True)
class Size:
    rows: int
    columns: int
    rounds: int
    gpu_rows: int
    gpu_columns: int


SIZES = {
    "full": Size(100_000, 50, 7, 10_000_000, 100),
    "quick": Size(20_000, 20, 3, 1_000_000, 50),
    "tiny": Size(500, 5, 1, 5_000, 10),
}


def data(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated columns far from zero, half of which matter."""
    random = np.random.default_rng(seed)
    mix = np.eye(columns) + 0.3 * random.normal(size=(columns, columns)) / columns**0.5
    X = random.normal(size=(rows, columns)) @ mix + random.normal(size=columns)
    w = random.normal(size=columns) * (np.arange(columns) % 2)
    return X, X @ w + random.normal(size=rows) + 3


def objective(name: str, model: Any, X: Any, y: Any) -> float:
    """What the model minimises, as a mean over the rows."""
    coef = torch.as_tensor(np.asarray(model.coef_, dtype=np.float64)).to(X.device)
    error = y - X.to(torch.float64) @ coef - float(model.intercept_)
    loss = float((error**2).mean())
    if name == "Ridge":
        return loss + ALPHA[name]["alpha"] * float((coef**2).sum()) / len(y)
    return loss / 2 + ALPHA[name]["alpha"] * float(coef.abs().sum()) if name == "Lasso" else loss


def run(scale: str = "full") -> Report:
    """Time the whole fit of each regression on one thread, and once more on a GPU if there is."""
    size = SIZES[scale]
    X, y = data(size.rows, size.columns)
    texts, bars, figures = [], [], {}
    for name in ALPHA:
        text, found = compare(name, X, y, size.rounds)
        texts.append(text)
        bars += found.pop("bars")
        figures[name] = found
    if torch.cuda.is_available():
        text, found = on_gpu(size)
        texts.append(text)
        figures["gpu"] = found
    setting = f"{size.rows:,} rows x {size.columns} float64, one thread, {size.rounds} rounds."
    return Report("linear", setting, "\n\n".join(texts), bars, figures)


def compare(name: str, X: np.ndarray, y: np.ndarray, rounds: int) -> tuple[str, dict[str, Any]]:
    """Race one regression against scikit-learn's."""
    rows, targets = torch.from_numpy(X), torch.from_numpy(y)
    contenders = [
        Contender(who, fit(make, name, X, y, rows, targets))
        for who, make in (("castalia", ours), ("scikit-learn", theirs))
    ]
    found = race(contenders, rounds)
    mine, peer = found["castalia"], found["scikit-learn"]
    bars = [
        Bar(f"{name}, times as fast as scikit-learn", ratio(peer, mine).median, ">=", 1.0),
        Bar(f"{name}, objective over scikit-learn's", mine.score / peer.score - 1, "<=", 1e-6),
    ]
    text = f"{name}\n\n{table(found, 'castalia', 'objective')}"
    return text, {"bars": bars, **{who: vars(result) for who, result in found.items()}}


def fit(make: Callable[[str], Any], name: str, X: Any, y: Any, rows: Any, targets: Any) -> Any:
    """Return a function that fits once and returns a function that gives the objective."""

    def once() -> Callable[[], float]:
        model = make(name).fit(X, y)
        return lambda: objective(name, model, rows, targets)

    return once


def ours(name: str, device: str = "cpu") -> Any:
    import castalia

    return getattr(castalia, name)(device=device, **ALPHA.get(name, {}))


def theirs(name: str) -> Any:
    from sklearn import linear_model

    return getattr(linear_model, name)(**ALPHA.get(name, {}))


def on_gpu(size: Size) -> tuple[str, dict[str, Any]]:
    """Fit tensors on the device, and scikit-learn once on the same rows on the CPU beside it."""
    random = torch.Generator("cuda").manual_seed(0)
    X = torch.randn(size.gpu_rows, size.gpu_columns, device="cuda", generator=random) + 1
    w = torch.randn(size.gpu_columns, device="cuda", generator=random)
    y = X @ w + torch.randn(size.gpu_rows, device="cuda", generator=random)
    rows = X.cpu().numpy()
    seconds: dict[str, Any] = {}
    heads = "| on the GPU | s, median (min–max) | scikit-learn on its CPU, s | times | gap |"
    lines = [heads, "|---|---|---|---|---|"]
    for name in (*ALPHA, "LogisticRegression"):
        target = (y > y.mean()).long() if name == "LogisticRegression" else y
        found = []
        for _ in range(4):
            torch.cuda.synchronize()
            start = time.perf_counter()
            model = ours(name, "cuda").fit(X, target)
            found.append(time.perf_counter() - start)
        start = time.perf_counter()
        peer = theirs(name).fit(rows, target.cpu().numpy())
        once = time.perf_counter() - start
        gap = float(np.abs(np.ravel(model.coef_) - np.ravel(peer.coef_)).max())
        spread = Spread.of(found[1:])
        seconds[name] = {"gpu": found, "scikit-learn": once, "gap": gap}
        times = f"{once / spread.median:.0f}"
        lines.append(f"| {name} | {spread:.3f} | {once:.1f} | {times} | {gap:.1g} |")
    where = f"{torch.cuda.get_device_name()}: {size.gpu_rows:,} rows x {size.gpu_columns} float32"
    note = "The gap is the largest difference of a weight."
    return f"{where}. {note}\n\n" + "\n".join(lines), seconds


if __name__ == "__main__":
    main(run)
