"""Three people's ways to write a training loop, and what each of them reports to the doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis, Doctor, watch
from evidence.corpus.styles._data import Split

# What an examination may take, in seconds.
SECONDS = 2.0

# Scores on honest held-out data, by which a planted fault is shown to do harm.
scores: list[float] = []

Score = Callable[[Tensor, Tensor], float]


def done(doctor: Doctor, score: float) -> Diagnosis:
    """Keep the score, return the diagnosis, stop watching."""
    scores.append(float(score))
    try:
        return doctor.diagnosis()
    finally:
        doctor.close()


def right(out: Tensor, y: Tensor) -> float:
    """The rate of right classes, on the last axis; or of right labels, where there are several."""
    if y.is_floating_point():
        return ((out > 0) == (y > 0.5)).float().mean().item()
    return (out.argmax(-1) == y).float().mean().item()


def explained(out: Tensor, y: Tensor) -> float:
    """R², taken over all outputs together; never below minus one."""
    out = out.nan_to_num(1e3, 1e3, -1e3).view_as(y) if out.numel() == y.numel() else out
    gone = (out - y).square().mean() / (y - y.mean(0)).square().mean()
    return max(1 - gone.item(), -1.0)


# Anna follows the PyTorch tutorial: loaders, two functions, a loss module, which the doctor gets.


def anna(
    model: nn.Module,
    opt: Any,
    loss_fn: nn.Module,
    data: Split,
    epochs: int,
    size: int = 32,
    shuffle: bool = True,
    score: Score = right,
    task: str | None = None,
) -> Diagnosis:
    X, y, X_val, y_val = data
    train_dl = DataLoader(TensorDataset(X, y), batch_size=size, shuffle=shuffle)
    val_dl = DataLoader(TensorDataset(X_val, y_val), batch_size=128)
    doctor = watch(model, opt, loss_fn, task)
    for _ in range(epochs):
        _train_loop(train_dl, model, loss_fn, opt)
        loss, result = _test_loop(val_dl, model, loss_fn, score)
        doctor.epoch(validation_loss=loss, validation_score=result)
    return done(doctor, result)


def _train_loop(dataloader: DataLoader, model: nn.Module, loss_fn: nn.Module, opt: Any) -> None:
    model.train()
    for X, y in dataloader:
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        opt.step()
        opt.zero_grad()


def _test_loop(
    dataloader: DataLoader, model: nn.Module, loss_fn: nn.Module, score: Score
) -> tuple[float, float]:
    model.eval()
    loss, preds, ys = 0.0, [], []
    with torch.no_grad():
        for X, y in dataloader:
            pred = model(X)
            loss += loss_fn(pred, y).item()
            preds.append(pred)
            ys.append(y)
    return loss / len(dataloader), score(torch.cat(preds), torch.cat(ys))


# Ben writes functions and index arrays, and reports nothing to the doctor inside the loop.


def ben(
    net: nn.Module,
    optim: Any,
    criterion: Callable[[Tensor, Tensor], Tensor],
    data: Split,
    n_epochs: int,
    bs: int = 25,
    score: Score = right,
    scheduler: Any = None,
    per_batch: bool = False,
    clip: float = 0.0,
) -> Diagnosis:
    x_train, y_train, x_val, y_val = data
    doc = watch(net, optim)
    for _epoch in range(n_epochs):
        net.train()
        idx = torch.randperm(len(x_train))
        for i in range(0, len(idx), bs):
            b = idx[i : i + bs]
            optim.zero_grad(set_to_none=True)
            criterion(net(x_train[b]), y_train[b]).backward()
            if clip:
                nn.utils.clip_grad_norm_(net.parameters(), clip)
            optim.step()
            if scheduler is not None and per_batch:
                scheduler.step()
        if scheduler is not None and not per_batch:
            scheduler.step()
        net.eval()
        with torch.inference_mode():
            out = net(x_val)
            doc.epoch(criterion(out, y_val).item(), score(out, y_val))
    return done(doc, score(out, y_val))


# Carla has a Trainer class and logs loss, outputs and targets, of validation as well.


class Carla:
    """Trainer(model, optimizer, criterion).fit(data, epochs)."""

    def __init__(self, model: nn.Module, optimizer: Any, criterion: Any, score: Score = right,
                 task: str | None = None) -> None:  # fmt: skip
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.score = score
        self.doctor = watch(model, optimizer, task=task)

    def step(self, x: Tensor, y: Tensor) -> None:
        self.optimizer.zero_grad()
        out = self.model(x)
        loss = self.criterion(out, y)
        loss.backward()
        self.optimizer.step()
        self.doctor.log(loss=loss, outputs=out, targets=y)

    def evaluate(self, x: Tensor, y: Tensor) -> tuple[float, float]:
        self.model.eval()
        with torch.no_grad():
            out = self.model(x)
            loss = self.criterion(out, y)
            self.doctor.log(loss=loss, outputs=out, targets=y)
        self.model.train()
        return loss.item(), self.score(out, y)

    def fit(self, data: Split, epochs: int, batch: int = 32, shuffle: bool = True) -> Diagnosis:
        X, y, X_val, y_val = data
        for _ in range(epochs):
            order = torch.randperm(len(X)) if shuffle else torch.arange(len(X))
            for rows in order.split(batch):
                self.step(X[rows], y[rows])
            loss, result = self.evaluate(X_val, y_val)
            self.doctor.epoch(validation_loss=loss, validation_score=result)
        return done(self.doctor, result)
