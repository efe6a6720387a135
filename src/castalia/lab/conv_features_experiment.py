"""What a convolutional network looks for: filters that are edges, and the maps they make.

Left, the first filters before and after training; right, what they find in a digit. A filter that
is an edge has one direction: the share of its energy along its main axis of change is high. Random
filters have none. Later maps are coarser and tell classes apart better than the pixels do.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from castalia.evaluate.displays import FeatureMaps
from castalia.evaluate.network_probe import encoded
from castalia.lab.digits import digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.vision import ConvNetClassifier
from castalia.nn import recording
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, INK, caption

__all__ = ["orientation", "run"]

FINE = 32  # points a side of the spectrum


def orientation(filters: Tensor) -> Tensor:  # (D, k, k)
    """Return how much each filter has one direction, (D,): 0 for none, 1 for a plane wave.

    The energy of a filter at frequency u is |W(u)|^2, and along the direction of u it adds to
    M = sum |W|^2 u u^T / |u|^2. An edge or a bar changes along one axis only, so one eigenvalue of
    M holds most: (l1 - l2) / (l1 + l2), the coherence of a structure tensor.

    Examples
    --------
    >>> edge = torch.tensor([[-1.0, 0.0, 1.0]]).repeat(3, 1)
    >>> spot = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
    >>> [round(float(v), 1) for v in orientation(torch.stack([edge, edge.T, spot]))]
    [0.6, 0.6, 0.0]
    """
    centred = filters - filters.mean(dim=(1, 2), keepdim=True)
    energy = torch.fft.fft2(centred, s=(FINE, FINE)).abs().square()  # (D, n, n)
    u = torch.fft.fftfreq(FINE).to(filters)
    length = torch.hypot(u[:, None], u[None, :]).clamp_min(1 / FINE)
    down, across = u[:, None] / length, u[None, :] / length
    yy, xx = (energy * down**2).sum(dim=(1, 2)), (energy * across**2).sum(dim=(1, 2))
    xy = (energy * down * across).sum(dim=(1, 2))
    split = ((yy - xx).square() + 4 * xy.square()).sqrt()
    return split / (yy + xx).clamp_min(torch.finfo(filters.dtype).tiny)


def separability(codes: Tensor, y: Tensor) -> float:
    """Return the spread between the classes' means as a share of all spread."""
    codes = codes.flatten(1).double()
    overall = codes.mean(dim=0)
    classes = y.unique()
    between = sum(
        (y == k).double().mean() * (codes[y == k].mean(dim=0) - overall).square().sum()
        for k in classes
    )
    return float(between / (codes - overall).square().sum(dim=1).mean())


def network(epochs: int) -> ConvNetClassifier:
    """Return a classifier whose first filters are large enough to be seen.

    Weight decay takes away what is left of the random start.
    """
    return ConvNetClassifier(
        widths=(16, 32),
        convs=1,
        kernel=5,
        epochs=epochs,
        lr=3e-3,
        training=Training(weight_decay=0.3),
        random_state=0,
    )


def run(*, quick: bool = False) -> Outcome:
    """Train a network on digits and look inside it."""
    data = digits(800 if quick else 1200, 300, small=True)
    X, shown = (
        part.reshape(-1, data.side, data.side).astype(np.float32) for part in (data.x, data.x_test)
    )
    trained = network(25).fit(X, data.y)
    raw = network(1).set_params(lr=1e-30).fit(X, data.y)
    steps = _through(*encoded("conv-features", trained, shown))
    known = {
        name: separability(maps, torch.from_numpy(data.y_test)) for name, maps in steps.items()
    }
    spread = {
        name: orientation(_first(model.module_).double())
        for name, model in (("random", raw), ("trained", trained))
    }
    figure, axes = panels(4, (12.5, 3.3))
    FeatureMaps.from_filters(trained.module_).plot(axes[0])
    FeatureMaps.from_estimator(trained, shown, layer="features.stage1.2", row=1).plot(axes[1])
    axes[0].set_title("first filters", color=INK, size=10.5)
    axes[1].set_title(f"their maps of a {data.y_test[1]}", color=INK, size=10.5)
    for (name, values), colour in zip(spread.items(), (COLOURS[7], COLOURS[0]), strict=True):
        share = np.arange(1, len(values) + 1) / len(values)
        axes[2].step(np.sort(values.numpy()), share, where="post", color=colour, label=name)
    axes[2].set(xlabel="one direction: 0 no, 1 wholly", ylabel="share of filters", xlim=(0, 1))
    caption(axes[2])
    axes[3].plot(list(known), list(known.values()), "o-", color=COLOURS[0], ms=4)
    axes[3].set(ylabel="spread between classes, share")
    numbers = {
        "share right": float(trained.score(shown, data.y_test)),
        "orientation, random filters": float(spread["random"].median()),
        "orientation, trained filters": float(spread["trained"].median()),
        **{f"between classes, {name}": value for name, value in known.items()},
    }
    said = (
        f"On {data.name}, the median filter's energy has one direction to "
        f"{numbers['orientation, trained filters']:.2f} after training and "
        f"{numbers['orientation, random filters']:.2f} before."
    )
    return Outcome(figure, numbers, said)


def _first(net: nn.Module) -> Tensor:
    """Return the filters of the first convolution, (D, k, k)."""
    first = next(layer for layer in net.modules() if isinstance(layer, nn.Conv2d))
    return first.weight.detach()[:, 0].cpu()


@torch.no_grad()
def _through(net: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Return the images, the maps after each stage, and the scores."""
    with recording(net, ["features.stage1", "features.stage2"]) as seen:
        scores = net(x)
    maps = {f"stage {i}": out for i, (_, _, out) in enumerate(seen, start=1)}
    return {name: out.cpu() for name, out in {"pixels": x, **maps, "scores": scores}.items()}
