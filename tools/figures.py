"""Draw the images of the documentation: graphs, the inside of networks, and the lab's figures.

``python tools/figures.py [names…]`` writes them to ``docs/images``.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from inside import FIGURES
from torch import Tensor, nn

from castalia import lab
from castalia.autodiff import Graph, trace

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def logistic() -> Graph:
    """Logistic regression on one example, as in the notes."""

    def loss(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return -torch.log(torch.sigmoid(w @ x + b))

    return trace(loss, torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0]), torch.tensor(0.1))


class Fit(nn.Module):
    """A network and its squared error."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss."""
        return (self.net(x) - y).square().mean()


def mlp() -> Graph:
    """Six sigmoid layers: the gradient vanishes on its way up."""
    layers = [part for _ in range(6) for part in (nn.Linear(16, 16), nn.Sigmoid())]
    return trace(
        Fit(nn.Sequential(*layers, nn.Linear(16, 1))), torch.randn(8, 16), torch.ones(8, 1)
    )


class Residual(nn.Module):
    """x + f(x), three times."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)) for _ in range(3)
        )
        self.head = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the prediction."""
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def residual() -> Graph:
    """A small residual network: the gradient has a way around every block."""
    return trace(Fit(Residual()), torch.randn(4, 8), torch.ones(4, 1))


class Last(nn.Module):
    """An LSTM read at its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.head = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the prediction."""
        return self.head(self.lstm(x)[0][:, -1])


def lstm() -> Graph:
    """An LSTM over five steps: back-propagation through time is one long graph."""
    return trace(Fit(Last()), torch.randn(2, 5, 3), torch.ones(2, 1))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "logistic": logistic,
    "mlp": mlp,
    "residual": residual,
    "lstm": lstm,
}


def main(names: list[str]) -> None:
    """Draw the images named, or all."""
    for name, make in GRAPHS.items():
        if not names or name in names:
            torch.manual_seed(0)
            graph = make()
            graph.bprop()
            print(graph.draw(IMAGES / "graphs" / f"{name}.png"))
    for name, draw in FIGURES.items():
        if not names or name in names:
            torch.manual_seed(0)
            figure, said = draw()
            file = IMAGES / "inside" / f"{name}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            figure.patch.set_alpha(1)
            figure.savefig(file, dpi=110, facecolor="white")
            print(file, said)
    for name in lab.EXPERIMENTS:
        if not names or name in names:
            found = lab.run(name)
            file = IMAGES / "lab" / f"{name}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            found.figure.savefig(file, dpi=110, facecolor="white")
            print(file, found.said)


if __name__ == "__main__":
    main(sys.argv[1:])
