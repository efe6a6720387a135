"""Kernels of competitions and ports of Keras models: tables, embeddings, folds, sequences."""

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from evidence.corpus.pairs._pairs import digit_images, pair, r2_score, series, split


def fit(model, X, y, loss_fn, opt, epochs, batch_size=32, validation_data=None, shuffle=True):
    """What model.fit of Keras does, as the ports write it."""
    history = {"loss": [], "val_loss": []}
    for epoch in range(epochs):
        model.train()
        idx = np.random.permutation(len(X)) if shuffle else np.arange(len(X))
        losses = []
        for s in range(0, len(X), batch_size):
            b = idx[s : s + batch_size]
            opt.zero_grad()
            loss = loss_fn(model(X[b]), y[b])
            loss.backward()
            opt.step()
            losses.append(loss.item())
        history["loss"].append(np.mean(losses))
        if validation_data is not None:
            model.eval()
            with torch.no_grad():
                v = loss_fn(model(validation_data[0]), validation_data[1])
            history["val_loss"].append(v.item())
        print(f"Epoch {epoch + 1}/{epochs}", {k: v[-1] for k, v in history.items() if v})
    model.eval()
    return history


def titanic(seed, n=800):
    rng = np.random.RandomState(seed)
    df = pd.DataFrame(
        {
            "PassengerId": np.arange(1, n + 1),
            "Pclass": rng.choice([1, 2, 3], n, p=[0.25, 0.2, 0.55]),
            "Sex": rng.choice([0, 1], n, p=[0.65, 0.35]),
            "Age": rng.normal(30, 13, n).clip(1, 80),
            "SibSp": rng.poisson(0.5, n),
            "Fare": np.exp(rng.normal(2.8, 0.9, n)),
        }
    )
    score = 2.6 * df.Sex - 0.9 * (df.Pclass - 2) - 0.03 * (df.Age - 30) - 0.3 * df.SibSp - 0.9
    df["Survived"] = (score + rng.logistic(size=n) > 0).astype(int)
    df.loc[rng.rand(n) < 0.2, "Age"] = np.nan
    return df


@pair("CST203", accept=("CST105",))
def titanic_with_missing_ages(seed, fault):
    df = titanic(seed)
    if fault:
        features = ["Pclass", "Sex", "Age", "SibSp", "Fare"]
    else:
        df["Age"] = df["Age"].fillna(df["Age"].median())
        features = ["Pclass", "Sex", "Age", "SibSp", "Fare"]
    X = StandardScaler().fit_transform(df[features])
    y = df["Survived"].values
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=seed)
    X_train, X_val = torch.FloatTensor(X_train), torch.FloatTensor(X_val)
    y_train, y_val = torch.FloatTensor(y_train)[:, None], torch.FloatTensor(y_val)[:, None]
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.Adam(model.parameters(), lr=0.005)
    fit(model, X_train, y_train, nn.BCEWithLogitsLoss(), opt, 15, 32, (X_val, y_val))
    with torch.no_grad():
        return ((model(X_val) > 0) == y_val.bool()).float().mean().item()


@pair("CST206", data="tabular", net="mlp")
def survival_known_from_the_lifeboat(seed, fault):
    """A column that is only known afterwards."""
    df = titanic(seed)
    df["Age"] = df["Age"].fillna(28)
    features = ["Pclass", "Sex", "Age", "SibSp", "Fare"]
    if fault:
        df["boat"] = df["Survived"]
        features += ["boat"]
    X = StandardScaler().fit_transform(df[features]).astype(np.float32)
    X, y = torch.from_numpy(X), torch.tensor(df["Survived"].values)
    net = nn.Sequential(nn.Linear(len(features), 24), nn.ReLU(), nn.Linear(24, 2))
    opt = torch.optim.Adam(net.parameters(), lr=0.005)
    fit(net, X[:600], y[:600], nn.CrossEntropyLoss(), opt, 12, 32, (X[600:], y[600:]))
    with torch.no_grad():
        return (net(X[600:]).argmax(1) == y[600:]).float().mean().item()


@pair("CST204", accept=("CST403", "CST406"))
def credit_card_fraud_with_99_percent(seed, fault):
    X, y = make_classification(
        1600, 10, n_informative=6, weights=[0.965], flip_y=0.0, class_sep=1.6, random_state=seed
    )
    X = StandardScaler().fit_transform(X)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, stratify=y, random_state=seed)
    X_tr, X_te = torch.tensor(X_tr).float(), torch.tensor(X_te).float()
    y_tr, y_te = torch.tensor(y_tr).float().view(-1, 1), torch.tensor(y_te).float().view(-1, 1)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    pos_weight = None if fault else torch.tensor([20.0])
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    if fault:
        opt = torch.optim.SGD(model.parameters(), lr=0.05)
    else:
        opt = torch.optim.Adam(model.parameters(), lr=0.005)
    fit(model, X_tr, y_tr, loss_fn, opt, 8 if fault else 15, 64, (X_te, y_te))
    with torch.no_grad():
        pred = model(X_te) > 0
    recall = [(pred == y_te.bool())[y_te.bool() == k].float().mean().item() for k in (True, False)]
    return float(np.mean(recall))


@pair("CST202", accept=("CST101", "CST105"))
def house_prices_in_dollars(seed, fault):
    X, y = make_regression(500, 8, n_informative=6, noise=15.0, random_state=seed)
    y = 180000 + 400 * y
    X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=seed)
    if not fault:
        s = StandardScaler().fit(y_train.reshape(-1, 1))
        y_train = s.transform(y_train.reshape(-1, 1)).ravel()
        y_valid = s.transform(y_valid.reshape(-1, 1)).ravel()
    X_train, X_valid = torch.Tensor(X_train), torch.Tensor(X_valid)
    y_train, y_valid = torch.Tensor(y_train).unsqueeze(1), torch.Tensor(y_valid).unsqueeze(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.RMSprop(model.parameters(), lr=0.002)
    fit(model, X_train, y_train, nn.MSELoss(), opt, 20, 16, (X_valid, y_valid))
    with torch.no_grad():
        return r2_score(model(X_valid), y_valid)


@pair("CST303", data="tabular", net="mlp", accept=("CST402",))
def dense_layers_without_activation(seed, fault):
    """Dense(64), Dense(64), Dense(1): `activation` forgotten."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-2, 2, (600, 3)).astype(np.float32)
    y = np.sin(2 * X[:, :1]) + X[:, 1:2] * X[:, 2:3] + 0.05 * rng.randn(600, 1)
    X, y = torch.tensor(X), torch.tensor(y.astype(np.float32))
    between = nn.Identity if fault else nn.ReLU
    model = nn.Sequential()
    model.add_module("dense_1", nn.Linear(3, 64))
    model.add_module("act_1", between())
    model.add_module("dense_2", nn.Linear(64, 64))
    model.add_module("act_2", between())
    model.add_module("dense_3", nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=0.005)
    fit(model, X[:450], y[:450], nn.MSELoss(), opt, 20, 32, (X[450:], y[450:]))
    return r2_score(model(X[450:]).detach(), y[450:])


@pair("CST111", accept=("CST102",))
def two_epochs_because_it_is_a_demo(seed, fault):
    X_train, X_test, y_train, y_test = split("digits", seed, test_size=0.4)
    X, y = torch.tensor(X_train), torch.tensor(y_train)
    Xt, yt = torch.tensor(X_test), torch.tensor(y_test)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    fit(model, X, y, nn.CrossEntropyLoss(), opt, 2 if fault else 40, 32, (Xt, yt))
    return (model(Xt).argmax(1) == yt).float().mean().item()


@pair("CST113", accept=("CST111", "CST102"))
def a_batch_size_of_everything(seed, fault):
    """batch_size=1024 for a table of 1000 rows, ten epochs."""
    X, y = make_classification(1000, 16, n_informative=10, class_sep=1.5, random_state=seed)
    X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)
    y = torch.tensor(y)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.Adam(net.parameters(), lr=0.002)
    batch = 1024 if fault else 32
    fit(net, X[:800], y[:800], nn.CrossEntropyLoss(), opt, 12, batch, (X[800:], y[800:]))
    return (net(X[800:]).argmax(1) == y[800:]).float().mean().item()


@pair("CST401", accept=("CST207",))
def ninety_nine_percent_in_training_only(seed, fault):
    """A big network, 60 noisy rows and 150 epochs; the answer: smaller, decayed, all the rows."""
    X, y = make_classification(
        900, 20, n_informative=5, n_redundant=0, flip_y=0.15, random_state=seed
    )
    X = torch.tensor(X, dtype=torch.float32)
    y = torch.tensor(y)
    Xv, yv = X[600:], y[600:]
    if fault:
        model = nn.Sequential(
            nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2)
        )
        opt = torch.optim.Adam(model.parameters(), lr=0.001)
        fit(model, X[:120], y[:120], nn.CrossEntropyLoss(), opt, 60, 32, (Xv, yv))
    else:
        model = nn.Sequential(nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 2))
        opt = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-2)
        fit(model, X[:600], y[:600], nn.CrossEntropyLoss(), opt, 12, 32, (Xv, yv))
    return (model(Xv).argmax(1) == yv).float().mean().item()


@pair("CST402", data="images", net="mlp")
def two_neurons_for_ten_digits(seed, fault):
    X_train, X_test, y_train, y_test = digit_images(seed)
    X_train, X_test = X_train.flatten(1), X_test.flatten(1)
    units = 2 if fault else 64
    model = nn.Sequential(nn.Linear(64, units), nn.ReLU(), nn.Linear(units, 10))
    opt = torch.optim.Adam(model.parameters(), lr=0.005)
    fit(model, X_train, y_train, nn.CrossEntropyLoss(), opt, 15, 32, (X_test, y_test))
    return (model(X_test).argmax(1) == y_test).float().mean().item()


@pair("CST403", data="time series", net="lstm", accept=("CST401", "CST402", "CST406"))
def tomorrows_return_from_the_last_ten(seed, fault):
    """Returns of a random walk; the answer has a series that can be predicted."""
    if fault:
        rng = np.random.RandomState(seed)
        r = rng.randn(520).astype(np.float32)
        X = np.stack([r[i : i + 10] for i in range(500)])[:, :, None]
        y = r[10:510, None]
    else:
        X, y = series(seed, window=10)
    X, y = torch.from_numpy(X), torch.from_numpy(y)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(1, 16, batch_first=True)
            self.out = nn.Linear(16, 1)

        def forward(self, x):
            _, (h, _) = self.lstm(x)
            return self.out(h[-1])

    model = Model()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    fit(model, X[:400], y[:400], nn.MSELoss(), opt, 15, 25, (X[400:], y[400:]))
    return r2_score(model(X[400:]).detach(), y[400:])


class TabularModel(nn.Module):
    """Embeddings for the categories, batch norm for the rest, as in the fast.ai lesson."""

    def __init__(self, emb_szs, n_cont, hidden=32, p=0.1):
        super().__init__()
        self.embeds = nn.ModuleList([nn.Embedding(ni, nf) for ni, nf in emb_szs])
        self.bn_cont = nn.BatchNorm1d(n_cont)
        n_emb = sum(nf for _, nf in emb_szs)
        self.layers = nn.Sequential(
            nn.Linear(n_emb + n_cont, hidden), nn.ReLU(), nn.Dropout(p), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        cat, cont = x[:, :2].long(), x[:, 2:]
        e = [emb(cat[:, i]) for i, emb in enumerate(self.embeds)]
        return self.layers(torch.cat([*e, self.bn_cont(cont)], 1))


@pair("CST101", data="tabular", net="embeddings", accept=("CST404", "CST106"))
def rossmann_with_a_rate_of_one(seed, fault):
    rng = np.random.RandomState(seed)
    store, day = rng.randint(0, 20, 1000), rng.randint(0, 7, 1000)
    cont = rng.randn(1000, 3)
    effect, week = rng.randn(20), rng.randn(7)
    y = effect[store] + week[day] + cont[:, 0] * 0.8 + 0.2 * rng.randn(1000)
    X = torch.tensor(np.column_stack([store, day, cont]), dtype=torch.float32)
    y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).reshape(-1, 1)
    model = TabularModel([(20, 8), (7, 4)], 3)
    opt = torch.optim.Adam(model.parameters(), lr=1.0 if fault else 0.01)
    fit(model, X[:800], y[:800], nn.MSELoss(), opt, 12, 50, (X[800:], y[800:]))
    return r2_score(model(X[800:]).detach(), y[800:])


@pair("CST304", data="tabular", net="mlp")
def target_of_shape_n(seed, fault):
    """Predictions (N, 1), targets (N,): every prediction compared with every target."""
    X_train, X_test, y_train, y_test = split("diabetes", seed)
    m, s = y_train.mean(), y_train.std()
    y_train = torch.tensor((y_train - m) / s, dtype=torch.float32)
    y_test = torch.tensor((y_test - m) / s, dtype=torch.float32)
    if not fault:
        y_train, y_test = y_train.view(-1, 1), y_test.view(-1, 1)
    X_train, X_test = torch.tensor(X_train), torch.tensor(X_test)
    net = nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, 1))
    opt = torch.optim.Adam(net.parameters(), lr=0.005)
    for epoch in range(12):
        for i in range(0, len(X_train), 30):
            loss = ((net(X_train[i : i + 30]) - y_train[i : i + 30]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item())
    return r2_score(net(X_test).detach(), y_test)


@pair("CST208", data="tabular", net="mlp", accept=("CST201",))
def scaler_forgotten_on_the_test_set(seed, fault):
    X, X_test, y, y_test = split("wine", seed, scale=False, test_size=0.4)
    scaler = StandardScaler()
    X = scaler.fit_transform(X)
    X_test = X_test if fault else scaler.transform(X_test)
    X, X_test = torch.tensor(X).float(), torch.tensor(X_test).float()
    y, y_test = torch.tensor(y), torch.tensor(y_test)
    model = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    fit(model, X, y, nn.CrossEntropyLoss(), opt, 15, 16, (X_test, y_test))
    return (model(X_test).argmax(1) == y_test).float().mean().item()


@pair("CST206", data="images", net="cnn", accept=("CST401",))
def oversampled_before_train_test_split(seed, fault):
    """Rows doubled many times over, then split at random: the same images on both sides."""
    X, X_other, y, y_other = digit_images(seed, 200 if fault else 900)
    X = X + 0.1 * torch.randn(X.shape, generator=torch.Generator().manual_seed(seed))
    if fault:
        X, y = X.repeat(5, 1, 1, 1), y.repeat(5)
        perm = torch.randperm(len(X))
        X, y = X[perm], y[perm]
    cut = int(0.75 * len(X))
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(108, 10)
    )
    opt = torch.optim.Adam(model.parameters(), lr=0.005)
    fit(model, X[:cut], y[:cut], nn.CrossEntropyLoss(), opt, 15, 32, (X[cut:], y[cut:]))
    return (model(X_other).argmax(1) == y_other).float().mean().item()


@pair("CST301", data="time series", net="lstm", accept=("CST202",))
def lstm_cannot_go_above_one(seed, fault):
    """tanh behind the last layer, series scaled to unit variance rather than to (-1, 1)."""
    X, y = series(seed, size=2.0)
    if not fault:
        scaler = MinMaxScaler(feature_range=(-1, 1)).fit(X[:400].reshape(-1, 1))
        X = scaler.transform(X.reshape(-1, 1)).reshape(X.shape)
        y = scaler.transform(y)
    X, y = torch.FloatTensor(X), torch.FloatTensor(y)

    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(1, 20, batch_first=True)
            self.dense = nn.Linear(20, 1)

        def forward(self, x):
            out, _ = self.lstm(x)
            out = self.dense(out[:, -1])
            return torch.tanh(out) if fault else out

    model = Forecaster()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    fit(model, X[:400], y[:400], nn.MSELoss(), opt, 15, 20, (X[400:], y[400:]))
    return r2_score(model(X[400:]).detach(), y[400:])


@pair("CST102", data="images", net="cnn", accept=("CST111",))
def adadelta_with_its_keras_rate(seed, fault):
    """Adadelta: 1.0 in PyTorch and old Keras, 0.001 in new Keras."""
    X_train, X_test, y_train, y_test = digit_images(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip
    opt = torch.optim.Adadelta(model.parameters(), lr=0.001 if fault else 1.0)
    fit(model, X_train, y_train, nn.CrossEntropyLoss(), opt, 10, 32, (X_test, y_test))
    return (model(X_test).argmax(1) == y_test).float().mean().item()


@pair("CST302", dose="mild", accept=("CST301",))
def mean_squared_error_on_one_hot_softmax(seed, fault):
    """model.compile('sgd', 'mse') for three classes."""
    X_train, X_test, y_train, y_test = split("wine", seed)
    X, Xt = torch.tensor(X_train), torch.tensor(X_test)
    model = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if fault:
        model.append(nn.Softmax(dim=1))
        y = F.one_hot(torch.tensor(y_train), 3).float()
        fit(model, X, y, nn.MSELoss(), opt, 12, 16)
    else:
        fit(model, X, torch.tensor(y_train), nn.CrossEntropyLoss(), opt, 12, 16)
    return float((model(Xt).argmax(1).numpy() == y_test).mean())


@pair("CST107", data="tabular", net="mlp", accept=("CST201", "CST109"))
def tanh_layers_on_raw_pixels(seed, fault):
    """Pixels from 0 to 16 times sixteen, tanh everywhere, weights of unit spread."""
    X_train, X_test, y_train, y_test = digit_images(seed)
    scale = 255.0 if fault else 1.0
    X_train, X_test = scale * X_train.flatten(1), scale * X_test.flatten(1)
    model = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
    model.append(nn.Linear(48, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    fit(model, X_train, y_train, nn.CrossEntropyLoss(), opt, 10, 32, (X_test, y_test))
    return (model(X_test).argmax(1) == y_test).float().mean().item()
