"""Questions of the kind "why does my network not learn", with the answers below them."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import make_blobs, make_circles, make_classification, make_moons
from torch.utils.data import DataLoader, TensorDataset

from evidence.corpus.pairs._pairs import digit_images, pair, r2_score, series, split


@pair("CST102", accept=("CST111",))
def xor_stays_at_a_half(seed, fault):
    X = torch.Tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    Y = torch.Tensor([0, 1, 1, 0]).view(-1, 1)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid())
    criterion = nn.BCELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.0005 if fault else 0.5)
    for epoch in range(1000):
        optimizer.zero_grad()
        out = model(X)
        loss = criterion(out, Y)
        loss.backward()
        optimizer.step()
        if epoch % 100 == 0:
            print("epoch", epoch, "loss", loss.item())
    return ((model(X) > 0.5) == Y.bool()).float().mean().item()


@pair("CST301")
def always_answers_one(seed, fault):
    """Dense(1, activation='softmax'), said in PyTorch."""
    X_train, X_test, y_train, y_test = split("cancer", seed)
    last = nn.Softmax(dim=1) if fault else nn.Sigmoid()
    net = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1), last)
    opt = optim.Adam(net.parameters(), lr=0.005)
    X, y = torch.from_numpy(X_train), torch.from_numpy(y_train).float().unsqueeze(1)
    for epoch in range(15):
        perm = torch.randperm(len(X))
        for i in range(0, len(X), 32):
            idx = perm[i : i + 32]
            loss = F.binary_cross_entropy(net(X[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"Epoch {epoch} loss {loss.item():.4f}")
    with torch.no_grad():
        pred = (net(torch.from_numpy(X_test)).squeeze() > 0.5).numpy()
    return float((pred == y_test).mean())


@pair("CST301", accept=("CST106",))
def negative_targets_never_met(seed, fault):
    """A ReLU behind the last layer of a regression."""
    rng = np.random.RandomState(seed)
    x = np.linspace(-3, 3, 400).reshape(-1, 1).astype(np.float32)
    y = (np.sin(x) + 0.05 * rng.randn(400, 1)).astype(np.float32)
    x, y = torch.from_numpy(x), torch.from_numpy(y)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(1, 32)
            self.fc2 = nn.Linear(32, 32)
            self.fc3 = nn.Linear(32, 1)

        def forward(self, x):
            x = F.relu(self.fc1(x))
            x = F.relu(self.fc2(x))
            x = self.fc3(x)
            return F.relu(x) if fault else x

    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    loss_func = torch.nn.MSELoss()
    for t in range(400):
        prediction = net(x)
        loss = loss_func(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if t % 50 == 0:
            print(t, loss.data.item())
    return r2_score(net(x).detach(), y)


@pair("CST301")
def loss_will_not_go_below_1_46(seed, fault):
    """Softmax in the network and CrossEntropyLoss outside."""
    X_train, X_test, y_train, y_test = digit_images(seed)

    class CNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
            self.pool = nn.MaxPool2d(2)
            self.fc1 = nn.Linear(8 * 4 * 4, 32)
            self.fc2 = nn.Linear(32, 10)
            self.softmax = nn.Softmax(dim=1)

        def forward(self, x):
            x = self.pool(F.relu(self.conv1(x)))
            x = x.view(x.size(0), -1)
            x = F.relu(self.fc1(x))
            x = self.fc2(x)
            if fault:
                x = self.softmax(x)
            return x

    model = CNN()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    train_loader = DataLoader(TensorDataset(X_train, y_train), batch_size=32, shuffle=True)
    test_loader = DataLoader(TensorDataset(X_test, y_test), batch_size=100)
    for epoch in range(8):
        running_loss = 0.0
        model.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        model.eval()
        correct = total = 0
        with torch.no_grad():
            for inputs, labels in test_loader:
                outputs = model(inputs)
                val_loss = criterion(outputs, labels)
                correct += (outputs.argmax(1) == labels).sum().item()
                total += len(labels)
        print(epoch, running_loss / len(train_loader), val_loss.item(), correct / total)
    return correct / total


@pair("CST302", dose="mild", accept=("CST306",))
def class_numbers_by_squared_error(seed, fault):
    X_train, X_test, y_train, y_test = split("wine", seed)
    X = torch.tensor(X_train)
    model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 1 if fault else 3))
    y = torch.tensor(y_train).float().reshape(-1, 1) if fault else torch.tensor(y_train)
    loss_fn = nn.MSELoss() if fault else nn.CrossEntropyLoss()
    opt = torch.optim.Adam(model.parameters(), lr=0.005)
    loader = DataLoader(TensorDataset(X, y), batch_size=16, shuffle=True)
    for _ in range(15):
        for xb, yb in loader:
            opt.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            opt.step()
    with torch.no_grad():
        out = model(torch.tensor(X_test))
    pred = out.round().squeeze().numpy() if fault else out.argmax(1).numpy()
    return float((pred == y_test).mean())


@pair("CST302", dose="mild", accept=("CST301",))
def binary_crossentropy_for_ten_classes(seed, fault):
    """model.compile(loss='binary_crossentropy') with to_categorical labels and softmax."""
    X_train, X_test, y_train, y_test = digit_images(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    onehot = F.one_hot(y_train, 10).float()
    for epoch in range(12):
        order = np.random.RandomState(epoch).permutation(len(X_train))
        for b in range(0, len(order), 32):
            rows = order[b : b + 32]
            out = model(X_train[rows])
            if fault:
                loss = F.binary_cross_entropy(F.softmax(out, dim=1), onehot[rows])
            else:
                loss = F.cross_entropy(out, y_train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            acc = (model(X_test).argmax(1) == y_test).float().mean().item()
        print("Epoch", epoch, "acc", acc)
    return acc


@pair("CST301", accept=("CST302",))
def nll_loss_of_probabilities(seed, fault):
    """The loss is between 0 and -1 and the poster wonders."""
    X, y = make_blobs(n_samples=500, centers=4, cluster_std=1.0, random_state=seed)
    X = ((X - X.mean(0)) / X.std(0)).astype("float32")
    X, y = torch.from_numpy(X), torch.from_numpy(y).long()
    act = nn.Softmax(dim=1) if fault else nn.LogSoftmax(dim=1)
    model = nn.Sequential(nn.Linear(2, 20), nn.ReLU(), nn.Linear(20, 4), act)
    criterion = nn.NLLLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _e in range(20):
        running = 0
        for i in range(0, 400, 25):
            optimizer.zero_grad()
            loss = criterion(model(X[i : i + 25]), y[i : i + 25])
            loss.backward()
            optimizer.step()
            running += loss.item()
        with torch.no_grad():
            test_loss = criterion(model(X[400:]), y[400:])
        print(f"Training loss: {running / 16} test loss {test_loss}")
    return (model(X[400:]).argmax(1) == y[400:]).float().mean().item()


@pair("CST101", net="cnn", data="images")
def accuracy_stuck_at_ten_percent(seed, fault):
    X_train, X_test, y_train, y_test = digit_images(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip
    optimizer = optim.Adam(model.parameters(), lr=0.3 if fault else 0.003)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        for i in range(0, 1000, 40):
            out = model(X_train[i : i + 40])
            loss = criterion(out, y_train[i : i + 40])
            model.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_test)
            print(epoch, criterion(out, y_test).item())
    return (out.argmax(1) == y_test).float().mean().item()


@pair("CST101", accept=("CST105", "CST104"))
def loss_becomes_nan_in_linear_regression(seed, fault):
    """Andrew Ng's exercise: reduction='sum' with the rate meant for the mean."""
    rng = np.random.RandomState(seed)
    X = rng.randn(200, 4).astype(np.float32)
    y = X @ np.array([[1.5], [-2.0], [0.5], [3.0]], dtype=np.float32) + 0.7
    y = y + 0.1 * rng.randn(200, 1).astype(np.float32)
    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
    model = nn.Linear(4, 1)
    criterion = nn.MSELoss(reduction="sum" if fault else "mean")
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(100):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % 10 == 0:
            print(f"Epoch [{epoch + 1}/100], Loss: {loss.item():.4f}")
    return r2_score(np.nan_to_num(model(inputs).detach().numpy()), targets)


@pair("CST201", accept=("CST101", "CST105", "CST106"))
def breast_cancer_always_benign(seed, fault):
    X_train, X_test, y_train, y_test = split("cancer", seed, scale=not fault)
    net = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1))
    criterion = nn.BCEWithLogitsLoss()
    opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    ds = TensorDataset(torch.tensor(X_train), torch.tensor(y_train, dtype=torch.float32))
    for ep in range(15):
        correct = 0
        for xb, yb in DataLoader(ds, batch_size=32, shuffle=True):
            opt.zero_grad()
            out = net(xb).squeeze(1)
            loss = criterion(out, yb)
            loss.backward()
            opt.step()
            correct += ((out > 0) == yb.bool()).sum().item()
        print(ep, loss.item(), correct / len(ds))
    with torch.no_grad():
        pred = (net(torch.tensor(X_test)).squeeze(1) > 0).numpy()
    return float((pred == y_test).mean())


@pair("CST201", data="tabular", accept=("CST106", "CST101", "CST105"))
def wine_from_the_csv(seed, fault):
    """Thirteen columns from 0.1 to 1680, straight into the first layer."""
    X_train, X_test, y_train, y_test = split("wine", seed, scale=not fault)
    x, y = torch.from_numpy(X_train), torch.from_numpy(y_train)
    xt, yt = torch.from_numpy(X_test), torch.from_numpy(y_test)
    model = nn.Sequential(nn.Linear(13, 50), nn.ReLU(), nn.Linear(50, 3))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(400):
        y_pred = model(x)
        loss = loss_fn(y_pred, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            val = loss_fn(model(xt), yt)
        if epoch % 50 == 0:
            print(epoch, loss.item(), val.item())
    return (model(xt).argmax(1) == yt).float().mean().item()


@pair("CST202", accept=("CST111", "CST102"))
def predicts_the_same_blood_sugar(seed, fault):
    """Targets from 25 to 346 and a rate of 1e-3: outputs creep up for ever."""
    X_train, X_test, y_train, y_test = split("diabetes", seed)
    y_train = torch.tensor(y_train, dtype=torch.float32)[:, None]
    y_test = torch.tensor(y_test, dtype=torch.float32)[:, None]
    if not fault:
        mean, std = y_train.mean(), y_train.std()
        y_train, y_test = (y_train - mean) / std, (y_test - mean) / std
    net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = optim.Adam(net.parameters(), lr=0.003, weight_decay=1e-3)
    criterion = nn.MSELoss()
    loader = DataLoader(TensorDataset(torch.tensor(X_train), y_train), 32, shuffle=True)
    for epoch in range(15):
        net.train()
        for data, target in loader:
            optimizer.zero_grad()
            loss = criterion(net(data), target)
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            val_loss = criterion(net(torch.tensor(X_test)), y_test)
        print(f"epoch {epoch}: train {loss.item():.3f} val {val_loss.item():.3f}")
    with torch.no_grad():
        return r2_score(net(torch.tensor(X_test)), y_test)


@pair("CST108", accept=("CST406",))
def all_weights_set_to_zero(seed, fault):
    X, y = make_moons(400, noise=0.15, random_state=seed)
    X, y = torch.tensor(X).float(), torch.tensor(y).float().view(-1, 1)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1), nn.Sigmoid())

    def init_weights(m):
        if isinstance(m, nn.Linear):
            if fault:
                nn.init.zeros_(m.weight)
            else:
                nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0)

    model.apply(init_weights)
    opt = optim.Adam(model.parameters(), lr=0.02)
    for _epoch in range(40):
        for i in range(0, 300, 50):
            opt.zero_grad()
            loss = nn.BCELoss()(model(X[i : i + 50]), y[i : i + 50])
            loss.backward()
            opt.step()
        print(loss.item())
    return ((model(X[300:]) > 0.5).float() == y[300:]).float().mean().item()


@pair("CST109", accept=("CST104", "CST101", "CST106"))
def loss_starts_at_thousands(seed, fault):
    """Weights drawn by torch.randn, without dividing by anything."""
    X_train, X_test, y_train, y_test = split("digits", seed, test_size=0.4)
    X, y = torch.from_numpy(X_train), torch.from_numpy(y_train)
    net = nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    for m in net:
        if isinstance(m, nn.Linear) and fault:
            m.weight.data.normal_(0.0, 1.0)
    optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(10):
        perm = torch.randperm(len(X))
        total = 0.0
        for i in range(0, len(X), 32):
            idx = perm[i : i + 32]
            loss = F.cross_entropy(net(X[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total)
    with torch.no_grad():
        return (net(torch.from_numpy(X_test)).argmax(1).numpy() == y_test).mean()


@pair("CST103", accept=("CST109",))
def ten_hidden_layers_do_not_learn(seed, fault):
    X, y = make_circles(400, noise=0.05, factor=0.4, random_state=seed)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    layers = [nn.Linear(2, 20), nn.Sigmoid()]
    for _ in range(9 if fault else 1):
        layers += [nn.Linear(20, 20), nn.Sigmoid()]
    layers += [nn.Linear(20, 1)]
    model = nn.Sequential(*layers)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    for _epoch in range(30):
        for i in range(0, 300, 20):
            pred = model(X[i : i + 20]).squeeze()
            loss = criterion(pred, y[i : i + 20])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("loss:", loss.item())
    with torch.no_grad():
        return ((model(X[300:]).squeeze() > 0) == y[300:].bool()).float().mean().item()


@pair("CST301")
def sigmoid_before_bce_with_logits(seed, fault):
    X, y = make_classification(600, 12, n_informative=8, class_sep=1.2, random_state=seed)
    X = torch.tensor(X, dtype=torch.float32)
    X = (X - X.mean(0)) / X.std(0)
    y = torch.tensor(y, dtype=torch.float32)

    class BinaryClassification(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer_1 = nn.Linear(12, 32)
            self.layer_out = nn.Linear(32, 1)
            self.relu = nn.ReLU()
            self.batchnorm1 = nn.BatchNorm1d(32)

        def forward(self, inputs):
            x = self.batchnorm1(self.relu(self.layer_1(inputs)))
            x = self.layer_out(x)
            return torch.sigmoid(x) if fault else x

    def binary_acc(y_pred, y_test):
        tag = torch.round(y_pred if fault else torch.sigmoid(y_pred))
        return (tag == y_test).float().mean()

    model = BinaryClassification()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    loader = DataLoader(TensorDataset(X[:450], y[:450]), batch_size=64, shuffle=True)
    for e in range(1, 15):
        epoch_loss = epoch_acc = 0
        model.train()
        for X_batch, y_batch in loader:
            optimizer.zero_grad()
            y_pred = model(X_batch)
            loss = criterion(y_pred, y_batch.unsqueeze(1))
            acc = binary_acc(y_pred, y_batch.unsqueeze(1))
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
            epoch_acc += acc.item()
        print(f"Epoch {e:03}: | Loss: {epoch_loss / len(loader):.5f}")
    model.eval()
    with torch.no_grad():
        return binary_acc(model(X[450:]), y[450:].unsqueeze(1)).item()


@pair("CST304", data="time series", net="lstm", accept=())
def lstm_gives_a_flat_line(seed, fault):
    """UserWarning: Using a target size that is different to the input size."""
    X, y = series(seed)
    X, y = torch.from_numpy(X), torch.from_numpy(y)

    class LSTM(nn.Module):
        def __init__(self, hidden=24):
            super().__init__()
            self.lstm = nn.LSTM(1, hidden, batch_first=True)
            self.linear = nn.Linear(hidden, 1)

        def forward(self, x):
            out, _ = self.lstm(x)
            return self.linear(out[:, -1])

    model = LSTM()
    loss_function = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for i in range(12):
        order = torch.randperm(400)
        for b in range(0, 400, 25):
            seq, labels = X[order[b : b + 25]], y[order[b : b + 25]]
            optimizer.zero_grad()
            y_pred = model(seq)
            single_loss = loss_function(y_pred, labels.squeeze(1) if fault else labels)
            single_loss.backward()
            optimizer.step()
        print(f"epoch: {i:3} loss: {single_loss.item():10.8f}")
    with torch.no_grad():
        return r2_score(model(X[400:]), y[400:])
