"""Mistakes in the loop itself: CST110 not-training, CST112 gradients-accumulate, CST116 mode."""

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


# ---- CST110, parameters that never change ----


def make_mlp(inputs, classes):
    return nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, classes))


@case("CST110", dose="severe", data="tabular", net="mlp")
@cured(remake=False)
def optimizer_of_a_model_made_before(seed, remake=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("wine", seed)
    model = make_mlp(13, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    if remake:
        model = make_mlp(13, 3)  # "start afresh"; the optimizer still holds the old one
    criterion = nn.CrossEntropyLoss()
    doctor = watch(model, optimizer, criterion)
    for _ in range(30):
        for rows in torch.randperm(len(X)).split(16):
            optimizer.zero_grad()
            model.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class HiddenInAList(nn.Module):
    """Keeps its hidden layers in a plain list, where `parameters()` does not look."""

    def __init__(self, container):
        super().__init__()
        self.first = nn.Linear(8, 24)
        self.hidden = container([nn.Linear(24, 24) for _ in range(4)])
        self.last = nn.Linear(24, 1)
        for layer in self.hidden:
            nn.init.normal_(layer.weight, std=0.25)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.last(x)


@case("CST110", dose="mild", data="tabular", net="deep mlp")
@cured(container=nn.ModuleList)
def layers_in_a_plain_list(seed, container=list):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    model = HiddenInAList(container)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer)
    for _ in range(35):
        for rows in torch.randperm(len(X)).split(40):
            optimizer.zero_grad()
            loss = F.mse_loss(model(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


class Frozen(nn.Module):
    def __init__(self, freeze):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 12, 3),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(12, 10)
        for p in self.features.parameters():
            p.requires_grad = not freeze  # as for a pretrained net; but nothing was loaded

    def forward(self, x):
        return self.classifier(self.features(x))


@case("CST110", dose="severe", data="images", net="cnn")
@cured(freeze=False)
def random_features_frozen_as_if_pretrained(seed, freeze=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=800, images=True)
    net = Frozen(freeze)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=5e-3)
    doctor = watch(net, optimizer, criterion)
    for _ in range(12):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            criterion(net(xb), yb).backward()
            optimizer.step()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class Seq2Label(nn.Module):
    def __init__(self, detach):
        super().__init__()
        self.rnn = nn.GRU(1, 16, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
        self.detach = detach

    def forward(self, x):
        out, _ = self.rnn(x)
        last = out[:, -1]
        if self.detach:
            last = last.detach()
        return self.mlp(last)


@case("CST110", dose="severe", data="sequences", net="gru")
@cured(detach=False)
def hidden_state_detached_in_forward(seed, detach=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.waves(seed, n=360)
    model = Seq2Label(detach)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    doctor = watch(model, optimizer)
    for _ in range(25):
        for rows in torch.randperm(len(X)).split(42):
            loss = F.cross_entropy(model(X[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_score=accuracy(model(X_val), y_val))
    return doctor.diagnosis()


@case("CST110", dose="severe", data="tabular", net="mlp")
@cured(rewrap=False)
def loss_wrapped_anew_before_backward(seed, rewrap=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.moons(seed)
    model = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    doctor = watch(model, optimizer)
    for _ in range(200):
        loss = F.binary_cross_entropy_with_logits(model(X).squeeze(1), y.float())
        if rewrap:  # "element 0 of tensors does not require grad", mended as some answers advise
            loss = torch.tensor(loss.item(), requires_grad=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        doctor.log(loss=loss)
    with torch.no_grad():
        score = ((model(X_val).squeeze(1) > 0) == y_val).float().mean().item()
    doctor.epoch(validation_score=score)
    return doctor.diagnosis()


@case("CST110", dose="severe", data="images", net="mlp")
@cured(late=False)
def gradients_zeroed_between_backward_and_step(seed, late=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    model = make_mlp(64, 10)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with watch(model, optimizer, criterion) as doctor:
        for _ in range(6):
            for rows in torch.randperm(len(X)).split(64):
                if not late:
                    optimizer.zero_grad()
                criterion(model(X[rows]), y[rows]).backward()
                if late:
                    optimizer.zero_grad()
                optimizer.step()
            with torch.no_grad():
                doctor.epoch(validation_score=accuracy(model(X_val), y_val))
        return doctor.diagnosis()


# ---- CST112, gradients never reset ----


@case("CST112", dose="severe", data="images", net="mlp")
@cured(zero=True)
def zero_grad_forgotten(seed, zero=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    model = make_mlp(64, 10)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    doctor = watch(model, optimizer, criterion)
    for _ in range(12):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True):
            if zero:
                optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST112", dose="severe", data="tabular", net="linear")
@cured(zero=True)
def line_fitted_by_hand_without_reset(seed, zero=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("diabetes", seed)
    model = nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    doctor = watch(model, optimizer)
    for _ in range(200):
        loss = ((model(X).squeeze(1) - y) ** 2).mean()
        if zero:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        doctor.log(loss=loss)
    with torch.no_grad():
        doctor.epoch(((model(X_val).squeeze(1) - y_val) ** 2).mean().item())
    return doctor.diagnosis()


@case("CST112", dose="mild", data="images", net="cnn")
@cured(every=1)
def gradients_reset_once_an_epoch(seed, every=None):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=800, images=True)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(72, 10),
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    doctor = watch(net, optimizer)
    for _ in range(10):
        net.train()
        optimizer.zero_grad()
        for step, rows in enumerate(torch.randperm(len(X)).split(32)):
            if every and step % every == 0:
                optimizer.zero_grad()
            loss = F.cross_entropy(net(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        net.eval()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class TokenLSTM(nn.Module):
    def __init__(self, tokens=8, dim=24):
        super().__init__()
        self.embed = nn.Embedding(tokens, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, tokens)

    def forward(self, ids):
        return self.head(self.lstm(self.embed(ids))[0])


@case("CST112", dose="severe", data="tokens", net="lstm")
@cured(right=True)
def zero_grad_called_on_the_loss_function(seed, right=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.markov(seed, n=260)
    model = TokenLSTM()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    doctor = watch(model, optimizer, criterion)
    for _ in range(16):
        for rows in torch.randperm(len(X)).split(30):
            (model if right else criterion).zero_grad()
            loss = criterion(model(X[rows]).transpose(1, 2), y[rows])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(criterion(model(X_val).transpose(1, 2), y_val).item())
    return doctor.diagnosis()


# ---- CST116, the wrong mode ----


class DropoutNet(nn.Module):
    def __init__(self, p=0.6):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 96), nn.Linear(96, 96), nn.Linear(96, 10)
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        x = self.dropout(F.relu(self.fc1(x)))
        x = self.dropout(F.relu(self.fc2(x)))
        return self.fc3(x)


@case("CST116", dose="mild", data="images", net="mlp")
@cured(eval_mode=True)
def validation_with_dropout_on(seed, eval_mode=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    model = DropoutNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer, criterion)
    for _ in range(12):
        model.train()
        for rows in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        if eval_mode:
            model.eval()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class NormalisedNet(nn.Module):
    def __init__(self, depth=6, width=32):
        super().__init__()
        sizes = [64] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = F.relu(norm(layer(x)))
        return self.head(x)


@case("CST116", dose="severe", data="images", net="batchnorm mlp")
@cured(back=True)
def never_back_to_training_mode(seed, back=False):
    # set to eval for a look before the first epoch and left there: no batch is ever normalised
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=800)
    net = NormalisedNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

    def validate():
        net.eval()
        with torch.no_grad():
            out = net(X_val)
        return F.cross_entropy(out, y_val).item(), accuracy(out, y_val)

    doctor = watch(net, optimizer)
    doctor.epoch(*validate())
    for _ in range(8):
        if back:
            net.train()
        for rows in torch.randperm(len(X)).split(50):
            loss = F.cross_entropy(net(X[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        doctor.epoch(*validate())
    return doctor.diagnosis()


@case("CST116", dose="severe", data="tabular", net="batchnorm mlp")
@cured(eval_mode=True)
def single_rows_predicted_with_batch_statistics(seed, eval_mode=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=4)
    model = nn.Sequential(
        nn.Linear(10, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 4),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, optimizer)
    for _ in range(10):
        model.train()
        for rows in torch.randperm(len(X)).split(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        if eval_mode:
            model.eval()
        with torch.no_grad():  # two rows at a time, as they come in
            out = torch.cat([model(x) for x in X_val.split(2)])
        doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class FunctionalDropout(nn.Module):
    def __init__(self, heeds_mode):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(13, 64), nn.Linear(64, 64), nn.Linear(64, 3)
        self.heeds_mode = heeds_mode

    def drop(self, x):
        return F.dropout(x, 0.7, training=self.training if self.heeds_mode else True)

    def forward(self, x):
        x = self.drop(F.relu(self.a(x)))
        x = self.drop(F.relu(self.b(x)))
        return self.c(x)


@case("CST116", dose="mild", data="tabular", net="mlp")
@cured(heeds_mode=True)
def functional_dropout_that_ignores_the_mode(seed, heeds_mode=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("wine", seed)
    model = FunctionalDropout(heeds_mode)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer)
    for _ in range(25):
        model.train()
        for rows in torch.randperm(len(X)).split(25):
            out = model(X[rows])
            loss = F.cross_entropy(out, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=y[rows])
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            doctor.log(loss=F.cross_entropy(out, y_val), outputs=out, targets=y_val, inputs=X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()
