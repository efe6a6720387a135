"""The images of ``docs/inside.md``: what the displays of a network's inside show.

``tools/figures.py`` draws them. Where MNIST is in the cache it is used, else scikit-learn's digits.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional as F

from castalia import MLPClassifier, Training
from castalia.evaluate import (
    ActivationHistogram,
    AttentionMap,
    FeatureMaps,
    GradientNorms,
    LossLandscape,
    UpdateRatios,
    WorstMistakes,
)
from castalia.lab.digits import Digits, digits
from castalia.lab.figure_panels import panels
from castalia.nn import Residual
from castalia.objectives import CrossEntropy
from castalia.testing import train_tensors
from castalia.utils.figure_style import INK, dress

__all__ = ["FIGURES"]

Found = tuple[Figure, str]


@cache
def data() -> Digits:
    """Two thousand digits to learn from, a thousand to test on."""
    return digits(2000, 1000)


def tensors() -> tuple[Tensor, Tensor]:
    """Return the training rows and their digits."""
    return torch.tensor(data().x, dtype=torch.float32), torch.tensor(data().y)


# ---- gradients ----


def chain(unit: type[nn.Module], scale: float | None = None, depth: int = 14) -> nn.Module:
    """Return equal layers on top of each other, their weights drawn with a standard deviation."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(48, 48), unit()]
        if scale is not None:
            nn.init.normal_(layers[-2].weight, std=scale / 48**0.5)
    return nn.Sequential(*layers, nn.Linear(48, 10))


def gradient_norms() -> Found:
    """One batch through fresh networks: the gradient vanishes, lasts, or explodes."""
    figure, axes = panels(3, (11, 3.4))
    x, y = torch.randn(256, 48), torch.randint(10, (256,))
    kinds = {
        "sigmoid": chain(nn.Sigmoid),
        "ReLU, weights of variance 2 / n": chain(nn.ReLU, 2**0.5),
        "tanh, weights of variance 9 / n": chain(nn.Tanh, 3.0),
    }
    words = []
    for ax, (name, net) in zip(axes, kinds.items(), strict=True):
        shown = GradientNorms.from_network(net, nn.CrossEntropyLoss(), x, y).plot(ax=ax)
        ax.set_title(name)
        words.append(f"{name}: factor {shown.factor:.3g} a layer, first {shown.norms[0, 0]:.2g}")
    for ax in axes[1:]:
        ax.set_ylabel("")
    return figure, "; ".join(words)


# ---- updates ----


def update_ratios() -> Found:
    """The same training with three learning rates."""
    figure, axes = panels(3, (12.5, 3.4))
    words = []
    for ax, lr in zip(axes, (1e-5, 1e-3, 1e-1), strict=True):
        model = MLPClassifier(hidden=(64, 64, 64), epochs=6, lr=lr, random_state=0)
        shown = UpdateRatios.from_estimator(model, data().x, data().y).plot(ax=ax)
        score = model.fit(data().x, data().y).score(data().x_test, data().y_test)
        ax.set(title=f"lr = {lr:g}: test accuracy {score:.2f}", ylim=(1e-6, 1))
        ax.get_legend().set_visible(ax is axes[-1])
        middle = np.median(list(shown.typical.values()))
        words.append(f"lr {lr:g}: median {middle:.2g}, accuracy {score:.3f}")
    for ax in axes[1:]:
        ax.set_ylabel("")
    return figure, "; ".join(words)


# ---- activations ----


def activations() -> Found:
    """Tanh networks at three scales of weights."""
    figure, axes = panels(3, (12, 4.2))
    x, words = torch.randn(512, 48), []
    for ax, scale in zip(axes, (0.5, 1.0, 4.0), strict=True):
        shown = ActivationHistogram.from_network(chain(nn.Tanh, scale, 8), x).plot(ax=ax)
        ax.set_title(f"weights of standard deviation {scale:g} / √n")
        words.append(f"{scale:g}: std {shown.std[0]:.2f} to {shown.std[-1]:.3f}")
        words[-1] += f", flat {shown.flat[-1]:.0%}"
        ax.spines["left"].set_visible(False)
    return figure, "; ".join(words)


def dead_units() -> Found:
    """Too large a step kills ReLUs."""
    figure, axes = panels(2, (9.5, 2.7))
    words = []
    for ax, lr in zip(axes, (1e-3, 5e-2), strict=True):
        model = MLPClassifier(hidden=(64, 64, 64), epochs=6, lr=lr, random_state=0)
        model.fit(data().x, data().y)
        shown = ActivationHistogram.from_estimator(model, data().x_test).plot(ax=ax)
        score = model.score(data().x_test, data().y_test)
        ax.set_title(f"lr = {lr:g}: test accuracy {score:.2f}")
        ax.spines["left"].set_visible(False)
        words.append(f"lr {lr:g}: dead {shown.dead.tolist()} of 64, accuracy {score:.3f}")
    return figure, "; ".join(words)


# ---- convolutions ----


class Convolutional(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5 if side > 8 else 3, padding="same")
        self.conv2 = nn.Conv2d(16, 32, 5 if side > 8 else 3, padding="same")
        self.head = nn.Linear(32 * (side // 4) ** 2, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        h = F.max_pool2d(F.relu(self.conv1(x)), 2)
        h = F.max_pool2d(F.relu(self.conv2(h)), 2)
        return self.head(h.flatten(1))


@cache
def convolutional() -> tuple[nn.Module, Tensor]:
    """Return a trained network and test images."""
    side = data().side
    x, y = tensors()
    torch.manual_seed(0)
    net = Convolutional(side)
    training = Training(validation=0, optimizer="adamw", weight_decay=1.0)
    images = x.reshape(-1, 1, side, side)
    train_tensors(
        net, CrossEntropy(), images, y, training=training, epochs=6, batch_size=50, lr=2e-3
    )
    return net.eval(), torch.tensor(data().x_test, dtype=torch.float32).reshape(-1, 1, side, side)


def feature_maps() -> Found:
    """Filters and maps of a small network that reads digits."""
    net, x = convolutional()
    figure = Figure(figsize=(12.5, 4.0), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.05])
    row = int(np.flatnonzero(data().y_test == 7)[0])
    FeatureMaps.from_filters(net).plot(ax=axes[0])
    FeatureMaps.from_network(net, x, "conv1", row=row).plot(ax=axes[1])
    FeatureMaps.from_network(net, x, "conv2", row=row).plot(ax=axes[2])
    for ax in axes:
        ax.title.set(size=10.5, color=INK)
    return figure, "maps of a 7"


def worst_mistakes() -> Found:
    """The digits it gets most wrong."""
    net, x = convolutional()
    with torch.no_grad():
        table = net(x).softmax(1).numpy().astype(float)
    shown = WorstMistakes.from_predictions(data().y_test, table, x.numpy(), most=10).plot()
    score = float((table.argmax(1) == data().y_test).mean())
    return shown.figure_, f"test accuracy {score:.3f}"


# ---- attention ----

NOUNS = ("robot", "garden", "engine", "letter", "river", "piano", "bridge", "candle")
OTHERS = ("the", "old", "near", "was", "very", "and", "so", "quiet", "today", "red")
WORDS = (*NOUNS, *OTHERS, "it")


class Reader(nn.Module):
    """One attention layer that answers what "it" was."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(len(WORDS), 32), nn.Embedding(length, 32)
        self.attend = nn.MultiheadAttention(32, 2, batch_first=True)
        self.answer = nn.Linear(32, len(NOUNS))

    def forward(self, words: Tensor) -> Tensor:
        """Return the logits of the nouns, read off at the last word."""
        h = self.word(words) + self.place.weight
        return self.answer(self.attend(h, h, h, need_weights=False)[0][:, -1])


def sentences(count: int, length: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return random words with one noun in them and "it" at the end; the noun; its place."""
    source = torch.Generator().manual_seed(seed)
    words = torch.randint(len(NOUNS), len(WORDS) - 1, (count, length), generator=source)
    place = torch.randint(0, length - 1, (count,), generator=source)
    noun = torch.randint(0, len(NOUNS), (count,), generator=source)
    words[torch.arange(count), place] = noun
    words[:, -1] = len(WORDS) - 1
    return words, noun, place


def attention() -> Found:
    """A pronoun finds its noun."""
    length = 9
    words, noun, _ = sentences(512, length, 0)
    torch.manual_seed(0)
    net = Reader(length)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(150):
        optimizer.zero_grad()
        F.cross_entropy(net(words), noun).backward()
        optimizer.step()
    asked, answer, place = sentences(500, length, 1)
    tokens = [WORDS[i] for i in asked[3]]
    shown = AttentionMap.from_network(net, asked, row=3, tokens=tokens).plot()
    right = float((net(asked).argmax(1) == answer).float().mean())
    on_noun = AttentionMap.from_network(net, asked, row=3).of(length - 1)[:, int(place[3])]
    return shown.figure_, f"accuracy {right:.3f}; weight of 'it' on the noun {on_noun.round(2)}"


# ---- landscapes ----


def deep(skip: bool, depth: int = 10, width: int = 32) -> nn.Module:
    """Return a deep dense network with or without skip connections."""
    torch.manual_seed(0)
    blocks: list[nn.Module] = [
        nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU()) for _ in range(depth)
    ]
    if skip:
        blocks = [Residual(block) for block in blocks]
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), *blocks, nn.Linear(width, 10))


def landscapes() -> Found:
    """The same deep network with and without skip connections."""
    small = digits(600, 797, small=True)
    x, y = torch.tensor(small.x, dtype=torch.float32), torch.tensor(small.y)
    held = torch.tensor(small.x_test, dtype=torch.float32), torch.tensor(small.y_test)
    figure = Figure(figsize=(12, 7.2), layout="constrained")
    grid = figure.add_gridspec(2, 3, width_ratios=[1, 1, 1.1])
    curve = figure.add_subplot(grid[:, 2], box_aspect=1.0)
    dress(curve)
    squares, words = {}, []
    for skip, name in ((True, "with skip connections"), (False, "without")):
        net = deep(skip)
        training = Training(validation=0, clip=1.0)
        train_tensors(
            net, CrossEntropy(), x, y, training=training, epochs=60, batch_size=50, lr=2e-3
        )
        square = LossLandscape.from_network(net, CrossEntropy(), x, y, points=31, radius=0.5)
        line = LossLandscape.from_network(
            net, CrossEntropy(), x, y, points=61, radius=0.5, dimensions=1
        )
        line.plot(ax=curve, name=name)
        score = float((net.eval()(held[0]).argmax(1) == held[1]).float().mean())
        squares[name] = square
        words.append(f"{name}: loss {square.centre:.4f}, sharpness {square.sharpness():.2f}")
        words[-1] += f", test accuracy {score:.3f}"
    levels = squares["without"].levels()
    for j, (name, square) in enumerate(squares.items()):
        flat = figure.add_subplot(grid[0, j])
        dress(flat, grid="none")
        square.plot(ax=flat, levels=levels, name=name)
        space = figure.add_subplot(grid[1, j], projection="3d")
        square.plot(ax=space, kind="surface", levels=levels)
    return figure, "; ".join(words)


FIGURES: dict[str, Callable[[], Found]] = {
    "gradient-norms": gradient_norms,
    "update-ratios": update_ratios,
    "activations": activations,
    "dead-units": dead_units,
    "feature-maps": feature_maps,
    "worst-mistakes": worst_mistakes,
    "attention": attention,
    "landscapes": landscapes,
}
