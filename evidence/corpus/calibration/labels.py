"""Rare classes and wrong labels: CST204, CST205."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from castalia.diagnose import watch
from evidence.corpus.calibration import _data as data
from evidence.corpus.calibration._twins import cured
from evidence.corpus.cases import case


def accuracy(out, y):
    return (out.argmax(1) == y).float().mean().item()


def balanced(out, y):
    """Mean of the recalls."""
    hit = (out.argmax(1) == y).float()
    return torch.stack([hit[y == k].mean() for k in y.unique()]).mean().item()


# ---- CST204, rare classes ----


def _fraud(seed, n=2400, share=0.03):
    """A few transactions, a little unlike the others."""
    g = torch.Generator().manual_seed(seed)
    y = (torch.arange(n) % 1000 < 1000 * share).float()[torch.randperm(n, generator=g)]
    X = torch.randn(n, 8, generator=g) + 0.6 * y[:, None]
    return X[:1600], y[:1600], X[1600:], y[1600:]


@case("CST204", dose="severe", data="tabular", net="mlp")
@cured(weight=32.0)
def fraud_of_three_in_a_hundred(seed, weight=None):
    torch.manual_seed(seed)
    X, y, X_val, y_val = _fraud(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    weight = None if weight is None else torch.tensor([weight])
    criterion = nn.BCEWithLogitsLoss(pos_weight=weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    doctor = watch(model, optimizer, criterion)
    for _ in range(10):
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            criterion(model(X[rows])[:, 0], y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)[:, 0]
            score = ((out > 0) == y_val).float().mean().item()
            doctor.epoch(criterion(out, y_val).item(), score)
    return doctor.diagnosis()


class ImageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.fc = nn.Linear(72, 2)

    def forward(self, x):
        return self.fc(F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1))


@case("CST204", dose="severe", data="images", net="cnn")
@cured(even=True)
def is_it_one_of_the_few_eights(seed, even=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, images=True)
    X, X_val = X + 0.2 * torch.randn_like(X), X_val + 0.2 * torch.randn_like(X_val)
    y, y_val = (y == 8).long(), (y_val == 8).long()

    def thin(X, y):  # three in a hundred
        rows = torch.cat([(y == 0).nonzero()[:, 0], (y == 1).nonzero()[: len(y) // 36, 0]])
        return X[rows], y[rows]

    (X, y), (X_val, y_val) = thin(X, y), thin(X_val, y_val)
    drawn = WeightedRandomSampler(1 / y.bincount()[y], len(y)) if even else None
    loader = DataLoader(TensorDataset(X, y), batch_size=32, shuffle=not even, sampler=drawn)
    net = ImageNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    doctor = watch(net, optimizer)
    for _ in range(10):
        for xb, yb in loader:
            loss = F.cross_entropy(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net(X_val)
            doctor.log(outputs=out, targets=y_val, inputs=X_val)
            doctor.epoch(validation_score=accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST204", dose="mild", data="tabular", net="mlp")
@cured(weighted=True)
def five_classes_of_which_one_is_nearly_all(seed, weighted=False):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    y = torch.multinomial(torch.tensor([0.92, 0.02, 0.02, 0.02, 0.02]), 2000, True, generator=g)
    centres = torch.randn(5, 10, generator=g) / 1.6
    X = centres[y] + torch.randn(2000, 10, generator=g)
    X, y, X_val, y_val = X[:1300], y[:1300], X[1300:], y[1300:]
    counts = torch.bincount(y, minlength=5)
    criterion = nn.CrossEntropyLoss(weight=len(y) / (5.0 * counts) if weighted else None)
    model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.5)
    doctor = watch(model, optimizer, loss_fn=criterion)
    for _ in range(10):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), balanced(out, y_val))
    return doctor.diagnosis()


class FaultGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 16, batch_first=True)
        self.fc = nn.Linear(16, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc(self.gru(x)[1][-1])).squeeze(1)


@case("CST204", dose="severe", data="sequences", net="gru")
@cured(weight=30.0)
def rare_faults_of_a_machine(seed, weight=1.0):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    y = (torch.arange(900) % 100 < 4).float()[torch.randperm(900, generator=g)]
    X = torch.randn(900, 10, 1, generator=g) + 0.45 * y[:, None, None]
    X, y, X_val, y_val = X[:600], y[:600], X[600:], y[600:]
    model = FaultGRU()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer, task="binary")
    for _ in range(10):
        for rows in torch.randperm(len(X)).split(40):
            p = model(X[rows])
            loss = F.binary_cross_entropy(p, y[rows], weight=1 + (weight - 1) * y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=p, targets=y[rows])
        with torch.no_grad():
            p = model(X_val)
            doctor.log(outputs=p, targets=y_val)
            doctor.epoch(validation_score=((p > 0.5) == y_val).float().mean().item())
    return doctor.diagnosis()


# ---- CST205, wrong labels ----


def flip(y, share, classes, seed):
    """Replace a share of the labels by another class."""
    g = torch.Generator().manual_seed(77 + seed)
    wrong = torch.rand(len(y), generator=g) < share
    return torch.where(wrong, (y + torch.randint(1, classes, y.shape, generator=g)) % classes, y)


@case("CST205", dose="severe", data="images", net="mlp")
@cured(share=0.0)
def four_in_ten_digits_mislabelled(seed, share=0.4):
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    y, y_val = flip(y, share, 10, seed), flip(y_val, share, 10, seed + 1)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
    return examine(
        model, criterion, (X, y), (X_val, y_val), optimizer=optimizer, seconds=data.SECONDS
    )


@case("CST205", dose="mild", data="tabular", net="mlp")
@cured(share=0.0)
def a_fifth_of_the_clusters_mislabelled(seed, share=0.2):
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=3, n=900)
    y, y_val = flip(y, share, 3, seed), flip(y_val, share, 3, seed + 1)
    model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)
    train = TensorDataset(X, y)
    for _ in range(12):
        for xb, yb in DataLoader(train, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    return examine(
        model,
        F.cross_entropy,
        train,
        TensorDataset(X_val, y_val),
        optimizer=optimizer,
        task="multiclass",
        seconds=data.SECONDS,
    )


@case("CST205", dose="severe", data="images", net="cnn")
@cured(share=0.0)
def a_third_of_the_images_mislabelled(seed, share=0.35):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=900, images=True)
    y, y_val = flip(y, share, 10, seed), flip(y_val, share, 10, seed + 1)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(108, 10)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.8)
    doctor = watch(net, optimizer, criterion)
    for _ in range(9):
        net.train()
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            criterion(net(X[rows]), y[rows]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST205", dose="severe", data="tabular", net="mlp")
@cured(share=0.0)
def a_quarter_of_the_diagnoses_wrong(seed, share=0.25):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("breast_cancer", seed)
    y, y_val = flip(y, share, 2, seed).float(), flip(y_val, share, 2, seed + 1).float()
    model = nn.Sequential(
        nn.Linear(30, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1), nn.Flatten(0)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    doctor = watch(model, optimizer, task="binary")
    for _ in range(15):
        model.train()
        for rows in torch.randperm(len(X)).split(32):
            out = model(X[rows])
            loss = F.binary_cross_entropy_with_logits(out, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=y[rows])
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            loss = F.binary_cross_entropy_with_logits(out, y_val)
            doctor.log(loss=loss, outputs=out, targets=y_val, inputs=X_val)
            doctor.epoch(loss.item(), ((out > 0) == y_val).float().mean().item())
    return doctor.diagnosis()
