"""Back-propagation box by box through a traced graph, against ``loss.backward()``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    width: int
    layers: int
    rows: int
    passes: int
    rounds: int


SIZES = {
    "full": Size(width=128, layers=10, rows=256, passes=50, rounds=9),
    "quick": Size(width=64, layers=10, rows=256, passes=10, rounds=3),
    "tiny": Size(width=4, layers=2, rows=8, passes=1, rounds=1),
}


def run(scale: str = "full", width: int | None = None) -> Report:
    """Time both on the same network, loss and batch; compare every gradient."""
    from castalia.autodiff import trace

    size = SIZES[scale]
    width = width or size.width
    torch.manual_seed(0)
    net = network(width, size.layers)
    x, y = torch.randn(size.rows, width), torch.randint(10, (size.rows,))

    def cost(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(net(x), y)

    graph = trace(cost, x)
    loss = cost(x)

    def backward(of: Callable[[], torch.Tensor]) -> None:
        net.zero_grad()
        of().backward(retain_graph=True)

    def times(step: Callable[[], object]) -> Callable[[], None]:
        def repeat() -> None:
            for _ in range(size.passes):
                step()

        return repeat

    contenders = [
        Contender("loss.backward()", times(lambda: backward(lambda: loss))),
        Contender("graph.bprop()", times(graph.bprop)),
        Contender("forward and backward", times(lambda: backward(lambda: cost(x)))),
        Contender("fprop and bprop", times(lambda: (graph.fprop(x), graph.bprop()))),
    ]
    found = race(contenders, size.rounds)
    gap = largest_gap(net, graph.bprop())
    alone = ratio(found["graph.bprop()"], found["loss.backward()"])
    both = ratio(found["fprop and bprop"], found["forward and backward"])
    bars = [
        Bar("CPU time of graph.bprop() over loss.backward()", alone.median, "<=", 3),
        Bar("CPU time of both passes over torch's", both.median, "<=", 3),
        Bar("largest relative difference of a gradient", gap, "<=", 1e-6),
    ]
    setting = (
        f"MLP of {size.layers} layers, {width} wide, batch {size.rows}, {size.passes} passes a "
        f"round, one thread, {size.rounds} rounds; {len(graph)} boxes."
    )
    figures = {name: vars(result) for name, result in found.items()} | {"gap": gap}
    return Report("graph_bprop", setting, table(found, "loss.backward()"), bars, figures)


def network(width: int, layers: int) -> nn.Module:
    """Linear layers of one width with ReLU between them, and ten outputs."""
    hidden = [part for _ in range(layers - 1) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, 10))


def largest_gap(net: nn.Module, gradients: dict[str, torch.Tensor]) -> float:
    """Largest difference of any gradient, relative to the largest entry of autograd's."""
    return max(
        float((gradients[f"net.{name}"] - p.grad).abs().max() / p.grad.abs().max())
        for name, p in net.named_parameters()
    )


if __name__ == "__main__":
    main(run, width=int)
