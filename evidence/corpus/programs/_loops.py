"""How a program comes before the doctor, and how people write their loops.

A program takes a seed and whether it is to be faulty, and returns what it reached on data held
out, in evaluation mode: higher is better. SCORES keeps it for whoever checks that the fault hurts.
"""

import functools
import io
import runpy
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis
from castalia.diagnose.script import Session

SCORES: list[float] = []
SCRIPTS = Path(__file__).parent / "scripts"


def posted(program: Callable[[int, bool], float]) -> Callable[..., Diagnosis]:
    """A program that knows nothing of the doctor, watched as ``castalia doctor`` would."""

    @functools.wraps(program)
    def run(seed: int, fault: bool = True) -> Diagnosis:
        torch.manual_seed(seed)
        session = Session()
        session.start()
        try:
            SCORES.append(float(program(seed, fault)))
        finally:
            session.stop()
        return session.diagnosis()

    return run


def watched(program: Callable) -> Callable[..., Diagnosis]:
    """A program that calls ``watch`` itself; it returns its doctor and a way to get the score."""

    @functools.wraps(program)
    def run(seed: int, fault: bool = True) -> Diagnosis:
        torch.manual_seed(seed)
        doctor, score = program(seed, fault)
        found = doctor.diagnosis()
        doctor.close()
        SCORES.append(float(score()))
        return found

    return run


def script(name: str, seed: int, fault: bool = True) -> Diagnosis:
    """A file of ``scripts``: its last word on the output is its score."""

    def program(seed: int, fault: bool) -> float:
        before, out = sys.argv, io.StringIO()
        sys.argv = [f"{name}.py", str(seed), *([] if fault else ["--right"])]
        try:
            with redirect_stdout(out):
                runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
        finally:
            sys.argv = before
        return float(out.getvalue().split()[-1])

    return posted(program)(seed, fault)


def accuracy(out: Tensor, y: Tensor) -> float:
    """Share right: the largest of several outputs, else the sign of the one."""
    if out.ndim > y.ndim and out.shape[1] > 1:
        return (out.argmax(1) == y).float().mean().item()
    return ((out.flatten() > 0) == (y.flatten() > 0.5)).float().mean().item()


def r2(out: Tensor, y: Tensor) -> float:
    out, y = out.flatten(), y.flatten()
    return 1 - (((out - y) ** 2).mean() / y.var(correction=0)).item()


@torch.no_grad()
def reached(model: nn.Module, x: Tensor, y: Tensor, metric: Callable = accuracy) -> float:
    model.eval()
    return metric(model(x), y)


def loaders(data, batch: int = 32, shuffle: bool = True) -> tuple[DataLoader, DataLoader]:
    x, y, x_val, y_val = data
    train = DataLoader(TensorDataset(x, y), batch_size=batch, shuffle=shuffle)
    return train, DataLoader(TensorDataset(x_val, y_val), batch_size=128)


def tutorial(
    model, optimizer, criterion, data, epochs=8, batch=32, metric=accuracy, scheduler=None, clip=0.0
) -> float:
    """Loaders, ``train()`` and ``validate()`` of a first tutorial."""
    train_loader, test_loader = loaders(data, batch)

    def train() -> float:
        model.train()
        running_loss = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            running_loss += loss.item() * len(inputs)
        return running_loss / len(data[0])

    def validate() -> float:
        model.eval()
        test_loss = 0.0
        with torch.no_grad():
            for inputs, labels in test_loader:
                test_loss += criterion(model(inputs), labels).item() * len(inputs)
        return test_loss / len(data[2])

    for _ in range(epochs):
        train()
        validate()
        if scheduler is not None:
            scheduler.step()
    return reached(model, data[2], data[3], metric)


def notebook(
    model, optimizer, loss_of, data, steps=250, batch=32, metric=accuracy, order=None
) -> float:
    """A cell of a notebook: batches by index, a loss by hand, no validation until the end."""
    x, y, x_val, y_val = data
    model.train()
    losses = []
    for i in range(steps):
        if order is None:
            idx = torch.randint(0, len(x), (batch,))
        else:
            idx = order[torch.arange(i * batch, (i + 1) * batch) % len(x)]
        loss = loss_of(model(x[idx]), y[idx])
        model.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return reached(model, x_val, y_val, metric)


def mlp(*sizes: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in zip(sizes[:-1], sizes[1:], strict=True):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Net(nn.Module):
    """The CNN of a well-known tutorial, made small."""

    def __init__(self, channels: int = 1, size: int = 8, classes: int = 10, last=None):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(16 * (size // 4) ** 2, 32)
        self.fc2 = nn.Linear(32, classes)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = self.fc2(F.relu(self.fc1(x.flatten(1))))
        return x if self.last is None else self.last(x)


class Recurrent(nn.Module):
    """LSTM, GRU or RNN and a linear layer on the last step."""

    def __init__(self, kind, inputs: int, hidden: int, outputs: int, **options):
        super().__init__()
        self.rnn = kind(inputs, hidden, batch_first=True, **options)
        self.fc = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.rnn(x)[0][:, -1])
