"""Notebooks sent round with "please have a look": rarer mistakes, longer ways to the loss."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.preprocessing import StandardScaler
from torch import optim
from torch.utils.data import DataLoader, TensorDataset

from evidence.corpus.pairs._pairs import digit_images, pair, r2_score, series, split


@pair("CST301", data="counts", net="mlp", accept=("CST302", "CST105", "CST101", "CST104"))
def bike_rentals_by_poisson(seed, fault):
    """log_input=False, and nothing keeps the outputs above zero."""
    rng = np.random.RandomState(seed)
    X = rng.randn(700, 5).astype(np.float32)
    rate = np.exp(0.8 + 0.5 * X[:, 0] - 0.4 * X[:, 1] + 0.3 * np.abs(X[:, 2]))
    y = torch.tensor(rng.poisson(rate), dtype=torch.float32)
    X = torch.from_numpy(X)
    net = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
    criterion = nn.PoissonNLLLoss(log_input=not fault)
    optimizer = optim.Adam(net.parameters(), lr=0.003)
    for epoch in range(20):
        for idx in torch.randperm(525).split(25):
            out = net(X[idx]).squeeze(1)
            loss = criterion(out, y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net(X[525:]).squeeze(1)
            val = criterion(out, y[525:])
        print(epoch, val.item())
    return r2_score(torch.nan_to_num(out if fault else out.exp()), y[525:])


@pair("CST113", data="tabular", net="mlp", accept=("CST101",))
def one_flower_at_a_time(seed, fault):
    """for x, y in zip(X, Y): a step per row, at a rate for batches."""
    iris = load_iris()
    X = torch.tensor(StandardScaler().fit_transform(iris.data), dtype=torch.float32)
    Y = torch.tensor(iris.target)
    perm = torch.randperm(150, generator=torch.Generator().manual_seed(seed))
    train, test = perm[:110], perm[110:]
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.5 if fault else 0.02)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(10):
        total = 0
        for i in train[torch.randperm(110)]:
            optimizer.zero_grad()
            loss = loss_fn(model(X[i : i + 1]), Y[i : i + 1])
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / 110)
    return (model(X[test]).argmax(1) == Y[test]).float().mean().item()


@pair("CST302", data="tabular", net="mlp", accept=("CST301",))
def genres_by_cross_entropy(seed, fault):
    """Several genres may hold for one film, and softmax shares one between them."""
    X, Y = make_multilabel_classification(700, 20, n_classes=5, n_labels=2, random_state=seed)
    X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)
    Y = torch.tensor(Y, dtype=torch.float32)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5))
    criterion = nn.CrossEntropyLoss() if fault else nn.BCEWithLogitsLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    loader = DataLoader(TensorDataset(X[:550], Y[:550]), batch_size=32, shuffle=True)
    for epoch in range(18):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val_loss = criterion(model(X[550:]), Y[550:])
        print(epoch, val_loss.item())
    out = model(X[550:])
    pred = out.softmax(1) > 0.5 if fault else out > 0
    return (pred == Y[550:].bool()).float().mean().item()


class SmallCNN(nn.Module):
    def __init__(self, classes=5, detach=False):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(64, classes)
        self.detach = detach

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        if self.detach:
            x = torch.tensor(x.detach().numpy())
        return self.fc(x.flatten(1))


@pair("CST110", data="images", net="cnn", accept=())
def features_through_numpy(seed, fault):
    """.detach().numpy() in forward, to inspect the features, and back again."""
    X_train, X_test, y_train, y_test = digit_images(seed)
    model = SmallCNN(10, detach=fault)
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(8):
        for idx in torch.randperm(len(X_train)).split(40):
            loss = F.cross_entropy(model(X_train[idx]), y_train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        acc = (model(X_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch} acc {acc:.3f}")
    return acc


@pair("CST102", data="images", net="cnn", accept=("CST110", "CST111"))
def scheduler_stepped_every_batch(seed, fault):
    """StepLR(step_size=3, gamma=0.1) within the inner loop: no rate is left after an epoch."""
    X_train, X_test, y_train, y_test = digit_images(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)
    )
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=3 if fault else 8, gamma=0.1)
    loader = DataLoader(TensorDataset(X_train, y_train), batch_size=32, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(10):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            if fault:
                scheduler.step()
        if not fault:
            scheduler.step()
        with torch.no_grad():
            out = model(X_test)
            print(epoch, scheduler.get_last_lr(), criterion(out, y_test).item())
    return (out.argmax(1) == y_test).float().mean().item()


@pair("CST102", data="text", net="gru", accept=("CST111",))
def gradients_clipped_to_a_thousandth(seed, fault):
    """clip_grad_norm_(…, 1e-3) copied from somewhere, plain descent."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(1, 20, (600, 10), generator=g)
    y = ((x == 3).any(1) | (x == 7).any(1)).long()

    class Sentiment(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(20, 12)
            self.gru = nn.GRU(12, 24, batch_first=True)
            self.fc = nn.Linear(24, 2)

        def forward(self, x):
            out, _ = self.gru(self.emb(x))
            return self.fc(out.max(1).values)

    model = Sentiment()
    optimizer = optim.SGD(model.parameters(), lr=0.5 if not fault else 0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(12):
        model.train()
        for idx in torch.randperm(450).split(30):
            optimizer.zero_grad()
            loss = criterion(model(x[idx]), y[idx])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3 if fault else 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(x[450:])
            print(epoch, criterion(out, y[450:]).item())
    return (out.argmax(1) == y[450:]).float().mean().item()


@pair("CST116", dose="mild", data="images", net="cnn", accept=("CST115",))
def eval_mode_from_the_first_validation_on(seed, fault):
    """model.eval() after the first epoch and never train() again; the first epoch is short."""
    X_train, X_test, y_train, y_test = digit_images(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.3), nn.Linear(72, 10),
    )  # fmt: skip
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(10):
        if not fault:
            model.train()
        for idx in torch.randperm(len(X_train)).split(40):
            optimizer.zero_grad()
            loss = criterion(model(X_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(X_test)
            print(epoch, loss.item(), criterion(out, y_test).item())
    return (out.argmax(1) == y_test).float().mean().item()


@pair("CST301", data="images", net="mlp")
def sigmoid_for_ten_classes(seed, fault):
    X_train, X_test, y_train, y_test = digit_images(seed)
    layers = [nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10)]
    if fault:
        layers.append(nn.Sigmoid())
    net = nn.Sequential(*layers)
    optimizer = optim.Adam(net.parameters(), lr=0.003)
    for epoch in range(10):
        running_loss, running_correct = 0.0, 0
        for idx in torch.randperm(1000).split(50):
            out = net(X_train[idx])
            loss = nn.functional.cross_entropy(out, y_train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            running_correct += (out.argmax(1) == y_train[idx]).sum().item()
        print(epoch, running_loss / 20, running_correct / 1000)
    return (net(X_test).argmax(1) == y_test).float().mean().item()


@pair("CST201", data="images", net="cnn", accept=("CST101", "CST106", "CST104"))
def imagenet_mean_on_bytes(seed, fault):
    """Normalize(0.485, 0.229) over images that were never divided by 255."""
    X_train, X_test, y_train, y_test = digit_images(seed)
    if fault:
        X_train, X_test = 255 * X_train, 255 * X_test
    X_train, X_test = (X_train - 0.485) / 0.229, (X_test - 0.485) / 0.229
    model = SmallCNN(10)
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    loader = DataLoader(TensorDataset(X_train, y_train), batch_size=32, shuffle=True)
    for epoch in range(8):
        model.train()
        for xb, yb in loader:
            loss = criterion(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(X_test)
            print(epoch, criterion(out, y_test).item())
    return (out.argmax(1) == y_test).float().mean().item()


@pair("CST301", data="images", net="mlp", accept=("CST302",))
def kl_divergence_of_probabilities(seed, fault):
    """KLDivLoss wants logarithms and gets softmax."""
    X_train, X_test, y_train, y_test = digit_images(seed)
    soft = F.one_hot(y_train, 10) * 0.9 + 0.01
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    criterion = nn.KLDivLoss(reduction="batchmean")
    optimizer = optim.Adam(net.parameters(), lr=0.003)
    for epoch in range(12):
        for idx in torch.randperm(1000).split(40):
            out = net(X_train[idx])
            out = F.softmax(out, dim=1) if fault else F.log_softmax(out, dim=1)
            loss = criterion(out, soft[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return (net(X_test).argmax(1) == y_test).float().mean().item()


@pair("CST403", data="time series", net="lstm", accept=("CST402", "CST401", "CST207"))
def tomorrows_price_is_todays(seed, fault):
    """Prices of a random walk, scaled: the forecast lags a day behind and looks wonderful."""
    rng = np.random.RandomState(seed)
    if fault:
        price = np.cumsum(rng.randn(520)).astype(np.float32)
        price = (price - price[:410].mean()) / price[:410].std()
        X = np.stack([price[i : i + 10] for i in range(500)])[:, :, None]
        y = price[10:510, None]
    else:
        X, y = series(seed, window=10)
    X, y = torch.from_numpy(X), torch.from_numpy(y)

    class StockLSTM(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(1, 24, batch_first=True)
            self.fc = nn.Linear(24, 1)

        def forward(self, x):
            return self.fc(self.lstm(x)[0][:, -1])

    model = StockLSTM()
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(15):
        for i in range(0, 400, 20):
            optimizer.zero_grad()
            loss = F.mse_loss(model(X[i : i + 20]), y[i : i + 20])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            val = F.mse_loss(model(X[400:]), y[400:])
        print(epoch, loss.item(), val.item())
    with torch.no_grad():
        return r2_score(model(X[400:]), y[400:])


@pair("CST110", data="tabular", net="mlp")
def zero_grad_between_backward_and_step(seed, fault):
    X_train, X_test, y_train, y_test = split("cancer", seed)
    X, y = torch.from_numpy(X_train), torch.from_numpy(y_train).float().view(-1, 1)
    Xt, yt = torch.from_numpy(X_test), torch.from_numpy(y_test).float().view(-1, 1)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
    criterion = nn.BCELoss()
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(15):
        for i in range(0, len(X), 32):
            loss = criterion(model(X[i : i + 32]), y[i : i + 32])
            if not fault:
                optimizer.zero_grad()
            loss.backward()
            if fault:
                optimizer.zero_grad()
            optimizer.step()
        with torch.no_grad():
            val = criterion(model(Xt), yt)
        print(f"{epoch} {loss.item():.4f} {val.item():.4f}")
    return ((model(Xt) > 0.5) == yt.bool()).float().mean().item()


@pair("CST103", data="images", net="mlp", accept=("CST109",))
def thirty_plain_layers(seed, fault):
    """The same thirty layers learn once each adds to what it was given."""
    X_train, X_test, y_train, y_test = digit_images(seed)

    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.inp = nn.Linear(64, 32)
            self.hidden = nn.ModuleList([nn.Linear(32, 32) for _ in range(30)])
            self.norm = nn.LayerNorm(32)
            self.out = nn.Linear(32, 10)

        def forward(self, x):
            x = self.inp(x.flatten(1))
            for layer in self.hidden:
                x = torch.relu(layer(x)) if fault else x + torch.relu(layer(x)) / math.sqrt(30)
            return self.out(x if fault else self.norm(x))

    model = Deep()
    optimizer = optim.Adam(model.parameters(), lr=0.001)
    for epoch in range(8):
        for idx in torch.randperm(1000).split(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_test)
            print(epoch, loss.item(), F.cross_entropy(out, y_test).item())
    return (out.argmax(1) == y_test).float().mean().item()


@pair("CST101", data="tabular", net="mlp", accept=("CST104", "CST105"))
def momentum_of_point_99(seed, fault):
    X_train, X_test, y_train, y_test = split("diabetes", seed)
    m, s = y_train.mean(), y_train.std()
    y = torch.tensor((y_train - m) / s, dtype=torch.float32)[:, None]
    yt = torch.tensor((y_test - m) / s, dtype=torch.float32)[:, None]
    X, Xt = torch.tensor(X_train), torch.tensor(X_test)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    momentum = 0.99 if fault else 0.9
    optimizer = optim.SGD(model.parameters(), lr=0.1 if fault else 0.01, momentum=momentum)
    for epoch in range(10):
        for i in range(0, len(X), 32):
            optimizer.zero_grad()
            loss = F.mse_loss(model(X[i : i + 32]), y[i : i + 32])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            val = F.mse_loss(model(Xt), yt)
        print(epoch, loss.item(), val.item())
    with torch.no_grad():
        return r2_score(model(Xt), yt)


@pair("CST207", data="images", net="cnn", accept=("CST401",))
def forty_photographs(seed, fault):
    X_train, X_test, y_train, y_test = digit_images(seed, 40 if fault else 1000)
    model = SmallCNN(10)
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    loader = DataLoader(
        TensorDataset(X_train, y_train), batch_size=8 if fault else 32, shuffle=True
    )
    for epoch in range(40 if fault else 8):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(X_test)
            print(epoch, loss.item(), F.cross_entropy(out, y_test).item())
    return (out.argmax(1) == y_test).float().mean().item()


@pair("CST202", data="tabular", net="mlp", accept=("CST201", "CST101", "CST111", "CST102"))
def a_network_that_squares_numbers(seed, fault):
    """x from -100 to 100 and y = x²; ten epochs of SGD give nan, of Adam nothing."""
    x = torch.linspace(-100, 100, 400).unsqueeze(1)
    y = x**2
    if not fault:
        x, y = x / 100, y / 10000
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    loss_fn = nn.MSELoss()
    for epoch in range(30):
        for idx in torch.randperm(400).split(20):
            loss = loss_fn(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return r2_score(model(x).detach(), y)
