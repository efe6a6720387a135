"""A watched training is bit-equal to an unwatched one, whatever it is made of."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from castalia.diagnose.monitor import Doctor, watch

STEPS = 6


@dataclass
class Training:
    """What a case is made of: the watched module, its optimizers, and one step."""

    module: nn.Module
    optimizers: list[Any]
    step: Callable[[], Any]
    steps: int = STEPS


def sgd(module: nn.Module, lr: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=lr, momentum=0.5)


def data(*shape: int, classes: int = 3) -> tuple[Tensor, Tensor]:
    return torch.randn(*shape), torch.randint(0, classes, shape[:1])


def plain(
    module: nn.Module,
    x: Any,
    y: Tensor,
    loss: Any = F.cross_entropy,
    optimizer: Any = None,
) -> Training:
    """The usual four lines."""
    optimizer = sgd(module) if optimizer is None else optimizer

    def step() -> None:
        optimizer.zero_grad()
        loss(module(x), y).backward()
        optimizer.step()

    return Training(module, [optimizer], step)


def mlp(*last: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3), *last)


def mlp_with_dropout() -> Training:
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 3))
    return plain(net, *data(12, 5))


def cnn_with_batch_norm() -> Training:
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3)
    )
    return plain(net, *data(8, 2, 6, 6))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def lstm() -> Training:
    return plain(Recurrent(), *data(5, 7, 4))


class Blocks(nn.Module):
    """Two transformer layers, each recomputed in the backward pass."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.lift = nn.Linear(4, 8)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.lift(x)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=self.reentrant)
        return self.head(h.mean(dim=1))


def checkpointed_reentrant() -> Training:
    return plain(Blocks(True), *data(4, 5, 4))


def checkpointed() -> Training:
    return plain(Blocks(False), *data(4, 5, 4))


def bf16_autocast() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()

    return Training(net, [optimizer], step)


def grad_scaler() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer, scaler = sgd(net), torch.amp.GradScaler("cpu", init_scale=1024.0)

    def step() -> None:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(net(x), y)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    return Training(net, [optimizer], step)


def compiled() -> Training:
    net = torch.compile(mlp(), backend="eager")
    return plain(net, *data(12, 5))


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))


def compiled_in_place() -> Training:
    net = Own()
    net.compile(backend="eager", fullgraph=True)
    return plain(net, *data(12, 5))


def accumulation() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        for part in range(3):
            rows = slice(4 * part, 4 * part + 4)
            (F.cross_entropy(net(x[rows]), y[rows]) / 3).backward()
        optimizer.step()

    return Training(net, [optimizer], step)


def lbfgs() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        return loss

    return Training(net, [optimizer], lambda: optimizer.step(closure))


def two_optimizers() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    first, second = sgd(net[0]), torch.optim.Adam(net[2].parameters())

    def step() -> None:
        first.zero_grad(), second.zero_grad()
        F.cross_entropy(net(x), y).backward()
        first.step(), second.step()

    return Training(net, [first, second], step)


def adversarial_pair() -> Training:
    generator, critic = nn.Linear(2, 3), nn.Linear(3, 1)
    both, real = nn.ModuleList([generator, critic]), torch.randn(8, 3)
    ours, theirs = sgd(generator), sgd(critic)

    def step() -> None:
        theirs.zero_grad()
        fake = generator(torch.randn(8, 2))
        (F.softplus(critic(fake.detach())) + F.softplus(-critic(real))).mean().backward()
        theirs.step()
        ours.zero_grad()
        F.softplus(-critic(fake)).mean().backward()
        ours.step()

    return Training(both, [theirs, ours], step)


class Shared(nn.Module):
    """One layer used twice, and called fifty times a step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.cell(torch.tanh(self.cell(x))))


def called_fifty_times() -> Training:
    net, (x, y) = Shared(), data(6, 5)
    optimizer = sgd(net)

    def step() -> None:
        h = x
        optimizer.zero_grad()
        for _ in range(50):
            h = net(h)
        F.cross_entropy(net.head(h), y).backward()
        optimizer.step()

    return Training(net, [optimizer], step)


def saved_on_cpu() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autograd.graph.save_on_cpu():
            loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()

    return Training(net, [optimizer], step)


def gradient_penalty() -> Training:
    net, (x, y) = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad()
        leaf = x.clone().requires_grad_()
        out = net(leaf)
        slope = torch.autograd.grad(out.sum(), leaf, create_graph=True)[0]
        (F.cross_entropy(out, y) + slope.square().sum()).backward()
        optimizer.step()

    return Training(net, [optimizer], step)


def retained_graph() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward(retain_graph=True)
        loss.backward()
        optimizer.step()

    return Training(net, [optimizer], step)


def forward_called_directly() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net.forward(x), y).backward()
        optimizer.step()

    return Training(net, [optimizer], step)


def sparse_embedding() -> Training:
    net = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Flatten(), nn.Linear(8, 3))
    sparse, dense = torch.optim.SparseAdam(net[0].parameters()), sgd(net[2])
    x, y = torch.randint(0, 9, (6, 2)), torch.randint(0, 3, (6,))

    def step() -> None:
        sparse.zero_grad(), dense.zero_grad()
        F.cross_entropy(net(x), y).backward()
        sparse.step(), dense.step()

    return Training(net, [sparse, dense], step)


def complex_parameters() -> Training:
    net = nn.Linear(4, 2, dtype=torch.complex64)
    x, y = torch.randn(6, 4, dtype=torch.complex64), torch.randn(6, 2)
    return plain(net, x, y, loss=lambda out, y: (out.abs() - y).square().mean())


def float64() -> Training:
    net = mlp().double()
    x, y = data(12, 5)
    return plain(net, x.double(), y, optimizer=torch.optim.Adam(net.parameters(), 0.01))


def lazy() -> Training:
    net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(3))
    x, y = data(12, 5)
    net(x[:0])  # an optimizer needs the parameters
    return plain(net, x, y)


def added_group() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = sgd(net[0])
    count = iter(range(100))

    def step() -> None:
        if next(count) == 2:
            optimizer.add_param_group({"params": net[2].parameters(), "lr": 0.01})
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

    return Training(net, [optimizer], step)


@dataclass
class Batch:
    name: str
    x: Tensor


class Nested(nn.Module):
    """Takes a dataclass, gives a mapping with a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, batch: Batch, *, scale: float = 1.0) -> dict[str, Any]:
        return {"out": (self.net(batch.x * scale), batch.name)}


def nested_arguments() -> Training:
    net, (x, y) = Nested(), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(batch=Batch("a", x), scale=0.5)["out"][0], y).backward()
        optimizer.step()

    return Training(net, [optimizer], step)


def no_rows() -> Training:
    return plain(mlp(), torch.zeros(0, 5), torch.zeros(0, 3), loss=lambda a, b: (a - b).sum())


def one_row() -> Training:
    return plain(mlp(), *data(1, 5))


def many_numbers_with_a_gradient() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y, reduction="none").backward(torch.full((12,), 1 / 12))
        optimizer.step()

    return Training(net, [optimizer], step)


def several_losses_at_once() -> Training:
    net, (x, y) = mlp(), data(12, 5)
    optimizer = sgd(net)

    def step() -> None:
        optimizer.zero_grad()
        out = net(x)
        torch.autograd.backward([F.cross_entropy(out, y), out.square().mean()])
        optimizer.step()

    return Training(net, [optimizer], step)


def nan_from_the_first_step() -> Training:
    x, y = data(12, 5)
    return plain(mlp(), x * float("nan"), y)


def weight_norm() -> Training:
    net = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(5, 8)), nn.Linear(8, 3))
    return plain(net, *data(12, 5))


def no_optimizer() -> Training:
    net, (x, y) = mlp(), data(12, 5)

    def step() -> None:
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad

    return Training(net, [], step)


CASES = [
    mlp_with_dropout,
    cnn_with_batch_norm,
    lstm,
    checkpointed_reentrant,
    checkpointed,
    bf16_autocast,
    grad_scaler,
    compiled,
    compiled_in_place,
    accumulation,
    lbfgs,
    two_optimizers,
    adversarial_pair,
    called_fifty_times,
    saved_on_cpu,
    gradient_penalty,
    retained_graph,
    forward_called_directly,
    sparse_embedding,
    complex_parameters,
    float64,
    lazy,
    added_group,
    nested_arguments,
    no_rows,
    one_row,
    many_numbers_with_a_gradient,
    several_losses_at_once,
    nan_from_the_first_step,
    weight_norm,
    no_optimizer,
]


def state(training: Training) -> list[Tensor]:
    """Parameters, buffers, gradients and the optimizers' memories, and the state of chance."""
    found = [*training.module.state_dict().values()]
    found += [p.grad.to_dense() for p in training.module.parameters() if p.grad is not None]
    for optimizer in training.optimizers:
        for memory in optimizer.state.values():
            found += [v for v in memory.values() if isinstance(v, Tensor)]
    return [t.detach().clone() for t in found] + [torch.get_rng_state()]


def run(make: Callable[[], Training], watched: bool) -> tuple[list[Tensor], Doctor | None]:
    torch.manual_seed(3)
    training = make()
    training.module.train()
    doctor = watch(training.module, training.optimizers) if watched else None
    for _ in range(training.steps):
        training.step()
    end = state(training)
    if doctor is not None:
        doctor.close()
    return end, doctor


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about lazy modules and the like
        yield


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_watched_training_is_bit_equal_and_seen(make):
    with quiet():
        alone, _ = run(make, watched=False)
        beside, doctor = run(make, watched=True)
    assert len(alone) == len(beside)
    for one, other in zip(alone, beside, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one.nan_to_num(7.0), other.nan_to_num(7.0))
    record = doctor.record
    assert not [note for note in record.notes if "could not be watched" in note]
    assert record.steps == STEPS
    assert len(record.looks) >= 4
    assert record.looks[0].head is not None


def test_a_pair_of_processes_in_one_is_bit_equal(tmp_path):
    """DDP with one process."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:

        def make() -> Training:
            return plain(nn.parallel.DistributedDataParallel(mlp()), *data(12, 5))

        with quiet():
            alone, _ = run(make, watched=False)
            beside, doctor = run(make, watched=True)
    finally:
        torch.distributed.destroy_process_group()
    assert all(torch.equal(*pair) for pair in zip(alone, beside, strict=True))
    assert doctor.record.steps == STEPS
    assert [w.name for w in doctor.record.weights][0] == "0.weight"


def test_a_deep_copy_trains_as_an_unwatched_module_does():
    torch.manual_seed(0)
    training = mlp_with_dropout()
    doctor = watch(training.module, training.optimizers)
    training.step()
    twin = copy.deepcopy(training.module)
    steps = doctor.record.steps
    F.cross_entropy(twin(torch.randn(4, 5)), torch.zeros(4).long()).backward()
    assert doctor.record.steps == steps
    assert all(
        torch.equal(*p) for p in zip(twin.parameters(), training.module.parameters(), strict=False)
    )
