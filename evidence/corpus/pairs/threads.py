"""Forum threads and issues: a training loop, a plot that will not fall, somebody who spots it."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import optim
from torch.autograd import Variable
from torch.utils.data import DataLoader, Dataset, TensorDataset

from evidence.corpus.pairs._pairs import digit_images, pair, r2_score, series, split


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    total, correct, n = 0.0, 0, 0
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(data)
        correct += (output.argmax(1) == target).sum().item()
        n += len(data)
    return total / n, correct / n


@torch.no_grad()
def test_epoch(model, loader, criterion):
    model.eval()
    total, correct, n = 0.0, 0, 0
    for data, target in loader:
        output = model(data)
        total += criterion(output, target).item() * len(data)
        correct += (output.argmax(1) == target).sum().item()
        n += len(data)
    return total / n, correct / n


def digit_loaders(seed, n=1000, batch_size=32, shuffle=True):
    X_train, X_test, y_train, y_test = digit_images(seed, n)
    return (
        DataLoader(TensorDataset(X_train, y_train), batch_size=batch_size, shuffle=shuffle),
        DataLoader(TensorDataset(X_test, y_test), batch_size=200),
    )


@pair("CST112", net="cnn", data="images", accept=("CST101",))
def the_loss_jumps_up_and_down(seed, fault):
    """No zero_grad anywhere."""
    train_loader, test_loader = digit_loaders(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 10)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(12):
        for i, (inputs, labels) in enumerate(train_loader, 0):
            inputs, labels = Variable(inputs), Variable(labels)
            if not fault:
                optimizer.zero_grad()
            loss = criterion(net(inputs), labels)
            loss.backward()
            optimizer.step()
            if i % 10 == 9:
                print(f"[{epoch + 1}, {i + 1:5d}] loss: {loss.item():.3f}")
    return test_epoch(net, test_loader, criterion)[1]


@pair("CST110", data="images", net="mlp")
def model_defined_again_after_the_optimizer(seed, fault):
    train_loader, test_loader = digit_loaders(seed)

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.l1 = nn.Linear(64, 40)
            self.l2 = nn.Linear(40, 10)

        def forward(self, x):
            return self.l2(torch.relu(self.l1(x.reshape(-1, 64))))

    model = FeedForward()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    if fault:
        model = FeedForward()
    criterion = nn.CrossEntropyLoss()
    for epoch in range(10):
        train = train_epoch(model, train_loader, criterion, optimizer)
        test = test_epoch(model, test_loader, criterion)
        print(epoch, train, test)
    return test[1]


@pair("CST110", data="tabular", net="mlp", accept=("CST406",))
def loss_made_a_variable_again(seed, fault):
    """RuntimeError: element 0 does not require grad, silenced by Variable(..., requires_grad)."""
    X_train, X_test, y_train, y_test = split("wine", seed)
    model = nn.Sequential(nn.Linear(13, 20), nn.ReLU(), nn.Linear(20, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        for i in range(0, len(X_train), 20):
            x, y = torch.from_numpy(X_train[i : i + 20]), torch.from_numpy(y_train[i : i + 20])
            loss = F.cross_entropy(model(x), y)
            if fault:
                loss = Variable(loss.data, requires_grad=True)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return float((model(torch.from_numpy(X_test)).argmax(1).numpy() == y_test).mean())


@pair("CST116", data="images", net="cnn", accept=("CST404",))
def validation_better_every_time_i_run_it(seed, fault):
    """Never model.eval(): dropout of 0.5 twice stays on while testing."""
    X_train, X_test, y_train, y_test = digit_images(seed)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 16, 3)
            self.drop = nn.Dropout(0.5)
            self.fc1 = nn.Linear(16 * 9, 64)
            self.fc2 = nn.Linear(64, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = self.drop(x.flatten(1))
            x = self.drop(F.relu(self.fc1(x)))
            return self.fc2(x)

    net = Net()
    opt = optim.Adam(net.parameters(), lr=0.004)
    loader = DataLoader(TensorDataset(X_train, y_train), batch_size=32, shuffle=True)
    for epoch in range(10):
        if not fault:
            net.train()
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if not fault:
            net.eval()
        with torch.no_grad():
            out = net(X_test)
            val_loss = F.cross_entropy(out, y_test)
        print(epoch, val_loss.item(), (out.argmax(1) == y_test).float().mean().item())
    return (out.argmax(1) == y_test).float().mean().item()


@pair("CST305", data="tabular", net="mlp", accept=("CST301",))
def implicit_dimension_choice_for_softmax(seed, fault):
    X_train, X_test, y_train, y_test = split("wine", seed)

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(13, 32)
            self.fc2 = nn.Linear(32, 3)

        def forward(self, x):
            x = F.relu(self.fc1(x))
            return F.log_softmax(self.fc2(x), dim=0 if fault else 1)

    model = Classifier()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    trainset = TensorDataset(torch.from_numpy(X_train), torch.from_numpy(y_train))
    for _e in range(12):
        running_loss = 0
        for x, labels in DataLoader(trainset, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = F.nll_loss(model(x), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print(f"Training loss: {running_loss}")
    return float((model(torch.from_numpy(X_test)).argmax(1).numpy() == y_test).mean())


@pair("CST209", data="images", net="cnn")
def forgets_the_first_classes(seed, fault):
    """ImageFolder without shuffle: all zeros, then all ones, …"""
    X_train, X_test, y_train, y_test = digit_images(seed)
    order = torch.argsort(y_train, stable=True)
    ds = TensorDataset(X_train[order], y_train[order])
    train_loader = DataLoader(ds, batch_size=20, shuffle=not fault)
    test_loader = DataLoader(TensorDataset(X_test, y_test), batch_size=200)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    for epoch in range(8):
        tr = train_epoch(net, train_loader, criterion, optimizer)
        va = test_epoch(net, test_loader, criterion)
        print(f"epoch {epoch} train {tr} val {va}")
    return va[1]


@pair("CST104", data="time series", net="rnn", accept=("CST101", "CST105", "CST109"))
def rnn_loss_explodes_after_some_steps(seed, fault):
    X, y = series(seed, window=40)
    X, y = torch.from_numpy(X), torch.from_numpy(y)

    class RNN(nn.Module):
        def __init__(self, hidden=20):
            super().__init__()
            self.hidden = hidden
            self.i2h = nn.Linear(1 + hidden, hidden)
            self.h2o = nn.Linear(hidden, 1)
            if fault:
                nn.init.normal_(self.i2h.weight, std=0.6)

        def forward(self, x):
            h = torch.zeros(len(x), self.hidden)
            for t in range(x.shape[1]):
                h = self.i2h(torch.cat([x[:, t], h], 1))
                h = torch.relu(h) if fault else torch.tanh(h)
            return self.h2o(h)

    model = RNN()
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    criterion = nn.MSELoss()
    for epoch in range(10):
        for b in range(0, 400, 25):
            optimizer.zero_grad()
            loss = criterion(model(X[b : b + 25]), y[b : b + 25])
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    with torch.no_grad():
        return r2_score(torch.nan_to_num(model(X[400:])), y[400:])


@pair("CST105", data="tabular", net="mlp", accept=("CST301", "CST302"))
def nan_out_of_my_own_cross_entropy(seed, fault):
    """-y * log(p) with p from a clamped ReLU output: log of zero."""
    X_train, X_test, y_train, y_test = split("cancer", seed)
    X, y = torch.tensor(X_train), torch.tensor(y_train).float()
    w1 = torch.randn(30, 12) * 0.2
    w2 = torch.randn(12, 1) * 0.2
    w1.requires_grad_()
    w2.requires_grad_()
    opt = optim.Adam([w1, w2], lr=0.01)

    def predict(x):
        h = torch.relu(x @ w1) @ w2
        if fault:
            return torch.clamp(h + 0.5, 0, 1).squeeze(1)
        return torch.sigmoid(h).squeeze(1).clamp(1e-6, 1 - 1e-6)

    for i in range(150):
        p = predict(X)
        loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 25 == 0:
            print(i, loss.item())
    pred = predict(torch.tensor(X_test)).detach().numpy() > 0.5
    return float((pred == y_test).mean())


@pair("CST404", data="images", net="mlp")
def dropout_of_nine_tenths(seed, fault):
    """The poster took `p` for the probability of keeping."""
    p = 0.9 if fault else 0.1
    train_loader, test_loader = digit_loaders(seed)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 64), nn.ReLU(),
        nn.Dropout(p), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for _epoch in range(12):
        print(train_epoch(model, train_loader, criterion, optimizer))
        val = test_epoch(model, test_loader, criterion)
        print(val)
    return val[1]


@pair("CST404", data="images", net="mlp")
def dropout_on_the_logits(seed, fault):
    train_loader, test_loader = digit_loaders(seed)
    last = [nn.Dropout(0.5)] if fault else []
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10), *last)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(10):
        a, b = train_epoch(model, train_loader, criterion, optimizer)
        c, d = test_epoch(model, test_loader, criterion)
        print(f"{epoch}: loss {a:.3f} acc {b:.3f} val_loss {c:.3f} val_acc {d:.3f}")
    return d


@pair("CST404", data="tabular", net="mlp", accept=("CST402", "CST406"))
def weight_decay_of_one(seed, fault):
    """L2 written into the wrong argument: weight_decay=1.0."""
    X_train, X_test, y_train, y_test = split("digits", seed, test_size=0.4)
    X_train, X_test = torch.tensor(X_train), torch.tensor(X_test)
    y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)
    net = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 10))
    opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.5 if fault else 1e-4)
    for epoch in range(10):
        perm = torch.randperm(len(X_train))
        for chunk in perm.split(32):
            opt.zero_grad()
            loss = F.cross_entropy(net(X_train[chunk]), y_train[chunk])
            loss.backward()
            opt.step()
        with torch.no_grad():
            val_loss = F.cross_entropy(net(X_test), y_test)
        print(epoch, loss.item(), val_loss.item())
    return (net(X_test).argmax(1) == y_test).float().mean().item()


@pair("CST115", data="images", net="cnn")
def batch_norm_with_two_images(seed, fault):
    """Out of memory, so batch_size=2."""
    train_loader, test_loader = digit_loaders(seed, 400, 2 if fault else 25)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
        nn.Linear(72, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3 if fault else 5e-3)
    for _epoch in range(4 if fault else 12):
        print(train_epoch(model, train_loader, criterion, optimizer))
        val = test_epoch(model, test_loader, criterion)
        print(val)
    return val[1]


@pair("CST301", data="images", net="autoencoder", accept=("CST201",))
def autoencoder_returns_grey(seed, fault):
    """Inputs normalised to mean 0 and spread 1, decoder ends in a sigmoid."""
    X_train, X_test, _, _ = digit_images(seed)
    if fault:
        X_train, X_test = (X_train - 0.3) / 0.38, (X_test - 0.3) / 0.38

    class AutoEncoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 12))
            self.decoder = nn.Sequential(
                nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid()
            )

        def forward(self, x):
            encoded = self.encoder(x)
            decoded = self.decoder(encoded)
            return encoded, decoded

    autoencoder = AutoEncoder()
    optimizer = torch.optim.Adam(autoencoder.parameters(), lr=0.005)
    loss_func = nn.MSELoss()
    loader = DataLoader(X_train, batch_size=32, shuffle=True)
    for epoch in range(25):
        for x in loader:
            b_x = x.view(-1, 64)
            encoded, decoded = autoencoder(b_x)
            loss = loss_func(decoded, b_x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("Epoch: ", epoch, f"| train loss: {loss.item():.4f}")
    with torch.no_grad():
        return r2_score(autoencoder(X_test.view(-1, 64))[1], X_test)


@pair("CST102", data="text", net="embedding bag", accept=("CST111",))
def text_classification_tutorial_with_adams_rate(seed, fault):
    """The news tutorial runs SGD at 5.0; the poster wrote 1e-3."""
    rng = np.random.RandomState(seed)
    topics = rng.dirichlet(np.full(200, 0.05), size=4)
    labels = rng.randint(4, size=600)
    docs = [rng.choice(200, size=rng.randint(8, 30), p=topics[k]) for k in labels]

    def collate_batch(batch):
        label_list, text_list, offsets = [], [], [0]
        for doc, label in batch:
            label_list.append(label)
            text_list.append(torch.tensor(doc, dtype=torch.int64))
            offsets.append(len(doc))
        offsets = torch.tensor(offsets[:-1]).cumsum(dim=0)
        return torch.tensor(label_list), torch.cat(text_list), offsets

    class TextClassificationModel(nn.Module):
        def __init__(self, vocab_size, embed_dim, num_class):
            super().__init__()
            self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
            self.fc = nn.Linear(embed_dim, num_class)
            self.embedding.weight.data.uniform_(-0.5, 0.5)
            self.fc.weight.data.uniform_(-0.5, 0.5)
            self.fc.bias.data.zero_()

        def forward(self, text, offsets):
            return self.fc(self.embedding(text, offsets))

    model = TextClassificationModel(200, 32, 4)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001 if fault else 3.0)
    data = list(zip(docs, labels, strict=True))
    train_dl = DataLoader(data[:450], batch_size=32, shuffle=True, collate_fn=collate_batch)
    valid_dl = DataLoader(data[450:], batch_size=64, collate_fn=collate_batch)
    for _ in range(10):
        model.train()
        for label, text, offsets in train_dl:
            optimizer.zero_grad()
            loss = criterion(model(text, offsets), label)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1 if fault else 1.0)
            optimizer.step()
        model.eval()
        total_acc = 0
        with torch.no_grad():
            for label, text, offsets in valid_dl:
                predicted = model(text, offsets)
                criterion(predicted, label)
                total_acc += (predicted.argmax(1) == label).sum().item()
        print(total_acc / 150)
    return total_acc / 150


@pair("CST306", data="images", net="cnn", dose="mild")
def a_thousand_outputs_kept(seed, fault):
    """The head of ImageNet left in place for ten classes."""
    train_loader, test_loader = digit_loaders(seed, 600)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(144, 1000 if fault else 10),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(10):
        train_epoch(net, train_loader, criterion, optimizer)
        loss, acc = test_epoch(net, test_loader, criterion)
        print(loss, acc)
    return acc


@pair("CST106", data="images", net="mlp", accept=("CST101", "CST109"))
def my_relus_are_all_zero(seed, fault):
    """Biases filled with -10 for "sparsity"."""
    train_loader, test_loader = digit_loaders(seed)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)
    )
    if fault:
        for m in model.modules():
            if isinstance(m, nn.Linear) and m.out_features != 10:
                m.bias.data.fill_(-10.0)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for _ in range(10):
        train_epoch(model, train_loader, criterion, optimizer)
        val = test_epoch(model, test_loader, criterion)
        print("val loss {:.3f} val acc {:.3f}".format(*val))
    return val[1]


@pair("CST205", data="images", net="mlp", accept=("CST403", "CST402", "CST406", "CST401"))
def dataset_returns_the_wrong_label(seed, fault):
    """An index bug in __getitem__: the label is that of another image."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)

    class DigitDataset(Dataset):
        def __init__(self, images, labels):
            self.images, self.labels = images, labels

        def __len__(self):
            return len(self.images)

        def __getitem__(self, i):
            j = (i + 7) % len(self.images) if fault else i
            return torch.from_numpy(self.images[i]), int(self.labels[j])

    train = DigitDataset(images[:800], digits.target[:800])
    valid = DigitDataset(images[800:1200], digits.target[800:1200])
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=100)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(10):
        print(train_epoch(net, train_loader, nn.CrossEntropyLoss(), optimizer))
        val = test_epoch(net, valid_loader, nn.CrossEntropyLoss())
    return val[1]


@pair("CST202", data="time series", net="gru", accept=("CST201", "CST102", "CST111"))
def gru_predicts_the_mean_price(seed, fault):
    """Closing prices of several hundred dollars, not scaled."""
    X, y = series(seed, level=450.0, size=60.0)
    if not fault:
        mean, std = X[:400].mean(), X[:400].std()
        X, y = (X - mean) / std, (y - mean) / std
    X, y = torch.tensor(X), torch.tensor(y)

    class GRU(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(1, 24, batch_first=True)
            self.fc = nn.Linear(24, 1)

        def forward(self, x):
            out, hn = self.gru(x, torch.zeros(1, x.size(0), 24))
            return self.fc(out[:, -1, :])

    model = GRU()
    criterion = nn.MSELoss(reduction="mean")
    optimiser = optim.Adam(model.parameters(), lr=0.01)
    hist = np.zeros(120)
    for t in range(120):
        y_train_pred = model(X[:400])
        loss = criterion(y_train_pred, y[:400])
        hist[t] = loss.item()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return r2_score(model(X[400:]), y[400:])
