"""A VAE and a GAN of small images on a GPU: our whole fit against a bare loop of recorded steps.

Both sides train the same networks with the same arithmetic (bf16 products, channels last); ours
includes checks, the transfer of the images, and what fills the history.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.gpu_mlp import timed
from benchmarks.harness import Bar, Report, Spread, main
from benchmarks.recorded_loop import replay

BATCH, LR = 128, 2e-4
Phases = list[tuple[nn.Module, Callable[[Tensor], Tensor]]]  # what learns, and its loss


@dataclass(frozen=True)
class Size:
    rows: int
    epochs: int
    rounds: int


SIZES = {"full": Size(60_000, 40, 2), "quick": Size(10_000, 3, 1), "tiny": Size(512, 1, 1)}


def run(scale: str = "full") -> Report:
    """Compare images a second of both models."""
    size = SIZES[scale]
    if not torch.cuda.is_available():
        return Report("generative_steps", "Not measured.", "No CUDA device: this needs one.")
    X = np.random.default_rng(0).integers(0, 256, (size.rows, 28, 28), dtype=np.uint8)
    lines = ["| model | castalia, images/s | bare loop | share of its speed |", "|---|---|---|---|"]
    bars, figures = [], {}
    for name, (make, phases) in {"VAE": (vae, elbo), "GAN": (gan, game)}.items():
        seconds = race(make, phases, X, size)
        both = {side: Spread.of([size.rows * size.epochs / s for s in found])
                for side, found in seconds.items()}  # fmt: skip
        share = Spread.of([b / a for a, b in zip(*seconds.values(), strict=True)])
        lines.append(f"| {name} | {both['castalia']:,.0f} | {both['bare']:,.0f} | {share:.3f} |")
        bars.append(Bar(f"{name}: whole fit, share of the bare loop's speed",
                        share.median, ">=", 0.97))  # fmt: skip
        figures[name] = seconds
    setting = (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}; {size.rows:,} images of "
        f"28 x 28, batch {BATCH}, {size.epochs} epochs, {size.rounds} rounds."
    )
    return Report("generative_steps", setting, "\n".join(lines), bars, figures)


def race(
    make: Callable[[int], Any], phases: Callable[[Any], Phases], X: np.ndarray, size: Size
) -> dict[str, list[float]]:
    """Seconds of whole fits and of bare loops, in turn; a short first round warms up."""
    net = copy.deepcopy(make(1).fit(X[:BATCH]).module_)
    found: dict[str, list[float]] = {"castalia": [], "bare": []}
    for number in range(-1, size.rounds):
        epochs = size.epochs if number >= 0 else 1
        ours, _ = timed(lambda n=epochs: make(n).fit(X))
        theirs, _ = timed(lambda n=epochs: bare(copy.deepcopy(net).cuda(), phases, X, n))
        if number >= 0:
            found["castalia"].append(ours)
            found["bare"].append(theirs)
        print(f"round {number}: whole fit {ours:.2f} s, bare loop {theirs:.2f} s", flush=True)
    return found


def vae(epochs: int) -> Any:
    """Convolutions, 32 latent units."""
    from castalia import Training, VariationalAutoencoder

    return VariationalAutoencoder(
        code=32, width=32, epochs=epochs, batch_size=BATCH, lr=LR, random_state=0,
        training=Training(validation=0, precision="bf16"),
    )  # fmt: skip


def gan(epochs: int) -> Any:
    """A DCGAN."""
    from castalia import GenerativeAdversarialNetwork, Training

    return GenerativeAdversarialNetwork(
        noise=64, width=32, epochs=epochs, batch_size=BATCH, lr=LR, random_state=0,
        training=Training(validation=0, precision="bf16"),
    )  # fmt: skip


def elbo(net: Any) -> Phases:
    """The bound of Bernoulli pixels."""

    def loss(x: Tensor) -> Tensor:
        mean, log_variance = net.posterior(x)
        z = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        fit = F.binary_cross_entropy_with_logits(
            net.decode(z).float(), x.flatten(1), reduction="sum"
        )
        kl = (mean.square() + log_variance.exp() - 1 - log_variance).sum() / 2
        return (fit + kl) / len(x)

    return [(net, loss)]


def game(net: Any) -> Phases:
    """The non-saturating game."""

    def drawn(x: Tensor) -> Tensor:
        return net.generator(torch.randn(len(x), net.generator.noise, device=x.device))

    def critic(x: Tensor) -> Tensor:
        fake = net.discriminate(drawn(x).detach())
        return (F.softplus(-net.discriminate(x.flatten(1))) + F.softplus(fake)).mean()

    def generator(x: Tensor) -> Tensor:
        return F.softplus(-net.discriminate(drawn(x))).mean()

    return [(net.critic, critic), (net.generator, generator)]


def bare(net: nn.Module, phases: Callable[[Any], Phases], X: np.ndarray, epochs: int) -> nn.Module:
    """One recorded step, replayed with other row numbers."""
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = torch.from_numpy(X).cuda()[:, None].float() / 255
    parts = [
        (torch.optim.Adam(part.parameters(), lr=LR, fused=True, capturable=True), loss)
        for part, loss in phases(net)
    ]
    index = torch.arange(BATCH, device="cuda")

    def step() -> None:
        x = images[index]
        for optimizer, loss in parts:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16):
                value = loss(x)
            value.backward()
            optimizer.step()

    replay(step, index, len(images), epochs)
    return net


if __name__ == "__main__":
    main(run)
