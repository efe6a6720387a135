"""A small network on a GPU, where launching kernels decides: our whole fit against bare loops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from benchmarks.harness import Bar, Report, Spread, main
from benchmarks.peers import network
from benchmarks.recorded_loop import replay

HIDDEN, BATCH, LR = (256, 256), 128, 1e-3


@dataclass(frozen=True)
class Size:
    rows: int
    epochs: int  # of our fit and of the graph
    eager_epochs: int
    rounds: int


SIZES = {
    "full": Size(60_000, 100, 6, 3),
    "quick": Size(20_000, 5, 2, 2),
    "tiny": Size(1_000, 1, 1, 1),
}


def data(
    rows: int, seed: int, columns: int = 784, classes: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """Classes that a linear map of a noisy input almost tells apart: (n, 784) and (n,)."""
    centres = np.random.default_rng(7).standard_normal((classes, columns)) * 0.12
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=rows)
    X = centres[y] + random.standard_normal((rows, columns))
    return X.astype(np.float32), y


def run(scale: str = "full") -> Report:
    """Count rows per second of training; ours is the whole ``fit``, data transfer included."""
    size = SIZES[scale]
    if not torch.cuda.is_available():
        return Report("gpu_mlp", "Not measured.", "No CUDA device: this benchmark needs one.")
    X, y = data(size.rows, seed=0)
    X_test, y_test = data(10_000, seed=1)
    contenders: dict[str, tuple[int, Callable[[int], Callable]]] = {
        "castalia, whole fit": (size.epochs, lambda epochs: castalia(X, y, epochs)),
        "castalia, whole fit, float32 products": (
            size.epochs,
            lambda epochs: castalia(X, y, epochs, "float32"),
        ),
        "bare eager loop": (size.eager_epochs, lambda epochs: eager(X, y, epochs)),
        "bare CUDA graph": (size.epochs, lambda epochs: graph(X, y, epochs)),
    }
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    accuracy, models = {}, {}
    for number in range(-1, size.rounds):  # the first round warms up
        for name, (epochs, fit) in contenders.items():
            seconds, predict = timed(lambda fit=fit, epochs=epochs: fit(epochs))
            if number >= 0:
                speeds[name].append(epochs * len(X) / seconds)
            models[name] = predict
    for name, (_, fit) in contenders.items():
        predict = models[name] if contenders[name][0] == size.epochs else fit(size.epochs)
        accuracy[name] = float((predict(X_test) == y_test).mean())
    return report(size, speeds, accuracy)


def report(size: Size, speeds: dict[str, list[float]], accuracy: dict[str, float]) -> Report:
    base = speeds["bare eager loop"]
    lines = [
        "| contender | rows/s, median (min–max) | times the eager loop | test accuracy |",
        "|---|---|---|---|",
    ]
    times = {}
    for name, found in speeds.items():
        times[name] = Spread.of([a / b for a, b in zip(found, base, strict=True)])
        rows = Spread.of(found)
        lines.append(f"| {name} | {rows:,.0f} | {times[name]:.2f} | {accuracy[name]:.4f} |")
    gap = abs(accuracy["castalia, whole fit"] - accuracy["bare eager loop"])
    bars = [
        Bar("whole fit, times the bare eager loop", times["castalia, whole fit"].median, ">=", 10),
        Bar("difference of test accuracy from the eager loop", gap, "<=", 0.01),
    ]
    setting = (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}; {size.rows:,} rows x 784, "
        f"MLP 784-256-256-10, batch {BATCH}, {size.epochs} epochs "
        f"(eager {size.eager_epochs}), {size.rounds} rounds."
    )
    figures = {"speeds": speeds, "accuracy": accuracy}
    return Report("gpu_mlp", setting, "\n".join(lines), bars, figures)


def timed(fit: Callable[[], Callable]) -> tuple[float, Callable]:
    """Seconds until the device has finished, and what the fit returned."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    predict = fit()
    torch.cuda.synchronize()
    return time.perf_counter() - start, predict


def castalia(X: np.ndarray, y: np.ndarray, epochs: int, precision: str = "auto") -> Callable:
    """Our fit, from arrays on the host to a fitted estimator; "auto" takes tf32 products here."""
    from castalia.models.dense import MLPClassifier
    from castalia.train import Training

    model = MLPClassifier(
        hidden=HIDDEN,
        epochs=epochs,
        batch_size=BATCH,
        lr=LR,
        training=Training(validation=0, verbose=False, device="cuda", precision=precision),
        random_state=0,
    ).fit(X, y)
    return model.predict


def eager(X: np.ndarray, y: np.ndarray, epochs: int) -> Callable:
    """The usual loop with the data already on the device."""
    inputs, targets, net = _on_device(X, y)
    optimizer = torch.optim.Adam(net.parameters(), lr=LR, fused=True)
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for index in torch.randperm(len(inputs), device="cuda").split(BATCH):
            optimizer.zero_grad()
            criterion(net(inputs[index]), targets[index]).backward()
            optimizer.step()
    return _predictor(net)


def graph(X: np.ndarray, y: np.ndarray, epochs: int) -> Callable:
    """The same step recorded once; replays need only row numbers. A short last batch is dropped."""
    inputs, targets, net = _on_device(X, y)
    optimizer = torch.optim.Adam(net.parameters(), lr=LR, fused=True, capturable=True)
    criterion = nn.CrossEntropyLoss()
    index = torch.arange(BATCH, device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        criterion(net(inputs[index]), targets[index]).backward()
        optimizer.step()

    replay(step, index, len(inputs), epochs)
    return _predictor(net)


def _on_device(X: np.ndarray, y: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, nn.Module]:
    torch.manual_seed(0)
    net = network(X.shape[1], 10, HIDDEN).cuda()
    return torch.from_numpy(X).cuda(), torch.from_numpy(y).cuda(), net


def _predictor(net: nn.Module) -> Callable:
    def predict(X: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return net(torch.from_numpy(X).cuda()).argmax(1).cpu().numpy()

    return predict


if __name__ == "__main__":
    main(run)
