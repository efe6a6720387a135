"""Faults of generalisation: CST401 to CST406.

Those that nobody can see from outside (403, some of 402 and 406) are examined actively.
"""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes, load_digits, make_moons
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, TensorDataset

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case


def digits(seed):
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.3, random_state=seed, stratify=y)
    Xt, Xv = (torch.tensor(part, dtype=torch.float32) for part in parts[:2])
    return Xt, Xv, torch.tensor(parts[2]), torch.tensor(parts[3])


def accuracy(out, y):
    return (out.argmax(-1) == y).float().mean().item()


# ------------------------------------------------------------------------- CST401 overfitting


@case("CST401", dose="severe", data="tabular", net="mlp")
def a_wide_network_on_a_small_medical_table(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = load_diabetes(return_X_y=True)
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    Xt, Xv, yt, yv = train_test_split(X, y[:, None], test_size=0.3, random_state=seed)
    Xt, Xv, yt, yv = (torch.tensor(a, dtype=torch.float32) for a in (Xt, Xv, yt, yv))
    model = nn.Sequential(
        nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
    )
    criterion = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer, criterion)
    for _ in range(50):
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            error = F.mse_loss(model(Xv), yv).item()
        doctor.epoch(validation_loss=error, validation_score=1 - error / yv.var().item())
    return doctor.diagnosis()


@case("CST401", dose="severe", data="text", net="embedding")
def a_bag_of_words_learnt_by_heart(seed: int) -> Diagnosis:
    """Half a thousand short texts; a few words of three thousand lean to one of the classes."""

    class TextClassifier(nn.Module):
        def __init__(self, vocab, dim=64):
            super().__init__()
            self.embedding = nn.EmbeddingBag(vocab, dim)
            self.fc1 = nn.Linear(dim, 64)
            self.fc2 = nn.Linear(64, 2)

        def forward(self, text):
            return self.fc2(F.relu(self.fc1(self.embedding(text))))

    torch.manual_seed(seed)
    y = torch.randint(0, 2, (900,))
    words = torch.randint(120, 3000, (900, 20))
    leaning = torch.randint(0, 60, (900, 20)) + 60 * y[:, None]
    words = torch.where(torch.rand(900, 20) < 0.12, leaning, words)
    model = TextClassifier(3000)
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    doctor = watch(model, optimizer)
    for _ in range(25):
        for idx in torch.randperm(500).split(50):
            loss = F.cross_entropy(model(words[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = model(words[500:])
        doctor.epoch(F.cross_entropy(out, y[500:]).item(), accuracy(out, y[500:]))
    return doctor.diagnosis()


@case("CST401", dose="mild", data="image", net="cnn")
def a_cnn_that_memorises_noisy_images(seed: int) -> Diagnosis:
    """A faint spot, left or right, under heavy pixel noise."""
    torch.manual_seed(seed)
    y = torch.randint(0, 2, (700,))
    X = torch.randn(700, 1, 8, 8)
    X[y == 0, 0, 2:6, 1:3] += 0.6
    X[y == 1, 0, 2:6, 5:7] += 0.6
    net = nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 64, 32),
        nn.ReLU(),
        nn.Linear(32, 2),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    doctor = watch(net, optimizer, criterion)
    for _ in range(12):
        net.train()
        for idx in torch.randperm(300).split(30):
            optimizer.zero_grad()
            criterion(net(X[idx]), y[idx]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(X[300:])
        doctor.epoch(F.cross_entropy(out, y[300:]).item(), accuracy(out, y[300:]))
    return doctor.diagnosis()


# ------------------------------------------------------------------------ CST402 underfitting


@case("CST402", dose="severe", data="image", net="mlp")
def two_hidden_units_for_ten_digits(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    model = nn.Sequential(nn.Linear(64, 2), nn.Tanh(), nn.Linear(2, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
    doctor = watch(model, optimizer, criterion)
    for _ in range(40):
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=128, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        scheduler.step()
        with torch.no_grad():
            out = model(Xv)
        doctor.epoch(F.cross_entropy(out, yv).item(), accuracy(out, yv))
    return doctor.diagnosis()


@case("CST402", dose="mild", data="tabular", net="mlp")
def two_tanh_units_for_a_wavy_surface(seed: int) -> Diagnosis:
    class Small(nn.Module):
        def __init__(self, width=2):
            super().__init__()
            self.hidden = nn.Linear(2, width)
            self.out = nn.Linear(width, 1)

        def forward(self, x):
            return self.out(torch.tanh(self.hidden(x))).squeeze(-1)

    torch.manual_seed(seed)
    X = torch.rand(1200, 2) * 3.4 - 1.7
    y = torch.sin(2 * X[:, 0]) * torch.cos(2 * X[:, 1]) + 0.4 * X[:, 0] - 0.4 * X[:, 1]
    y = y / y.std()
    model = Small()
    opt = optim.Adam(model.parameters(), lr=0.02)
    schedule = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=50)
    doctor = watch(model, opt, task="regression")
    for _ in range(50):
        for idx in torch.randperm(1000).split(100):
            pred = model(X[idx])
            loss = ((pred - y[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=pred, targets=y[idx])
        schedule.step()
        with torch.no_grad():
            error = ((model(X[1000:]) - y[1000:]) ** 2).mean().item()
        doctor.epoch(validation_loss=error, validation_score=1 - error / y[1000:].var().item())
    return doctor.diagnosis()


# That boosting does better is how one sees that it underfits; either may be said first.
@case("CST402", dose="severe", data="tabular", net="linear", accept=("CST403",))
def logistic_regression_on_an_interaction(seed: int) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X = torch.randn(1000, 3)
    y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] > 0).long()
    model = nn.Linear(3, 2)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        for idx in torch.randperm(800).split(80):
            optimizer.zero_grad()
            loss_fn(model(X[idx]), y[idx]).backward()
            optimizer.step()
    return examine(
        model,
        loss_fn,
        (X[:800], y[:800]),
        (X[800:], y[800:]),
        optimizer=optimizer,
        task="multiclass",
        seconds=5,
    )


# As above: the gap to boosting is the evidence, too little capacity the cause.
@case("CST402", dose="mild", data="tabular", net="mlp", accept=("CST403",))
def a_regression_through_two_units(seed: int) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X = torch.randn(900, 5)
    y = 1.5 * (X[:, 0] > 0) * (X[:, 1] > 0) + X[:, 2] ** 2 + torch.sin(2 * X[:, 3])
    y = ((y - y.mean()) / y.std()).unsqueeze(1)
    width = 2
    model = nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    train, valid = TensorDataset(X[:650], y[:650]), TensorDataset(X[650:], y[650:])
    for _ in range(40):
        for xb, yb in DataLoader(train, batch_size=50, shuffle=True):
            loss = F.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return examine(model, F.mse_loss, train, valid, optimizer=optimizer, seconds=5)


# --------------------------------------------------------------- CST403 no-better-than-baseline


# Nothing ties targets to inputs: "guessing does as well" and "shuffled inputs do as well" are one.
@case("CST403", dose="severe", data="tabular", net="mlp", accept=("CST406",))
def rows_of_x_and_y_shuffled_apart(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X = torch.randn(2400, 8)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).long()
    X = X[torch.randperm(2400)]
    y = y[torch.randperm(2400)]
    model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.003, weight_decay=1e-3)
    doctor = watch(model, optimizer, criterion)
    for _ in range(15):
        for xb, yb in DataLoader(TensorDataset(X[:2000], y[:2000]), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X[2000:])
        doctor.epoch(F.cross_entropy(out, y[2000:]).item(), accuracy(out, y[2000:]))
    return doctor.diagnosis()


# As above, for a regression: R² stays at nought.
@case("CST403", dose="severe", data="sequence", net="gru", accept=("CST406",))
def a_forecast_of_pure_noise(seed: int) -> Diagnosis:
    """Returns that are white noise, forecast from the last ten of them."""

    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(1, 8, batch_first=True)
            self.fc = nn.Linear(8, 1)

        def forward(self, x):
            out, _ = self.gru(x)
            return self.fc(out[:, -1, :])

    torch.manual_seed(seed)
    returns = torch.randn(1610)
    windows = returns.unfold(0, 11, 1)
    X, y = windows[:, :10, None], windows[:, 10:]
    model = Forecaster()
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    doctor = watch(model, optimizer)
    for _ in range(8):
        for idx in torch.randperm(1200).split(60):
            pred = model(X[idx])
            loss = ((pred - y[idx]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=pred, targets=y[idx])
        with torch.no_grad():
            error = ((model(X[1200:]) - y[1200:]) ** 2).mean().item()
        doctor.epoch(validation_loss=error, validation_score=1 - error / y[1200:].var().item())
    return doctor.diagnosis()


@case("CST403", dose="mild", data="tabular", net="mlp")
def a_network_where_a_linear_model_does_better(seed: int) -> Diagnosis:
    """A linear law in twenty columns, few rows: the hidden layers only cost."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X = torch.randn(550, 20)
    y = X @ torch.linspace(-1, 1, 20)[:, None]
    y = y / y.std() + 0.3 * torch.randn(550, 1)
    model = nn.Sequential(
        nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1)
    )
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-2)
    for _ in range(12):
        for idx in torch.randperm(250).split(25):
            optimizer.zero_grad()
            F.mse_loss(model(X[idx]), y[idx]).backward()
            optimizer.step()
    return examine(
        model,
        nn.MSELoss(),
        (X[:250], y[:250]),
        (X[250:], y[250:]),
        optimizer=optimizer,
        task="regression",
        seconds=5,
    )


@case("CST403", dose="mild", data="tabular", net="mlp")
def a_network_where_boosting_does_better(seed: int) -> Diagnosis:
    """Thresholds on three of six columns: trees see them at once, this network less well."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X = torch.randn(2500, 6)
    y = ((X[:, 0] > 0.3) ^ (X[:, 1] > -0.2)).long() + (X[:, 2] > 0.5).long()
    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    for _ in range(30):
        for idx in torch.randperm(2000).split(100):
            optimizer.zero_grad()
            F.cross_entropy(model(X[idx]), y[idx]).backward()
            optimizer.step()
    train, valid = (X[:2000], y[:2000]), (X[2000:], y[2000:])
    return examine(model, F.cross_entropy, train, valid, optimizer=optimizer, seconds=5)


# -------------------------------------------------------------------- CST404 over-regularised


@case("CST404", dose="severe", data="image", net="mlp")
def dropout_of_nine_tenths_twice(seed: int) -> Diagnosis:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(64, 64)
            self.fc2 = nn.Linear(64, 64)
            self.fc3 = nn.Linear(64, 10)
            self.drop = nn.Dropout(p=0.9)

        def forward(self, x):
            x = self.drop(F.relu(self.fc1(x)))
            x = self.drop(F.relu(self.fc2(x)))
            return self.fc3(x)

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    doctor = watch(model, optimizer)
    for _ in range(25):
        model.train()
        for idx in torch.randperm(len(Xt)).split(64):
            loss = F.cross_entropy(model(Xt[idx]), yt[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(Xv)
        doctor.epoch(F.cross_entropy(out, yv).item(), accuracy(out, yv))
    return doctor.diagnosis()


@case("CST404", dose="severe", data="tabular", net="mlp")
def weight_decay_of_a_half_in_adam(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = make_moons(600, noise=0.15, random_state=seed)
    X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
    y = torch.tensor(y)
    model = nn.Sequential(
        nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.005, weight_decay=0.5)
    doctor = watch(model, optimizer, criterion)
    for _ in range(40):
        for xb, yb in DataLoader(TensorDataset(X[:450], y[:450]), batch_size=50, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X[450:])
        doctor.epoch(F.cross_entropy(out, y[450:]).item(), accuracy(out, y[450:]))
    return doctor.diagnosis()


@case("CST404", dose="mild", data="image", net="cnn")
def a_hand_written_penalty_on_the_weights(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    Xt, Xv = Xt.view(-1, 1, 8, 8), Xv.view(-1, 1, 8, 8)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(192, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
    l2_lambda = 0.02
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    doctor = watch(net, optimizer)
    for _ in range(10):
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=64, shuffle=True):
            out = net(xb)
            l2_norm = sum(p.pow(2.0).sum() for p in net.parameters())
            loss = F.cross_entropy(out, yb) + l2_lambda * l2_norm
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=yb)
        with torch.no_grad():
            out = net(Xv)
        doctor.epoch(F.cross_entropy(out, yv).item(), accuracy(out, yv))
    return doctor.diagnosis()


@case("CST404", dose="severe", data="sequence", net="gru")
def four_fifths_dropped_in_a_regression_on_sequences(seed: int) -> Diagnosis:
    """The target is the mean of the marked steps of a sequence."""

    class Reader(nn.Module):
        def __init__(self, p=0.8):
            super().__init__()
            self.gru = nn.GRU(2, 32, batch_first=True)
            self.drop = nn.Dropout(p)
            self.head = nn.Linear(32, 1)

        def forward(self, x):
            h, _ = self.gru(self.drop(x))
            return self.head(self.drop(h[:, -1])).squeeze(1)

    torch.manual_seed(seed)
    values, marks = torch.randn(700, 8), torch.zeros(700, 8)
    marks.scatter_(1, torch.rand(700, 8).argsort(1)[:, :2], 1.0)
    X, y = torch.stack([values, marks], dim=2), (values * marks).sum(1) / 2**0.5
    model = Reader()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer, task="regression")
    for _ in range(15):
        model.train()
        for idx in torch.randperm(560).split(56):
            pred = model(X[idx])
            loss = F.smooth_l1_loss(pred, y[idx])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            doctor.log(loss=loss)
        model.eval()
        with torch.no_grad():
            pred = model(X[560:])
        score = 1 - F.mse_loss(pred, y[560:]) / y[560:].var()
        doctor.epoch(F.smooth_l1_loss(pred, y[560:]).item(), score.item())
    return doctor.diagnosis()


# ----------------------------------------------------------------------- CST405 miscalibrated


@case("CST405", dose="severe", data="image", net="mlp")
def label_smoothing_of_six_tenths(seed: int) -> Diagnosis:
    """Nearly all digits are right, at a confidence below one half."""
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.6)
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    doctor = watch(model, optimizer, criterion)
    for _ in range(20):
        model.train()
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(Xv)
            doctor.log(loss=F.cross_entropy(out, yv), outputs=out, targets=yv)
        doctor.epoch(F.cross_entropy(out, yv).item(), accuracy(out, yv))
    return doctor.diagnosis()


@case("CST405", dose="mild", data="tabular", net="mlp")
def focal_loss_with_a_large_gamma(seed: int) -> Diagnosis:
    def focal_loss(logits, target, gamma=6.0):
        ce = F.cross_entropy(logits, target, reduction="none")
        return ((1 - torch.exp(-ce)) ** gamma * ce).mean()

    torch.manual_seed(seed)
    X, y = make_moons(900, noise=0.15, random_state=seed)
    X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
    y = torch.tensor(y)
    net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = optim.Adam(net.parameters(), lr=0.005)
    doctor = watch(net, optimizer)
    for _ in range(30):
        net.train()
        for idx in torch.randperm(600).split(60):
            out = net(X[idx])
            loss = focal_loss(out, y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=y[idx])
        net.eval()
        with torch.no_grad():
            out = net(X[600:])
            doctor.log(outputs=out, targets=y[600:])
        doctor.epoch(F.cross_entropy(out, y[600:]).item(), accuracy(out, y[600:]))
    return doctor.diagnosis()


@case("CST405", dose="severe", data="tabular", net="mlp")
def scores_sharpened_at_evaluation(seed: int) -> Diagnosis:
    """A temperature meant to soften the scores divides where it should multiply."""

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
            self.temperature = 0.08

        def forward(self, x):
            scores = self.body(x)
            return scores if self.training else scores / self.temperature

    torch.manual_seed(seed)
    y = torch.randint(0, 3, (1500,))
    X = torch.randn(1500, 6)
    X[:, :3] += 1.6 * F.one_hot(y, 3)
    model = Classifier()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(20):
        model.train()
        for idx in torch.randperm(1000).split(50):
            optimizer.zero_grad()
            loss_fn(model(X[idx]), y[idx]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(X[1000:])
            loss = loss_fn(out, y[1000:])
        doctor.log(loss=loss, outputs=out, targets=y[1000:])
        doctor.epoch(validation_loss=loss.item(), validation_score=accuracy(out, y[1000:]))
    return doctor.diagnosis()


# Confident because it has memorised uncertain labels: overfitting is as good a name for it.
@case("CST405", dose="severe", data="tabular", net="mlp", accept=("CST401",))
def sure_of_everything_on_overlapping_classes(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    y = torch.randint(0, 2, (1000,)).float()
    X = torch.randn(1000, 10)
    X[:, :4] += 0.7 * (y[:, None] - 0.5)
    model = nn.Sequential(
        nn.Linear(10, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1)
    )
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    doctor = watch(model, optimizer, task="binary")
    for _ in range(40):
        model.train()
        for idx in torch.randperm(500).split(50):
            logit = model(X[idx]).squeeze(1)
            loss = F.binary_cross_entropy_with_logits(logit, y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            logit = model(X[500:]).squeeze(1)
            doctor.log(outputs=logit, targets=y[500:])
        doctor.epoch(validation_score=((logit > 0) == (y[500:] > 0.5)).float().mean().item())
    return doctor.diagnosis()


# ------------------------------------------------------------------------ CST406 ignores-input


# What the network is given is constant over rows: that may be said of the columns as well.
@case("CST406", dose="severe", data="tabular", net="mlp", accept=("CST203",))
def a_dataset_that_always_returns_the_first_row(seed: int) -> Diagnosis:
    class Rows(Dataset):
        def __init__(self, X, y):
            self.X, self.y = X, y

        def __len__(self):
            return len(self.X)

        def __getitem__(self, i):
            return self.X[0], self.y[i]

    torch.manual_seed(seed)
    X = torch.randn(700, 8)
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).long()
    train, val = Rows(X[:500], y[:500]), Rows(X[500:], y[500:])
    model = nn.Sequential(
        nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    doctor = watch(model, optimizer, criterion)
    for _ in range(15):
        model.train()
        for xb, yb in DataLoader(train, batch_size=50, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            xb, yb = next(iter(DataLoader(val, batch_size=200)))
            out = model(xb)
        doctor.epoch(F.cross_entropy(out, yb).item(), accuracy(out, yb))
    return doctor.diagnosis()


@case("CST406", dose="severe", data="sequence", net="gru")
def layer_norm_over_a_single_channel(seed: int) -> Diagnosis:
    """Normalising one number by itself always gives nought, whatever the series was."""

    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(1)
            self.gru = nn.GRU(1, 16, batch_first=True)
            self.head = nn.Linear(16, 1)

        def forward(self, x):
            x = self.norm(x)
            h, _ = self.gru(x)
            return self.head(h[:, -1])

    torch.manual_seed(seed)
    t = torch.arange(640.0)
    series = torch.sin(0.3 * t) + 0.6 * torch.sin(0.77 * t + seed)
    windows = (series / series.std()).unfold(0, 9, 1)
    X, y = windows[:, :8, None], windows[:, 8:]
    model = Forecaster()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer)
    for _ in range(10):
        for idx in torch.randperm(500).split(50):
            optimizer.zero_grad()
            loss = F.mse_loss(model(X[idx]), y[idx])
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            error = F.mse_loss(model(X[500:]), y[500:]).item()
        doctor.epoch(validation_loss=error, validation_score=1 - error / y[500:].var().item())
    return doctor.diagnosis()


@case("CST406", dose="severe", data="sequence", net="transformer")
def a_first_token_read_out_under_a_causal_mask(seed: int) -> Diagnosis:
    """The classifier reads the leading CLS token, which the mask lets see nothing but itself."""
    from castalia.diagnose import examine

    class Classifier(nn.Module):
        def __init__(self, vocab=12, dim=24, length=10):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim)
            self.pos = nn.Parameter(0.1 * torch.randn(length, dim))
            layer = nn.TransformerEncoderLayer(dim, 2, 48, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1)
            self.head = nn.Linear(dim, 3)

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
            h = self.encoder(self.embed(x) + self.pos, mask=mask)
            return self.head(h[:, 0])

    torch.manual_seed(seed)
    x = torch.randint(1, 12, (700, 10))
    x[:, 0] = 0  # CLS
    y = x[:, 1:].gt(6).sum(1).clamp(3, 5) - 3
    model = Classifier()
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    criterion = nn.CrossEntropyLoss()
    for _ in range(8):
        for xb, yb in DataLoader(TensorDataset(x[:500], y[:500]), batch_size=50, shuffle=True):
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
    return examine(
        model, criterion, (x[:500], y[:500]), (x[500:], y[500:]), optimizer=optimizer, seconds=5
    )


@case("CST406", dose="severe", data="image", net="mlp")
def random_pixels_left_over_from_debugging(seed: int) -> Diagnosis:
    from castalia.diagnose import examine

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(64, 32)
            self.fc2 = nn.Linear(32, 10)

        def forward(self, x):
            x = torch.rand_like(x)  # test the shapes
            return self.fc2(F.relu(self.fc1(x)))

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(12):
        for idx in torch.randperm(len(Xt)).split(64):
            loss = F.cross_entropy(model(Xt[idx]), yt[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return examine(
        model,
        F.cross_entropy,
        TensorDataset(Xt, yt),
        TensorDataset(Xv, yv),
        optimizer=optimizer,
        task="multiclass",
        seconds=5,
    )
