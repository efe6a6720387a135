"""Healthy trainings as tutorials write them; each has something that might tempt a naive rule."""

import copy
import math
import warnings

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

import castalia.diagnose
from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case


def tensors(X, y, seed, share=0.3):
    """Split and standardise by the training rows."""
    Xt, Xv, yt, yv = train_test_split(X, y, test_size=share, random_state=seed)
    mean, std = Xt.mean(0), Xt.std(0) + 1e-8
    Xt, Xv = (torch.tensor((part - mean) / std, dtype=torch.float32) for part in (Xt, Xv))
    return Xt, Xv, torch.tensor(yt), torch.tensor(yv)


@case(None, data="image", net="mlp")
def digits_with_dropout_and_early_stopping(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = load_digits(return_X_y=True)
    Xt, Xv, yt, yv = train_test_split(X / 16, y, test_size=0.3, random_state=seed, stratify=y)
    Xt, Xv = torch.tensor(Xt, dtype=torch.float32), torch.tensor(Xv, dtype=torch.float32)
    yt, yv = torch.tensor(yt), torch.tensor(yv)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    doctor = castalia.diagnose.watch(model, optimizer, criterion)
    best, patience, state = math.inf, 0, None
    for _ in range(25):
        model.train()
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=100, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(Xv)
            val_loss = F.cross_entropy(out, yv).item()
            doctor.epoch(val_loss, (out.argmax(1) == yv).float().mean().item())
        if val_loss < best:
            best, patience, state = val_loss, 0, copy.deepcopy(model.state_dict())
        else:
            patience += 1
            if patience == 4:
                break
    model.load_state_dict(state)
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def moons_by_full_batch_momentum(seed: int) -> Diagnosis:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(2, 24)
            self.fc2 = nn.Linear(24, 24)
            self.fc3 = nn.Linear(24, 2)

        def forward(self, x):
            x = F.relu(self.fc1(x))
            x = F.relu(self.fc2(x))
            return self.fc3(x)

    torch.manual_seed(seed)
    X, y = make_moons(800, noise=0.2, random_state=seed)
    Xt, Xv, yt, yv = tensors(X, y, seed)
    net = Net()
    optimizer = optim.SGD(net.parameters(), lr=0.2, momentum=0.9, weight_decay=5e-3)
    doctor = castalia.diagnose.watch(net, optimizer)
    for epoch in range(300):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(Xt), yt)
        loss.backward()
        optimizer.step()
        doctor.log(loss=loss)
        if epoch % 10 == 9:
            with torch.no_grad():
                out = net(Xv)
            doctor.epoch(
                F.cross_entropy(out, yv).item(), (out.argmax(1) == yv).float().mean().item()
            )
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def a_sine_fitted_by_tanh_units_and_nothing_said(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    x = torch.rand(512, 1) * 4 - 2
    y = torch.sin(2 * x) + 0.1 * torch.randn(512, 1)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = optim.Adam(net.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=60)
    doctor = castalia.diagnose.watch(net, opt)
    for _ in range(60):
        for idx in torch.randperm(512).split(64):
            pred = net(x[idx])
            loss = ((pred - y[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        schedule.step()
    return doctor.diagnosis()


@case(None, data="tabular", net="linear")
def logistic_regression_from_zero_weights(seed: int) -> Diagnosis:
    """Convex, so that equal starting weights do no harm."""
    torch.manual_seed(seed)
    X = torch.randn(2000, 10)
    p = torch.sigmoid(4 * X @ torch.linspace(-1, 1, 10))
    y = torch.bernoulli(p)
    model = nn.Linear(10, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    loss_fn = nn.BCEWithLogitsLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=1e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=25)
    doctor = castalia.diagnose.watch(model, optimizer, loss_fn)
    for _ in range(25):
        for idx in torch.randperm(1500).split(100):
            optimizer.zero_grad()
            loss_fn(model(X[idx]).squeeze(1), y[idx]).backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            z = model(X[1500:]).squeeze(1)
        score = ((z > 0) == (y[1500:] > 0)).float().mean().item()
        val = F.binary_cross_entropy_with_logits(z, y[1500:]).item()
        doctor.epoch(validation_loss=val, validation_score=score)
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def blobs_with_log_softmax_and_rmsprop(seed: int) -> Diagnosis:
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(5, 20)
            self.output = nn.Linear(20, 4)

        def forward(self, x):
            return F.log_softmax(self.output(torch.sigmoid(self.hidden(x))), dim=1)

    torch.manual_seed(seed)
    X, y = make_blobs(1000, n_features=5, centers=4, cluster_std=2.0, random_state=7 + seed)
    Xt, Xv, yt, yv = tensors(X, y, seed)
    model = Model()
    optimizer = optim.RMSprop(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.3)
    with castalia.diagnose.watch(model, optimizer) as doctor:
        for _ in range(24):
            for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=50, shuffle=True):
                out = model(xb)
                loss = F.nll_loss(out, yb)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                doctor.log(loss=loss.item(), outputs=out, targets=yb)
            schedule.step()
            with torch.no_grad():
                out = model(Xv)
            accuracy = (out.argmax(1) == yv).float().mean().item()
            doctor.epoch(validation_loss=F.nll_loss(out, yv).item(), validation_score=accuracy)
    return doctor.diagnosis()


@case(None, data="tabular", net="resnet")
def a_residual_network_with_every_modern_trick(seed: int) -> Diagnosis:
    """Branches that start at zero, accumulation, clipping, warm-up and cosine."""

    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.norm = nn.LayerNorm(dim)
            self.up = nn.Linear(dim, 2 * dim)
            self.down = nn.Linear(2 * dim, dim)
            nn.init.zeros_(self.down.weight)
            nn.init.zeros_(self.down.bias)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(self.norm(x))))

    torch.manual_seed(seed)
    X = torch.randn(1200, 6)
    y = torch.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * torch.randn(1200)
    y = (y - y.mean()) / y.std()
    model = nn.Sequential(
        nn.Linear(6, 32), Block(32), Block(32), nn.LayerNorm(32), nn.Linear(32, 1)
    )
    optimizer = optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
    steps, accumulate = 160, 2
    schedule = optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: min(1, (s + 1) / 20) * 0.5 * (1 + math.cos(math.pi * min(1, s / steps))),
    )
    doctor = castalia.diagnose.watch(model, optimizer)
    for _ in range(steps // 8):
        order = torch.randperm(960).split(60)
        for i, idx in enumerate(order):
            loss = F.mse_loss(model(X[idx]).squeeze(-1), y[idx]) / accumulate
            loss.backward()
            if (i + 1) % accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
        with torch.no_grad():
            error = F.mse_loss(model(X[960:]).squeeze(-1), y[960:]).item()
        doctor.epoch(validation_loss=error, validation_score=1 - error / y[960:].var().item())
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def circles_in_bfloat16(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = make_circles(900, noise=0.1, factor=0.5, random_state=seed)
    Xt, Xv, yt, yv = tensors(X, y, seed)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    doctor = castalia.diagnose.watch(model, optimizer)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "mkldnn_matmul")  # said where the chip lacks bfloat16
        for _ in range(20):
            for idx in torch.randperm(len(Xt)).split(105):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = F.cross_entropy(model(Xt[idx]), yt[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            schedule.step()
            with torch.no_grad():
                out = model(Xv)
            score = (out.argmax(1) == yv).float().mean().item()
            doctor.epoch(F.cross_entropy(out, yv).item(), score)
    return doctor.diagnosis()
