"""Faults of objective and architecture: CST301 to CST306, as people write them."""

import warnings

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_circles, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case


def digits(seed):
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.3, random_state=seed, stratify=y)
    Xt, Xv = (torch.tensor(part, dtype=torch.float32) for part in parts[:2])
    return Xt, Xv, torch.tensor(parts[2]), torch.tensor(parts[3])


def table(load, seed):
    X, y = load(return_X_y=True)
    Xt, Xv, yt, yv = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(Xt)
    Xt, Xv = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (Xt, Xv))
    return Xt, Xv, torch.tensor(yt), torch.tensor(yv)


def waves(seed, rows=600, noise=0.1):
    """Regression on six standard normal features with a standardised target."""
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(rows, 6, generator=g)
    y = torch.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    y = y + noise * torch.randn(rows, generator=g)
    return X, (y - y.mean()) / y.std()


# ---------------------------------------------------------------- CST301 wrong-output-activation


@case("CST301", dose="severe", data="image", net="mlp")
def softmax_before_cross_entropy_loss(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    model = nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(1)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
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
            score = (out.argmax(1) == yv).float().mean().item()
            doctor.epoch(validation_loss=criterion(out, yv).item(), validation_score=score)
    return doctor.diagnosis()


@case("CST301", dose="mild", data="image", net="cnn")
def softmax_in_forward_of_a_cnn_trained_with_adam(seed: int) -> Diagnosis:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
            self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
            self.fc = nn.Linear(64, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), 2)
            x = torch.flatten(x, 1)
            return F.softmax(self.fc(x), dim=1)

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    Xt, Xv = Xt.view(-1, 1, 8, 8), Xv.view(-1, 1, 8, 8)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    with watch(net, optimizer) as doctor:
        for _ in range(12):
            net.train()
            for idx in torch.randperm(len(Xt)).split(64):
                loss = F.cross_entropy(net(Xt[idx]), yt[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            net.eval()
            with torch.no_grad():
                pred = net(Xv)
            accuracy = (pred.argmax(1) == yv).float().mean().item()
            doctor.epoch(F.cross_entropy(pred, yv).item(), accuracy)
    return doctor.diagnosis()


@case("CST301", dose="severe", data="tabular", net="mlp")
def relu_on_the_output_of_a_regression(seed: int) -> Diagnosis:
    class Regressor(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(6, 64)
            self.fc2 = nn.Linear(64, 64)
            self.out = nn.Linear(64, 1)
            nn.init.constant_(self.out.bias, 0.5)  # so that it starts alive

        def forward(self, x):
            x = F.relu(self.fc1(x))
            x = F.relu(self.fc2(x))
            return F.relu(self.out(x))

    torch.manual_seed(seed)
    X, y = waves(seed)
    X, Xv, y, yv = X[:450], X[450:], y[:450, None], y[450:, None]
    model = Regressor()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, opt)
    for _ in range(60):
        for idx in torch.randperm(450).split(64):
            opt.zero_grad()
            loss = ((model(X[idx]) - y[idx]) ** 2).mean()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            error = ((model(Xv) - yv) ** 2).mean()
        doctor.epoch(validation_loss=float(error), validation_score=float(1 - error / yv.var()))
    return doctor.diagnosis()


@case("CST301", dose="mild", data="sequence", net="gru")
def tanh_on_the_output_of_a_forecast(seed: int) -> Diagnosis:
    """Standardised targets reach nearly two, the output never more than one."""

    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(1, 24, batch_first=True)
            self.head = nn.Linear(24, 1)

        def forward(self, x):
            h, _ = self.gru(x)
            return torch.tanh(self.head(h[:, -1])).squeeze(-1)

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    phase, speed = rng.uniform(0, 6.28, (600, 1)), rng.uniform(0.3, 0.6, (600, 1))
    series = np.exp(1.5 * np.sin(phase + speed * np.arange(9)))
    series = torch.tensor((series - series.mean()) / series.std(), dtype=torch.float32)
    x, y = series[:, :8, None], series[:, 8]
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_fn = nn.MSELoss()
    doctor = watch(model, optimizer, loss_fn, task="regression")
    for _ in range(20):
        for i in range(0, 480, 48):
            optimizer.zero_grad()
            loss_fn(model(x[i : i + 48]), y[i : i + 48]).backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(model(x[480:]), y[480:]).item())
    return doctor.diagnosis()


@case("CST301", dose="severe", data="tabular", net="mlp")
def softmax_over_a_single_unit(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = table(load_breast_cancer, seed)
    yt, yv = yt.float().unsqueeze(1), yv.float().unsqueeze(1)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1), nn.Softmax(dim=1))
    loss_fn = nn.BCELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(15):
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=64, shuffle=True):
            pred = model(xb)
            loss = loss_fn(pred, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            score = ((model(Xv) > 0.5).float() == yv).float().mean().item()
        doctor.epoch(validation_score=score)
    return doctor.diagnosis()


@case("CST301", dose="mild", data="tabular", net="mlp")
def sigmoid_before_bce_with_logits(seed: int) -> Diagnosis:
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1))
            self.sigmoid = nn.Sigmoid()

        def forward(self, x):
            return self.sigmoid(self.layers(x))

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = table(load_breast_cancer, seed)
    yt, yv = yt.float()[:, None], yv.float()[:, None]
    clf = Classifier()
    opt = torch.optim.SGD(clf.parameters(), lr=0.03, momentum=0.9)
    doctor = watch(clf, opt)
    for _ in range(15):
        for idx in torch.randperm(len(Xt)).split(32):
            out = clf(Xt[idx])
            loss = F.binary_cross_entropy_with_logits(out, yt[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss.item(), outputs=out, targets=yt[idx])
        with torch.no_grad():
            out = clf(Xv)
            loss = F.binary_cross_entropy_with_logits(out, yv).item()
            doctor.epoch(loss, ((out > 0.5).float() == yv).float().mean().item())
    return doctor.diagnosis()


# The log-probabilities are missing from the output, or the wrong loss was picked: both mend it.
@case("CST301", dose="severe", data="image", net="mlp", accept=("CST302",))
def nll_loss_on_raw_scores(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer, criterion)
    for _ in range(20):
        for idx in torch.randperm(len(Xt)).split(64):
            optimizer.zero_grad()
            loss = criterion(model(Xt[idx]), yt[idx])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = model(Xv)
        score = (out.argmax(1) == yv).float().mean().item()
        doctor.epoch(validation_loss=criterion(out, yv).item(), validation_score=score)
    return doctor.diagnosis()


# -------------------------------------------------------------------------- CST302 wrong-loss


@case("CST302", dose="severe", data="image", net="mlp")
def squared_error_of_softmax_against_one_hot(seed: int) -> Diagnosis:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.l1 = nn.Linear(64, 48)
            self.l2 = nn.Linear(48, 32)
            self.l3 = nn.Linear(32, 10)

        def forward(self, x):
            x = torch.relu(self.l1(x))
            x = torch.relu(self.l2(x))
            return torch.softmax(self.l3(x), dim=1)

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    target = F.one_hot(yt, 10).float()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    doctor = watch(model, optimizer)
    for _ in range(25):
        for idx in torch.randperm(len(Xt)).split(64):
            loss = F.mse_loss(model(Xt[idx]), target[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            score = (model(Xv).argmax(1) == yv).float().mean().item()
        doctor.epoch(validation_score=score)
    return doctor.diagnosis()


@case("CST302", dose="mild", data="tabular", net="mlp")
def squared_error_on_a_sigmoid(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = make_moons(600, noise=0.15, random_state=seed)
    X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32).view(-1, 1)
    model = nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1), nn.Sigmoid()
    )
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(60):
        for idx in torch.randperm(450).split(50):
            optimizer.zero_grad()
            loss_fn(model(X[idx]), y[idx]).backward()
            optimizer.step()
        with torch.no_grad():
            p = model(X[450:])
        doctor.epoch(
            validation_loss=F.mse_loss(p, y[450:]).item(),
            validation_score=((p > 0.5) == (y[450:] > 0.5)).float().mean().item(),
        )
    return doctor.diagnosis()


@case("CST302", dose="mild", data="image", net="cnn")
def binary_cross_entropy_for_ten_exclusive_digits(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    Xt, Xv = Xt.reshape(-1, 1, 8, 8), Xv.reshape(-1, 1, 8, 8)
    Yt = torch.eye(10)[yt]
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12 * 16, 10),
    )
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    doctor = watch(model, optimizer, criterion)
    for _ in range(12):
        for xb, yb in DataLoader(TensorDataset(Xt, Yt), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = model(Xv)
        acc = (out.argmax(1) == yv).float().mean().item()
        doctor.epoch(validation_loss=criterion(out, torch.eye(10)[yv]).item(), validation_score=acc)
    return doctor.diagnosis()


@case("CST302", dose="severe", data="tabular", net="mlp")
def binary_cross_entropy_for_a_real_valued_target(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = waves(seed)
    train = TensorDataset(X[:450], y[:450, None])
    model = nn.Sequential(
        nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(40):
        for xb, yb in DataLoader(train, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss_fn(model(xb), yb).backward()
            optimizer.step()
        with torch.no_grad():
            error = F.mse_loss(model(X[450:]), y[450:, None]).item()
        doctor.epoch(validation_score=1 - error / y[450:].var().item())
    return doctor.diagnosis()


# One output for ten classes is a fault of size as much as one of the loss: mending needs both.
@case("CST302", dose="severe", data="image", net="mlp", accept=("CST306",))
def class_numbers_fitted_by_regression(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(net.parameters(), lr=0.002)
    doctor = watch(net, opt)
    for _ in range(25):
        for idx in torch.randperm(len(Xt)).split(64):
            out = net(Xt[idx]).squeeze(1)
            loss = F.mse_loss(out, yt[idx].float())
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=out, targets=yt[idx])
        with torch.no_grad():
            hits = (net(Xv).squeeze(1).round().long() == yv).float()
        doctor.epoch(validation_score=hits.mean().item())
    return doctor.diagnosis()


# --------------------------------------------------------------- CST303 missing-nonlinearity


@case("CST303", dose="severe", data="tabular", net="mlp")
def a_stack_of_linear_layers_on_circles(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = make_circles(600, noise=0.08, factor=0.4, random_state=seed)
    X, y = torch.tensor(X, dtype=torch.float32) * 1.5, torch.tensor(y)
    model = nn.Sequential(nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer, criterion)
    for _ in range(150):
        optimizer.zero_grad()
        loss = criterion(model(X[:450]), y[:450])
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            out = model(X[450:])
        doctor.epoch(
            criterion(out, y[450:]).item(), (out.argmax(1) == y[450:]).float().mean().item()
        )
    return doctor.diagnosis()


@case("CST303", dose="severe", data="tabular", net="mlp")
def an_activation_that_forward_forgets(seed: int) -> Diagnosis:
    class Model(nn.Module):
        def __init__(self, n_in, n_hidden):
            super().__init__()
            self.fc1 = nn.Linear(n_in, n_hidden)
            self.fc2 = nn.Linear(n_hidden, n_hidden)
            self.fc3 = nn.Linear(n_hidden, 1)
            self.relu = nn.ReLU()

        def forward(self, x):
            out = self.fc1(x)
            out = self.fc2(out)
            return self.fc3(out)

    torch.manual_seed(seed)
    X, y = waves(seed, rows=1000)
    loader = DataLoader(TensorDataset(X[:800], y[:800]), batch_size=64, shuffle=True)
    model = Model(6, 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    doctor = watch(model, optimizer)
    for _ in range(30):
        for xb, yb in loader:
            pred = model(xb).squeeze(-1)
            loss = torch.mean((pred - yb) ** 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            error = torch.mean((model(X[800:]).squeeze(-1) - y[800:]) ** 2).item()
        doctor.epoch(validation_loss=error)
    return doctor.diagnosis()


@case("CST303", dose="mild", data="tabular", net="mlp")
def batch_norm_and_dropout_but_no_activation(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = make_moons(800, noise=0.1, random_state=seed)
    X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32)
    net = nn.Sequential(
        nn.Linear(2, 64),
        nn.BatchNorm1d(64),
        nn.Dropout(0.1),
        nn.Linear(64, 64),
        nn.BatchNorm1d(64),
        nn.Linear(64, 1),
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 25)
    doctor = watch(net, optimizer)
    for _ in range(25):
        net.train()
        for idx in torch.randperm(600).split(60):
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(net(X[idx]).flatten(), y[idx])
            loss.backward()
            optimizer.step()
        schedule.step()
        net.eval()
        with torch.no_grad():
            z = net(X[600:]).flatten()
            val = F.binary_cross_entropy_with_logits(z, y[600:]).item()
        doctor.epoch(val, ((z > 0) == (y[600:] > 0.5)).float().mean().item())
    return doctor.diagnosis()


@case("CST303", dose="severe", data="image", net="cnn")
def strided_convolutions_without_activation(seed: int) -> Diagnosis:
    """Stripes, across or along, of either sign: no linear map of the pixels separates them."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 1000)
    wave = np.sin(rng.uniform(0, 6.28, (1000, 1)) + 1.6 * np.arange(12))
    images = np.where(y[:, None, None] == 1, wave[:, :, None], wave[:, None, :])
    images = images + 0.3 * rng.normal(size=(1000, 12, 12))
    X = torch.tensor(images, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(y)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.Flatten(),
        nn.Linear(144, 2),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    doctor = watch(net, optimizer, criterion)
    for _ in range(8):
        for xb, yb in DataLoader(TensorDataset(X[:800], y[:800]), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(net(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net(X[800:])
        score = (out.argmax(1) == y[800:]).float().mean().item()
        doctor.epoch(validation_loss=criterion(out, y[800:]).item(), validation_score=score)
    return doctor.diagnosis()


# -------------------------------------------------------------- CST304 output-shape-broadcast


@case("CST304", dose="severe", data="tabular", net="mlp")
def a_column_of_predictions_minus_a_row_of_targets(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = waves(seed)
    model = nn.Sequential(
        nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer)
    for _ in range(40):
        for idx in torch.randperm(450).split(50):
            p = model(X[idx])
            loss = ((p - y[idx]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            residual = model(X[450:]).squeeze() - y[450:]
        doctor.epoch(validation_score=1 - residual.var().item() / y[450:].var().item())
    return doctor.diagnosis()


@case("CST304", dose="severe", data="tabular", net="mlp")
def mse_loss_whose_warning_was_ignored(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = waves(seed + 100)
    model = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 1))
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer, loss_fn)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore")
        for _ in range(40):
            for xb, yb in DataLoader(TensorDataset(X[:450], y[:450]), batch_size=64, shuffle=True):
                optimizer.zero_grad()
                loss = loss_fn(model(xb), yb)
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                doctor.epoch(validation_loss=loss_fn(model(X[450:]), y[450:]).item())
    return doctor.diagnosis()


@case("CST304", dose="severe", data="sequence", net="lstm")
def a_squeezed_forecast_against_a_column_of_targets(seed: int) -> Diagnosis:
    class LSTMModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(1, 24, batch_first=True)
            self.linear = nn.Linear(24, 1)

        def forward(self, x):
            out, (h, c) = self.lstm(x)
            return self.linear(h[-1]).squeeze(1)

    torch.manual_seed(seed)
    t = torch.arange(700.0)
    series = torch.sin(0.25 * t) + 0.5 * torch.sin(0.61 * t + seed)
    windows = series.unfold(0, 16, 1)
    X, y = windows[:, :15, None], windows[:, 15:]  # y: (N, 1)
    model = LSTMModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer)
    for _ in range(15):
        for idx in torch.randperm(500).split(50):
            optimizer.zero_grad()
            pred = model(X[idx])
            loss = torch.mean(torch.abs(pred - y[idx]))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            doctor.log(loss=loss, outputs=pred, targets=y[idx])
        with torch.no_grad():
            doctor.epoch(validation_loss=torch.mean(torch.abs(model(X[500:]) - y[500:])).item())
    return doctor.diagnosis()


@case("CST304", dose="severe", data="tabular", net="mlp")
def logits_and_labels_broadcast_in_a_hand_written_logistic_loss(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = table(load_breast_cancer, seed)
    yt = yt.float() * 2 - 1  # labels -1 and 1
    w = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    sgd = torch.optim.SGD(w.parameters(), lr=0.03, momentum=0.9)
    doctor = watch(w, sgd)
    for _ in range(15):
        for idx in torch.randperm(len(Xt)).split(40):
            loss = F.softplus(-yt[idx] * w(Xt[idx])).mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            doctor.log(loss=loss.item())
        with torch.no_grad():
            score = ((w(Xv)[:, 0] > 0) == (yv > 0)).float().mean().item()
        doctor.epoch(validation_score=score)
    return doctor.diagnosis()


# ----------------------------------------------------------- CST305 softmax-over-wrong-axis


@case("CST305", dose="mild", data="image", net="mlp")
def log_softmax_over_the_batch(seed: int) -> Diagnosis:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(64, 64)
            self.fc2 = nn.Linear(64, 10)

        def forward(self, x):
            x = F.relu(self.fc1(x))
            return F.log_softmax(self.fc2(x), dim=0)

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    doctor = watch(model, optimizer)
    for _ in range(20):
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = F.nll_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = model(Xv)
        doctor.epoch(F.nll_loss(out, yv).item(), (out.argmax(1) == yv).float().mean().item())
    return doctor.diagnosis()


@case("CST305", dose="severe", data="sequence", net="gru")
def tag_probabilities_that_sum_to_one_over_time(seed: int) -> Diagnosis:
    """The tag of a token says whether it is larger than the one before it."""

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 16)
            self.gru = nn.GRU(16, 32, batch_first=True)
            self.out = nn.Linear(32, 3)

        def forward(self, x):  # (N, T)
            h, _ = self.gru(self.embed(x))
            return torch.softmax(self.out(h), dim=1)  # (N, T, tags)

    torch.manual_seed(seed)
    x = torch.randint(0, 20, (500, 12))
    before = F.pad(x[:, :-1], (1, 0), value=10)
    y = (x > before).long() + 2 * (x == before).long()
    model = Tagger()
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer, criterion)
    for _ in range(12):
        for idx in torch.randperm(400).split(40):
            p = model(x[idx])
            loss = criterion(torch.log(p + 1e-8).flatten(0, 1), y[idx].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            score = (model(x[400:]).argmax(-1) == y[400:]).float().mean().item()
        doctor.epoch(validation_score=score)
    return doctor.diagnosis()


@case("CST305", dose="severe", data="sequence", net="attention")
def attention_weights_normalised_over_the_batch(seed: int) -> Diagnosis:
    """One marked step carries the answer; the weights of a sequence should sum to one over time."""

    class AttentionPool(nn.Module):
        def __init__(self, dim=6, hidden=32, classes=4):
            super().__init__()
            self.lift = nn.Linear(dim, hidden)
            self.score = nn.Linear(hidden, 1)
            self.head = nn.Linear(hidden, classes)

        def forward(self, x):  # (N, T, dim)
            h = torch.tanh(self.lift(x))
            a = F.softmax(self.score(h), dim=0)  # (N, T, 1)
            return self.head((a * h).sum(dim=1))

    torch.manual_seed(seed)
    x = torch.randn(800, 10, 6)
    y = torch.randint(0, 4, (800,))
    where = torch.randint(0, 10, (800,))
    x[torch.arange(800), where, 0] = 3.0
    x[torch.arange(800), where, 1:5] = 2.0 * F.one_hot(y, 4).float()
    model = AttentionPool()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(20):
        for idx in torch.randperm(640).split(64):
            optimizer.zero_grad()
            loss_fn(model(x[idx]), y[idx]).backward()
            optimizer.step()
        with torch.no_grad():
            out = torch.cat([model(batch) for batch in x[640:].split(8)])
        score = (out.argmax(1) == y[640:]).float().mean().item()
        doctor.epoch(validation_loss=F.cross_entropy(out, y[640:]).item(), validation_score=score)
    return doctor.diagnosis()


@case("CST305", dose="severe", data="tabular", net="mlp")
def softmax_module_with_dim_zero(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = table(load_wine, seed)
    net = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3), nn.Softmax(dim=0))
    opt = torch.optim.RMSprop(net.parameters(), lr=0.003)
    doctor = watch(net, opt)
    for _ in range(40):
        for idx in torch.randperm(len(Xt)).split(31):
            p = net(Xt[idx])
            loss = -torch.log(p[torch.arange(len(idx)), yt[idx]] + 1e-9).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            pred = torch.cat([net(row[None]).argmax(dim=1) for row in Xv])  # one wine at a time
        score = (pred == yv).float().mean().item()
        doctor.epoch(validation_score=score)
    return doctor.diagnosis()


# ------------------------------------------------------------------ CST306 wrong-output-size


@case("CST306", dose="severe", data="image", net="cnn")
def a_head_of_a_thousand_outputs_for_ten_digits(seed: int) -> Diagnosis:
    class SmallNet(nn.Module):
        def __init__(self, num_classes=1000):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
            )
            self.classifier = nn.Linear(8 * 16, num_classes)

        def forward(self, x):
            return self.classifier(self.features(x).flatten(1))

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    Xt, Xv = Xt.view(-1, 1, 8, 8), Xv.view(-1, 1, 8, 8)
    model = SmallNet()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    doctor = watch(model, optimizer, criterion)
    for _ in range(10):
        model.train()
        for xb, yb in DataLoader(TensorDataset(Xt, yt), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(Xv)
            score = (out.argmax(1) == yv).float().mean().item()
            doctor.epoch(validation_loss=criterion(out, yv).item(), validation_score=score)
    return doctor.diagnosis()


@case("CST306", dose="mild", data="tabular", net="mlp")
def ten_outputs_kept_from_a_tutorial_for_two_classes(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = make_moons(600, noise=0.2, random_state=seed)
    X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)
    y = torch.tensor(y)
    num_classes = 10
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, num_classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer)
    for _ in range(50):
        for idx in torch.randperm(450).split(50):
            logits = model(X[idx])
            loss = F.cross_entropy(logits, y[idx], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=y[idx])
        with torch.no_grad():
            logits = model(X[450:])
        score = (logits.argmax(1) == y[450:]).float().mean().item()
        doctor.epoch(F.cross_entropy(logits, y[450:]).item(), score)
    return doctor.diagnosis()


# A binary loss on one output for three classes: the loss is as wrong as the size.
@case("CST306", dose="severe", data="tabular", net="mlp", accept=("CST302",))
def one_logit_for_three_wines(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = table(load_wine, seed)
    train = TensorDataset(Xt, yt.float().unsqueeze(1))
    model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 1))
    loss_fn = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(40):
        for xb, yb in DataLoader(train, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            score = (model(Xv)[:, 0].sigmoid().round().long() == yv).float().mean().item()
        doctor.epoch(validation_score=score)
    return doctor.diagnosis()


# One output against two target columns: it is by broadcasting that the loss lets it pass.
@case("CST306", dose="severe", data="tabular", net="mlp", accept=("CST304",))
def one_output_for_two_target_columns(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X = torch.randn(600, 5)
    Y = torch.stack([torch.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] * X[:, 3] - X[:, 1]], dim=1)
    Y = (Y - Y.mean(0)) / Y.std(0)
    model = nn.Sequential(
        nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer)
    for _ in range(40):
        for idx in torch.randperm(450).split(50):
            loss = torch.pow(model(X[idx]) - Y[idx], 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(validation_loss=torch.pow(model(X[450:]) - Y[450:], 2).mean().item())
    return doctor.diagnosis()
