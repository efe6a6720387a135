"""Whole graphs, second-order steps, large batches, schedules that end at zero, steps by hand."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evidence.corpus.regimes._data import digits, graph, surface
from evidence.corpus.regimes._rates import regime
from evidence.corpus.regimes.losses_and_weights import batches, classify, explained, right


class Graphs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(80, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor, a: Tensor) -> Tensor:
        h = F.relu(a @ self.first(F.dropout(x, 0.5, self.training)))
        return F.log_softmax(a @ self.second(F.dropout(h, 0.5, self.training)), dim=1)


@regime(high=(100,), low=(0.1, 1 / 30, 0.01), harmless=(10,), data="graph", net="gcn")
def a_graph_in_one_piece(seed: int, factor: float) -> float:
    x, a, y, train = graph(seed)
    model = Graphs()
    optimizer = torch.optim.Adam(model.parameters(), lr=factor * 0.01, weight_decay=5e-4)
    for _ in range(200):
        model.train()
        optimizer.zero_grad()
        F.nll_loss(model(x, a)[train], y[train]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return (model(x, a).argmax(1) == y)[~train].float().mean().item()


@regime(high=(10, 100), low=(0.1, 1 / 30, 0.01), data="graph", net="gcn")
def a_sparse_graph_in_one_piece(seed: int, factor: float) -> float:
    x, a, y, train = graph(seed)
    a = a.to_sparse()
    torch.manual_seed(seed)
    first, second = nn.Linear(80, 32), nn.Linear(32, 4)
    model = nn.ModuleList([first, second])
    optimizer = torch.optim.Adam(model.parameters(), lr=factor * 0.02)

    def answer() -> Tensor:
        return torch.sparse.mm(a, second(F.relu(torch.sparse.mm(a, first(x)))))

    for _ in range(150):
        optimizer.zero_grad()
        F.cross_entropy(answer()[train], y[train]).backward()
        optimizer.step()
    with torch.no_grad():
        return (answer().argmax(1) == y)[~train].float().mean().item()


@regime(high=(10, 100), low=(1 / 30, 0.01), data="table")
def second_order_steps_on_all_rows(seed: int, factor: float) -> float:
    x, y, x_held, y_held = surface(seed, 300)
    model = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=factor * 0.5, max_iter=4)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(40):
        optimizer.step(closure)
    return explained(model, x_held, y_held)


@regime(harmless=(0.1, 0.01), data="table")
def second_order_steps_with_a_line_search(seed: int, factor: float) -> float:
    x, y, x_held, y_held = surface(seed, 300)
    model = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1))
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=factor, max_iter=20, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(10):
        optimizer.step(closure)
    return explained(model, x_held, y_held)


@regime(high=(10, 100), low=(0.01,), harmless=(0.1,))
def large_batches_with_warmup(seed: int, factor: float) -> float:
    data = digits(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(
        model.parameters(), lr=factor * 0.8, momentum=0.9, nesterov=True, weight_decay=1e-4
    )
    epochs = 30
    steps = epochs * 3

    def share(step: int) -> float:
        if step < 15:
            return (step + 1) / 15
        return 0.5 * (1 + math.cos(math.pi * (step - 15) / (steps - 15)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    return classify(model, optimizer, data, epochs=epochs, size=512, scheduler=scheduler)


@regime(high=(100,), low=(0.1, 1 / 30, 0.01), harmless=(10,))
def one_cycle_that_ends_at_zero(seed: int, factor: float) -> float:
    data = digits(seed)
    model = nn.Sequential(
        nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.4), nn.Linear(96, 96), nn.ReLU(),
        nn.Dropout(0.4), nn.Linear(96, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=factor * 5e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=factor * 5e-3, total_steps=8 * 22
    )
    return classify(model, optimizer, data, epochs=8, scheduler=scheduler)


@regime(low=(0.1, 1 / 30, 0.01), harmless=(10, 100), data="table")
def a_rate_set_by_hand_down_to_zero(seed: int, factor: float) -> float:
    x, y, x_held, y_held = surface(seed)
    model = nn.Sequential(
        nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=factor * 5e-3)
    epochs = 40
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = factor * 5e-3 * min(1.0, (epoch + 1) / 4) * (1 - epoch / epochs)
        model.train()
        for rows in batches(x, 50):
            loss = F.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            F.mse_loss(model(x_held), y_held)
    return explained(model, x_held, y_held)


@regime(high=(10, 100), low=(1 / 30, 0.01))
def descent_written_out_under_no_grad(seed: int, factor: float) -> float:
    x, y, x_held, y_held = digits(seed)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    lr = factor * 0.3
    for _ in range(12):
        model.train()
        for rows in batches(x, 64):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= lr * p.grad
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(x_held), y_held)
    return right(model, x_held, y_held)


@regime(high=(10, 100), low=(1 / 30, 0.01), data="table")
def momentum_written_out_on_the_data(seed: int, factor: float) -> float:
    x, y, x_held, y_held = surface(seed)
    model = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 1))
    speed = [torch.zeros_like(p) for p in model.parameters()]
    lr = factor * 0.05
    for _ in range(60):
        for rows in batches(x, 50):
            loss = F.mse_loss(model(x[rows]), y[rows])
            for p in model.parameters():
                p.grad = None
            loss.backward()
            for p, v in zip(model.parameters(), speed, strict=True):
                v.mul_(0.9).add_(p.grad)
                p.data -= lr * v
    return explained(model, x_held, y_held)
