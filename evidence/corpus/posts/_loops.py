"""How people write their loops, and a list of what each training reached.

A faulty training takes ``fault=True``; without the fault it is to reach more. The last score of
each training is kept in SCORES: higher is better, measured on data held out, in evaluation mode.
"""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis, Doctor, watch

SCORES: list[float] = []


def accuracy(out: Tensor, y: Tensor) -> float:
    """Share right: classes by the largest output, else one threshold at 0."""
    if y.dtype == torch.int64 and out.ndim > 1 and out.shape[1] > 1:
        return (out.argmax(1) == y).float().mean().item()
    return ((out.flatten() > 0) == (y.flatten() > 0.5)).float().mean().item()


def r2(out: Tensor, y: Tensor) -> float:
    out, y = out.flatten(), y.flatten()
    return 1 - ((out - y) ** 2).mean().item() / y.var().item()


@torch.no_grad()
def final(model: nn.Module, X: Tensor, y: Tensor, metric=accuracy) -> float:
    """The score of a model in evaluation mode, whatever mode its owner left it in."""
    mode = model.training
    score = metric(model.eval()(X), y)
    model.train(mode)
    return score


def end(doctor: Doctor, score: float) -> Diagnosis:
    """Ask the doctor, and keep the score for whoever checks that the fault hurts."""
    found = doctor.diagnosis()
    doctor.close()
    SCORES.append(float(score))
    return found


def fit(
    model, optimizer, loss, data, epochs, batch_size=32, metric=accuracy, shuffle=True, each=None
) -> Diagnosis:
    """A Keras user's own ``fit``: one loss object, validation after every epoch."""
    x, y, x_val, y_val = data
    doctor = watch(model, optimizer, loss)
    for _ in range(epochs):
        model.train()
        order = torch.randperm(len(x)) if shuffle else torch.arange(len(x))
        for start in range(0, len(x), batch_size):
            idx = order[start : start + batch_size]
            optimizer.zero_grad()
            value = loss(model(x[idx]), y[idx])
            value.backward()
            optimizer.step()
        if each is not None:
            each()
        model.eval()
        with torch.no_grad():
            pred = model(x_val)
            doctor.epoch(loss(pred, y_val).item(), metric(pred, y_val))
    return end_scored(doctor, model, data, metric)


def kernel(
    model, optimizer, criterion, data, epochs, batch_size=16, metric=accuracy, clip=None, sched=None
) -> Diagnosis:
    """A Kaggle kernel: loaders, a running loss, a functional criterion, everything logged."""
    x, y, x_val, y_val = data
    train_loader = DataLoader(TensorDataset(x, y), batch_size, shuffle=True)
    valid_loader = DataLoader(TensorDataset(x_val, y_val), 64)
    doctor = watch(model, optimizer)
    for _ in range(epochs):
        model.train()
        for xb, yb in train_loader:
            optimizer.zero_grad()
            out = model(xb)
            loss = criterion(out, yb)
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if sched is not None:
                sched.step()
            doctor.log(loss=loss, outputs=out, targets=yb)
        model.eval()
        total = 0.0
        with torch.no_grad():
            for xb, yb in valid_loader:
                out = model(xb)
                batch_loss = criterion(out, yb)
                doctor.log(loss=batch_loss, outputs=out, targets=yb)
                total += batch_loss.item() * len(xb)
        doctor.epoch(validation_loss=total / len(x_val))
    return end_scored(doctor, model, data, metric)


def quickstart(model, optimizer, loss_fn, data, epochs, batch_size=32, metric=accuracy):
    """The train and test functions of a first tutorial; only what was printed is reported."""
    x, y, x_val, y_val = data
    doctor = watch(model, optimizer, loss_fn)

    def train_one() -> None:
        model.train()
        order = torch.randperm(len(x))
        for xb, yb in zip(x[order].split(batch_size), y[order].split(batch_size), strict=True):
            loss = loss_fn(model(xb), yb)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    def test() -> float:
        model.eval()
        with torch.no_grad():
            return loss_fn(model(x_val), y_val).item()

    for _ in range(epochs):
        train_one()
        doctor.epoch(validation_loss=test())
    return end_scored(doctor, model, data, metric)


def end_scored(doctor: Doctor, model: nn.Module, data, metric) -> Diagnosis:
    """Ask the doctor first: the final score is nobody's business but ours."""
    found = doctor.diagnosis()
    doctor.close()
    SCORES.append(final(model, data[2], data[3], metric))
    return found


def rescore(model: nn.Module, X: Tensor, y: Tensor, metric=accuracy) -> None:
    """Keep another score than its owner read: by right labels, or one that counts the rare."""
    SCORES.append(final(model, X, y, metric))
