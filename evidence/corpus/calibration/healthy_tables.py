"""Healthy trainings on tables: rare classes, categories, many labels, odd losses."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine, make_friedman1
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case


@case(None, data="tabular", net="mlp")
def few_wines_under_strong_regularisation(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = load_wine(return_X_y=True)
    Xt, Xv, yt, yv = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(Xt)
    Xt, Xv = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (Xt, Xv))
    yt, yv = torch.tensor(yt), torch.tensor(yv)
    model = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=0.02)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=4)
    doctor = watch(model, optimizer, criterion)
    for _ in range(50):
        model.train()
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=27, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(Xv)
        val_loss = F.cross_entropy(out, yv).item()
        scheduler.step(val_loss)
        doctor.epoch(val_loss, (out.argmax(1) == yv).float().mean().item())
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def a_rare_class_with_its_weight(seed: int) -> Diagnosis:
    """One row in ten is positive; weighted, and judged by balanced accuracy."""
    torch.manual_seed(seed)
    y = (torch.rand(2000) < 0.1).float()
    X = torch.randn(2000, 6)
    X[:, :2] += 2.2 * y[:, None]
    X[:, 2] *= 1 - 0.5 * y
    Xt, Xv, yt, yv = X[:1400], X[1400:], y[:1400], y[1400:]
    weight = (yt == 0).sum() / (yt == 1).sum()
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(20):
        for idx in torch.randperm(1400).split(100):
            optimizer.zero_grad()
            loss_fn(model(Xt[idx]).squeeze(1), yt[idx]).backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            z = model(Xv).squeeze(1)
            loss = F.binary_cross_entropy_with_logits(z, yv, pos_weight=weight).item()
        doctor.epoch(loss, balanced_accuracy_score(yv.numpy(), (z > 0).numpy()))
    return doctor.diagnosis()


@case(None, data="tabular", net="embedding")
def categories_embedded_beside_one_hot_columns(seed: int) -> Diagnosis:
    """Most inputs are zero most of the time, and a rare category is seldom seen."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.city = nn.Embedding(30, 4)
            self.fc1 = nn.Linear(4 + 12 + 2, 32)
            self.fc2 = nn.Linear(32, 1)

        def forward(self, city, weekday_month, numbers):
            x = torch.cat([self.city(city), weekday_month, numbers], dim=1)
            return self.fc2(F.relu(self.fc1(x))).squeeze(1)

    torch.manual_seed(seed)
    city = (30 * torch.rand(2000) ** 1.5).long()
    month = torch.randint(0, 12, (2000,))
    numbers = torch.randn(2000, 2)
    effect, season = torch.randn(30), torch.sin(torch.arange(12.0))
    y = effect[city] + season[month] + numbers[:, 0] * season[month] + 0.2 * torch.randn(2000)
    y = (y - y.mean()) / y.std()
    columns = city, F.one_hot(month, 12).float(), numbers
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=16 * 25)
    doctor = watch(model, optimizer, task="regression")
    for _ in range(25):
        for idx in torch.randperm(1600).split(100):
            pred = model(*(column[idx] for column in columns))
            loss = F.mse_loss(pred, y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            doctor.log(loss=loss, outputs=pred, targets=y[idx])
        with torch.no_grad():
            error = F.mse_loss(model(*(column[1600:] for column in columns)), y[1600:]).item()
        doctor.epoch(validation_loss=error, validation_score=1 - error / y[1600:].var().item())
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def several_labels_at_once(seed: int) -> Diagnosis:
    """Six labels that may all be true: independent sigmoids are right here."""
    torch.manual_seed(seed)
    X = torch.randn(1500, 10)
    Y = ((X @ torch.randn(10, 6) + X[:, :6] ** 2 - 1) > 0).float()
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 6))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
    doctor = watch(model, optimizer, criterion)
    for _ in range(30):
        for xb, yb in DataLoader(TensorDataset(X[:1200], Y[:1200]), batch_size=64, shuffle=True):
            loss = criterion(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            z = model(X[1200:])
        hits = ((z > 0) == (Y[1200:] > 0.5)).float().mean().item()
        loss = F.binary_cross_entropy_with_logits(z, Y[1200:]).item()
        doctor.epoch(validation_loss=loss, validation_score=hits)
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def three_quantiles_of_one_target(seed: int) -> Diagnosis:
    """Three outputs for one target column, broadcast on purpose."""

    class QuantileNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 3))

        def forward(self, x):
            return self.body(x)

    torch.manual_seed(seed)
    levels = torch.tensor([0.1, 0.5, 0.9])
    X = torch.randn(1600, 3)
    y = torch.sin(X[:, :1]) + X[:, 1:2] + (0.2 + 0.2 * X[:, 2:].abs()) * torch.randn(1600, 1)
    y = y / y.std()
    net = QuantileNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=25)
    doctor = watch(net, optimizer)

    def pinball(pred, target):
        error = target - pred  # (N, 1) with (N, 3)
        return torch.maximum(levels * error, (levels - 1) * error).mean()

    for _ in range(25):
        for idx in torch.randperm(1300).split(65):
            loss = pinball(net(X[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        schedule.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=pinball(net(X[1300:]), y[1300:]).item())
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def a_huber_loss_where_targets_have_heavy_tails(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X = torch.randn(1500, 5)
    clean = X[:, 0] - 0.5 * X[:, 1] * X[:, 2]
    noise = 0.1 * torch.distributions.StudentT(2.0).sample((1500,))
    y = clean + noise.clamp(-4, 4)
    model = nn.Sequential(
        nn.Linear(5, 32), nn.BatchNorm1d(32), nn.LeakyReLU(), nn.Linear(32, 1), nn.Flatten(0)
    )
    loss_fn = nn.HuberLoss(delta=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=25)
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(25):
        model.train()
        for idx in torch.randperm(1200).split(60):
            optimizer.zero_grad()
            loss_fn(model(X[idx]), y[idx]).backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(X[1200:]), y[1200:]).item()
        doctor.epoch(validation_loss=val)
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def a_smooth_function_examined(seed: int) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y = make_friedman1(1600, n_features=6, noise=0.5, random_state=seed)
    X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
    y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)
    model = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 1))
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
    for _ in range(40):
        for idx in torch.randperm(1200).split(60):
            optimizer.zero_grad()
            loss_fn(model(X[idx]), y[idx]).backward()
            optimizer.step()
        schedule.step()
    return examine(
        model,
        loss_fn,
        (X[:1200], y[:1200]),
        (X[1200:], y[1200:]),
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        task="regression",
        seconds=5,
    )
