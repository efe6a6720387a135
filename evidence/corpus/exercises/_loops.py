"""The loops that people write, and what they tell the doctor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from sklearn.metrics import balanced_accuracy_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis, Doctor, watch
from evidence.corpus.exercises._data import Split

# What an examination is given, in seconds.
SECONDS = 2.0

# The score of the last training, by which the planted fault is shown to hurt.
scores: list[float] = []


def verdict(doctor: Doctor, score: float) -> Diagnosis:
    """Return the diagnosis and stop watching; keep the score on data that the training lacked."""
    scores.append(float(score))
    diagnosis = doctor.diagnosis()
    doctor.close()
    return diagnosis


def accuracy(outputs: Tensor, y: Tensor) -> float:
    """The rate of right classes; one output is a logit, several are one a class (last axis)."""
    if outputs.dim() == 1 or outputs.shape[-1] == 1:
        return ((outputs.flatten() > 0) == (y.flatten() > 0.5)).float().mean().item()
    return (outputs.argmax(-1) == y).float().mean().item()


def balanced(outputs: Tensor, y: Tensor) -> float:
    """The mean recall of the classes."""
    one = outputs.dim() == 1 or outputs.shape[-1] == 1
    guess = (outputs.flatten() > 0).long() if one else outputs.argmax(-1)
    return balanced_accuracy_score(y.flatten().long(), guess)


def r2(outputs: Tensor, y: Tensor) -> float:
    """The explained part of the variance."""
    residual = (outputs.flatten() - y.flatten()).square().sum()
    return (1 - residual / (y - y.mean()).square().sum()).item()


def batches(X: Tensor, y: Tensor, size: int, shuffle: bool = True) -> Iterator[tuple[Tensor, ...]]:
    order = torch.randperm(len(X)) if shuffle else torch.arange(len(X))
    for rows in order.split(size):
        yield X[rows], y[rows]


def train(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Any,
    data: Split,
    *,
    epochs: int,
    size: int = 32,
    score: Callable[[Tensor, Tensor], float] = accuracy,
    tell: str = "loss",
    report: str = "both",
    task: str | None = None,
    shuffle: bool = True,
    clip: float | None = None,
    schedule: Any = None,
) -> Diagnosis:
    """Train as a tutorial does, with the doctor beside it.

    ``tell``: "module" gives the doctor the loss as a module and logs nothing; "loss" logs the loss;
    "all" logs loss, outputs and targets, of validation too; "nothing" says no word in the loop.
    ``report``: what ``epoch`` receives: "both", "loss", "score", "empty", or "never" called.
    """
    doctor = watch(module, optimizer, loss_fn if tell == "module" else None, task)
    loader = DataLoader(TensorDataset(data.X, data.y), batch_size=size, shuffle=shuffle)
    for _ in range(epochs):
        module.train()
        for x, y in loader:
            outputs = module(x)
            loss = loss_fn(outputs, y)
            optimizer.zero_grad()
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(module.parameters(), clip)
            optimizer.step()
            say(doctor, tell, loss, outputs, y)
            if schedule is not None:
                schedule.step()
        module.eval()
        with torch.no_grad():
            outputs = module(data.X_val)
            loss = loss_fn(outputs, data.y_val)
        if tell == "all":
            doctor.log(loss=loss, outputs=outputs, targets=data.y_val)
        close_epoch(doctor, report, loss.item(), score(outputs, data.y_val))
    return verdict(doctor, score(outputs, data.y_val))


def say(doctor: Doctor, tell: str, loss: Tensor, outputs: Tensor, targets: Tensor) -> None:
    if tell == "loss":
        doctor.log(loss=loss)
    elif tell == "all":
        doctor.log(loss=loss, outputs=outputs, targets=targets)


def close_epoch(doctor: Doctor, report: str, loss: float, score: float) -> None:
    if report == "empty":
        doctor.epoch()
    elif report == "loss":
        doctor.epoch(validation_loss=loss)
    elif report == "score":
        doctor.epoch(validation_score=score)
    elif report == "both":
        doctor.epoch(validation_loss=loss, validation_score=score)
