"""Units that are dead, saturated, twins of each other or badly begun: CST106 to CST109."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import watch
from evidence.corpus.calibration import _data as data
from evidence.corpus.calibration._twins import cured
from evidence.corpus.cases import case


def accuracy(out, y):
    return (out.argmax(1) == y).float().mean().item()


def train(model, X, y, optimizer, epochs, size, criterion):
    """A loop as in the tutorials; yields after each epoch."""
    loader = DataLoader(TensorDataset(X, y), batch_size=size, shuffle=True)
    for _ in range(epochs):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        yield


# ---- CST106, dead units ----


class Shrinking(nn.Module):
    """Passes only what is above a threshold."""

    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 64), nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.fc1(x) - self.threshold)
        x = F.relu(self.fc2(x))
        return self.fc3(x)


@case("CST106", dose="severe", data="images", net="mlp")
@cured(threshold=0.1)
def threshold_that_nothing_reaches(seed, threshold=3.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    net = Shrinking(threshold)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    doctor = watch(net, optimizer, criterion)
    for _ in train(net, X, y, optimizer, 8, 64, criterion):
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


# Accepted as well: it is the initialisation of the biases that kills the units.
@case("CST106", dose="severe", data="tabular", net="mlp", accept=("CST109",))
@cured(bias=0.0)
def biases_begun_far_below_zero(seed, bias=-6.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed)
    model = nn.Sequential(
        nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3)
    )
    for layer in (model[0], model[2]):
        nn.init.constant_(layer.bias, bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    doctor = watch(model, optimizer)
    for _ in train(model, X, y, optimizer, 25, 32, F.cross_entropy):
        with torch.no_grad():
            doctor.epoch(validation_score=accuracy(model(X_val), y_val))
    return doctor.diagnosis()


# Accepted as well: the weights were drawn from the wrong range.
@case("CST106", dose="severe", data="images", net="cnn", accept=("CST109",))
@cured(low=-0.35, high=0.35)
def filters_drawn_below_zero(seed, low=-0.35, high=0.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=640, images=True)  # pixels are never negative
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(72, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
    nn.init.uniform_(net[0].weight, low, high)
    nn.init.zeros_(net[0].bias)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    with watch(net, optimizer, criterion) as doctor:
        for _ in train(net, X, y, optimizer, 12, 32, criterion):
            with torch.no_grad():
                out = net(X_val)
                doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
        return doctor.diagnosis()


class NarrowNet(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(8, 12), nn.Linear(12, 12), nn.Linear(12, 12)])
        self.head = nn.Linear(12, 1)
        with torch.no_grad():
            for layer in self.body:
                layer.bias[:10] += bias  # left over from an experiment with sparse codes

    def forward(self, x):
        for layer in self.body:
            x = F.relu(layer(x))
        return self.head(x)


# Accepted as well: the units begin dead.
@case("CST106", dose="mild", data="tabular", net="mlp", accept=("CST109",))
@cured(bias=0.0)
def most_units_of_a_narrow_net_are_dead(seed, bias=-5.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    model = NarrowNet(bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, optimizer)
    for _ in range(30):
        for rows in torch.randperm(len(X)).split(32):
            loss = F.mse_loss(model(X[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


# ---- CST107, saturated units ----


# Accepted as well: the weights begin far too large for tanh.
@case("CST107", dose="severe", data="images", net="mlp", accept=("CST109",))
@cured(std=0.1)
def tanh_with_weights_of_unit_spread(seed, std=1.5):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    X, X_val = data.standardise(X, X_val)
    model = nn.Sequential(
        nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)
    )
    for layer in (model[0], model[2]):
        nn.init.normal_(layer.weight, std=std)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    doctor = watch(model, optimizer, criterion)
    for _ in train(model, X, y, optimizer, 12, 64, criterion):
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class BagOfTokens(nn.Module):
    """Adds up the embeddings of a text and squashes the sum."""

    def __init__(self, pool):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.hidden = nn.Linear(16, 16)
        self.out = nn.Linear(16, 1)
        self.pool = pool

    def forward(self, ids):
        h = torch.tanh(self.pool(self.embed(ids), 1))
        return self.out(torch.tanh(self.hidden(h))).squeeze(1)


def _reviews(seed, n=700, length=120):
    """Texts of which a few more words are good than bad."""
    g = torch.Generator().manual_seed(seed)
    X = torch.randint(50, (n, length), generator=g)
    mood = (X < 10).float().sum(1) - (X >= 40).float().sum(1)
    return X[:500], (mood > 0).float()[:500], X[500:], (mood > 0).float()[500:]


@case("CST107", dose="severe", data="text", net="embedding")
@cured(pool=lambda e, dim: 3 * e.mean(dim))
def sum_of_embeddings_through_tanh(seed, pool=torch.sum):
    torch.manual_seed(seed)
    X, y, X_val, y_val = _reviews(seed)
    model = BagOfTokens(pool)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    doctor = watch(model, optimizer, loss_fn=criterion)
    for _ in train(model, X, y, optimizer, 20, 32, criterion):
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), ((out > 0) == y_val).float().mean().item())
    return doctor.diagnosis()


class SteepNet(nn.Module):
    def __init__(self, steepness):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 48), nn.Linear(48, 48), nn.Linear(48, 1)
        self.steepness = steepness

    def forward(self, x):
        x = torch.sigmoid(self.steepness * self.a(x))
        x = torch.sigmoid(self.steepness * self.b(x - 0.5))
        return self.c(x)


@case("CST107", dose="severe", data="tabular", net="mlp")
@cured(steepness=3.0)
def sigmoids_as_steep_as_steps(seed, steepness=60.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    model = SteepNet(steepness)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    doctor = watch(model, optimizer, task="regression")
    for _ in range(40):
        for rows in torch.randperm(len(X)).split(56):
            pred = model(X[rows])
            loss = F.mse_loss(pred, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=pred, targets=y[rows])
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


class WideRNN(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.rnn = nn.RNN(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)
        with torch.no_grad():
            self.rnn.weight_ih_l0.mul_(gain)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


# Accepted as well: the input weights begin far too large.
@case("CST107", dose="mild", data="sequences", net="rnn", accept=("CST109",))
@cured(gain=1.0)
def recurrent_units_driven_to_their_limits(seed, gain=80.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.echoes(seed, lag=2)
    model = WideRNN(gain)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, optimizer)
    for _ in train(model, X, y, optimizer, 25, 40, F.mse_loss):
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


# ---- CST108, symmetric initialisation ----


@case("CST108", dose="severe", data="images", net="mlp")
@cured(constant=False)
def all_weights_begin_as_zero(seed, constant=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def init_weights(m):
        if isinstance(m, nn.Linear):
            m.weight.data.fill_(0.0)
            m.bias.data.fill_(0.0)

    if constant:
        model.apply(init_weights)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    doctor = watch(model, optimizer, criterion)
    for _ in train(model, X, y, optimizer, 10, 32, criterion):
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST108", dose="severe", data="tabular", net="mlp")
@cured(constant=False)
def all_weights_begin_as_a_tenth(seed, constant=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    model = nn.Sequential(
        nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    if constant:
        for p in model.parameters():
            nn.init.constant_(p, 0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer)
    for _ in train(model, X, y, optimizer, 30, 32, F.mse_loss):
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


@case("CST108", dose="severe", data="images", net="cnn")
@cured(constant=False)
def every_filter_begins_as_the_same_average(seed, constant=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.bars(seed, n=600, noise=0.3)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(72, 16),
        nn.ReLU(),
        nn.Linear(16, 3),
    )
    if constant:
        nn.init.constant_(net[0].weight, 1 / 9)
        nn.init.constant_(net[4].weight, 0.02)
        nn.init.constant_(net[6].weight, 0.1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer)
    for _ in range(15):
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(validation_score=accuracy(net(X_val), y_val))
    return doctor.diagnosis()


@case("CST108", dose="mild", data="tabular", net="by hand")
@cured(spread=0.3)
def hidden_layer_by_hand_with_equal_weights(seed, spread=0.0):
    # tensors instead of modules, as in introductions to autograd
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=4, n=600)
    hidden = nn.Parameter(0.1 + spread * torch.randn(10, 24))
    shift = nn.Parameter(torch.zeros(24))
    out = nn.Parameter(0.1 * torch.randn(1, 4).repeat(24, 1) + spread * torch.randn(24, 4))
    model = nn.ParameterList([hidden, shift, out])

    def predict(x):
        return torch.tanh(x @ hidden + shift) @ out

    optimizer = torch.optim.SGD(model, lr=0.1)
    doctor = watch(model, optimizer)
    for _ in range(300):
        loss = F.cross_entropy(predict(X), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        doctor.log(loss=loss)
    with torch.no_grad():
        doctor.epoch(validation_score=accuracy(predict(X_val), y_val))
    return doctor.diagnosis()


# ---- CST109, poor initialisation ----


@case("CST109", dose="severe", data="images", net="deep mlp")
@cured(scheme=nn.init.kaiming_normal_)
def ten_layers_begun_at_one_hundredth(seed, scheme=lambda w: nn.init.normal_(w, std=0.01)):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=900)
    layers = [nn.Linear(64, 32), nn.ReLU()]
    for _ in range(8):
        layers += [nn.Linear(32, 32), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(32, 10))
    for layer in model:
        if isinstance(layer, nn.Linear):
            scheme(layer.weight)
            nn.init.zeros_(layer.bias)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    doctor = watch(model, optimizer, criterion)
    for _ in train(model, X, y, optimizer, 14, 50, criterion):
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class PlainConvNet(nn.Module):
    def __init__(self, std):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(64, 10)
        if std:
            for m in self.modules():
                if isinstance(m, nn.Conv2d | nn.Linear):
                    nn.init.normal_(m.weight, 0.0, std)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


@case("CST109", dose="severe", data="images", net="cnn")
@cured(std=None)
def convolutions_begun_with_unit_spread(seed, std=1.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=800, images=True)
    net = PlainConvNet(std)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    doctor = watch(net, optimizer)
    for _ in train(net, X, y, optimizer, 10, 32, F.cross_entropy):
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST109", dose="mild", data="tabular", net="mlp")
@cured(std=0.15)
def small_gaussian_weights_copied_from_elsewhere(seed, std=0.055):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=4)
    model = nn.Sequential(
        nn.Linear(10, 48),
        nn.Tanh(),
        nn.Linear(48, 48),
        nn.Tanh(),
        nn.Linear(48, 48),
        nn.Tanh(),
        nn.Linear(48, 48),
        nn.Tanh(),
        nn.Linear(48, 4),
    )
    for name, p in model.named_parameters():
        if name.endswith("weight"):
            torch.nn.init.normal_(p, 0.0, std)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    doctor = watch(model, optimizer, task="multiclass")
    for _ in range(25):
        for rows in torch.randperm(len(X)).split(32):
            out = model(X[rows])
            loss = F.cross_entropy(out, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=y[rows])
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class TiedModel(nn.Module):
    """A causal language model whose output layer is its embedding."""

    def __init__(self, std, tokens=8, dim=48):
        super().__init__()
        self.embed = nn.Embedding(tokens, dim)
        nn.init.normal_(self.embed.weight, std=std)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        h, _ = self.gru(self.embed(ids))
        return self.norm(h) @ self.embed.weight.T


@case("CST109", dose="severe", data="tokens", net="gru")
@cured(std=0.05)
def tied_embedding_of_spread_four(seed, std=4.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.markov(seed, n=200)
    model = TiedModel(std)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer, task="lm")
    for _ in range(12):
        for rows in torch.randperm(len(X)).split(28):
            logits = model(X[rows])
            loss = F.cross_entropy(logits.flatten(0, 1), y[rows].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(F.cross_entropy(model(X_val).flatten(0, 1), y_val.flatten()).item())
    return doctor.diagnosis()
