"""Wrong step sizes and lengths of training: CST101, CST102, CST111."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import watch
from evidence.corpus.calibration import _data as data
from evidence.corpus.calibration._twins import cured
from evidence.corpus.cases import case


def batches(X, y, size):
    order = torch.randperm(len(X))
    for rows in order.split(size):
        yield X[rows], y[rows]


# ---- CST101, the rate too high ----


@case("CST101", dose="severe", data="tabular", net="mlp")
@cured(lr=0.05)
def wine_with_a_rate_of_ten(seed, lr=10.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("wine", seed)
    model = nn.Sequential(
        nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    doctor = watch(model, optimizer, loss_fn=criterion)
    for _ in range(40):
        model.train()
        for xb, yb in batches(X, y, 16):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            accuracy = (out.argmax(1) == y_val).float().mean().item()
            doctor.epoch(criterion(out, y_val).item(), accuracy)
    return doctor.diagnosis()


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc1 = nn.Linear(16 * 2 * 2, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc2(F.relu(self.fc1(x)))


@case("CST101", dose="severe", data="images", net="cnn")
@cured(lr=3e-3)
def digits_cnn_with_adam_at_a_third(seed, lr=0.3):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, images=True)
    net = SmallCNN()
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    doctor = watch(net, opt)
    loader = DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True)
    for _ in range(10):
        for inputs, labels in loader:
            opt.zero_grad()
            loss = F.cross_entropy(net(inputs), labels)
            loss.backward()
            opt.step()
        with torch.no_grad():
            net.eval()
            out = net(X_val)
            doctor.epoch(
                F.cross_entropy(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
            )
            net.train()
    return doctor.diagnosis()


@case("CST101", dose="severe", data="tabular", net="mlp")
@cured(lr=0.05)
def regression_that_blows_up(seed, lr=1.0):
    # ends in NaN: the rate is the cause, the NaN its symptom
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    doctor = watch(model, optimizer)
    for _ in range(30):
        for xb, yb in batches(X, y, 32):
            loss = F.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


class WaveLSTM(nn.Module):
    def __init__(self, hidden=24, classes=3):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.head(h[:, -1])


@case("CST101", dose="severe", data="sequences", net="lstm")
@cured(lr=0.01)
def lstm_with_adam_at_a_half(seed, lr=0.5):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.waves(seed)
    model = WaveLSTM()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    with watch(model, optimizer, criterion) as doctor:
        for _ in range(25):
            for xb, yb in batches(X, y, 70):
                optimizer.zero_grad()
                criterion(model(xb), yb).backward()
                optimizer.step()
            with torch.no_grad():
                score = (model(X_val).argmax(1) == y_val).float().mean().item()
            doctor.epoch(validation_score=score)
        return doctor.diagnosis()


@case("CST101", dose="mild", data="images", net="autoencoder")
@cured(lr=1e-3)
def autoencoder_that_jitters(seed, lr=0.03):
    torch.manual_seed(seed)
    X, _, X_val, _ = data.digits(seed)
    encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 12))
    decoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 64))
    model = nn.Sequential(encoder, decoder)
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
    doctor = watch(model, optimizer)
    for _ in range(20):
        for (xb,) in DataLoader(TensorDataset(X), batch_size=64, shuffle=True):
            loss = loss_fn(model(xb), xb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss.item())
        with torch.no_grad():
            doctor.epoch(loss_fn(model(X_val), X_val).item())
    return doctor.diagnosis()


class TinyGPT(nn.Module):
    def __init__(self, tokens=8, length=12, dim=16):
        super().__init__()
        self.token = nn.Embedding(tokens, dim)
        self.position = nn.Embedding(length, dim)
        self.block = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(dim, tokens)

    def forward(self, ids):
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        h = self.token(ids) + self.position(torch.arange(length))
        return self.head(self.block(h, src_mask=mask, is_causal=True))


@case("CST101", dose="severe", data="tokens", net="transformer")
@cured(lr=0.01)
def language_model_with_adamw_at_a_half(seed, lr=0.5):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.markov(seed)
    model = TinyGPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    doctor = watch(model, optimizer, task="lm")
    for _ in range(15):
        for xb, yb in batches(X, y, 35):
            logits = model(xb)
            loss = F.cross_entropy(logits.view(-1, 8), yb.reshape(-1))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=yb)
        with torch.no_grad():
            doctor.epoch(F.cross_entropy(model(X_val).flatten(0, 1), y_val.flatten()).item())
    return doctor.diagnosis()


class ResidualMLP(nn.Module):
    def __init__(self, width=24, blocks=3):
        super().__init__()
        self.inp = nn.Linear(8, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)
            )
            for _ in range(blocks)
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


@case("CST101", dose="mild", data="tabular", net="resnet")
@cured(lr=5e-3)
def residual_net_that_jitters(seed, lr=0.1):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed, n=600)
    model = ResidualMLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    doctor = watch(model, optimizer)
    for _ in range(14):
        for xb, yb in batches(X, y, 42):
            loss = F.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


# ---- CST102, the rate too low ----


@case("CST102", dose="severe", data="images", net="mlp")
@cured(lr=0.1)
def digits_with_plain_descent_at_one_in_ten_thousand(seed, lr=1e-4):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)
    doctor = watch(model, optimizer, criterion)
    for _ in range(20):
        for xb, yb in batches(X, y, 32):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(
                criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
            )
    return doctor.diagnosis()


@case("CST102", dose="severe", data="tabular", net="mlp")
@cured(lr=5e-3)
def regression_with_adam_at_one_in_a_million(seed, lr=1e-6):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    model = nn.Sequential(
        nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    doctor = watch(model, optimizer, task="regression")
    for _ in range(40):
        for xb, yb in batches(X, y, 64):
            pred = model(xb)
            loss = ((pred - yb) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=pred, targets=yb)
        with torch.no_grad():
            doctor.epoch(((model(X_val) - y_val) ** 2).mean().item())
    return doctor.diagnosis()


@case("CST102", dose="mild", data="images", net="cnn")
@cured(lr=5e-3)
def bars_cnn_with_adamw_too_timid(seed, lr=2e-4):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.bars(seed, n=700, noise=0.3)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(72, 32),
        nn.ReLU(),
        nn.Linear(32, 3),
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.01)
    doctor = watch(net, optimizer)
    for _ in range(20):
        net.train()
        for xb, yb in batches(X, y, 32):
            optimizer.zero_grad()
            F.nll_loss(F.log_softmax(net(xb), dim=1), yb).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(X_val).argmax(1) == y_val).float().mean().item()
        doctor.epoch(validation_score=accuracy)
    return doctor.diagnosis()


class EchoGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        _, h = self.gru(x)
        return self.out(h[-1])


@case("CST102", dose="severe", data="sequences", net="gru")
@cured(lr=5e-3)
def gru_with_rmsprop_at_one_in_a_hundred_thousand(seed, lr=1e-5):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.echoes(seed, lag=2)
    model = EchoGRU()
    criterion = nn.MSELoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)
    doctor = watch(model, optimizer, criterion)
    for _ in range(20):
        for xb, yb in batches(X, y, 40):
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
        scheduler.step()
        with torch.no_grad():
            doctor.epoch(criterion(model(X_val), y_val).item())
    return doctor.diagnosis()


@case("CST102", dose="severe", data="tokens", net="transformer")
@cured(warmup=10)
def warmup_longer_than_the_training(seed, warmup=20_000):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.markov(seed)
    model = TinyGPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / warmup))
    doctor = watch(model, optimizer)
    for _ in range(20):
        for xb, yb in batches(X, y, 35):
            loss = F.cross_entropy(model(xb).transpose(1, 2), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        with torch.no_grad():
            doctor.epoch(F.cross_entropy(model(X_val).transpose(1, 2), y_val).item())
    return doctor.diagnosis()


# ---- CST111, stopped too early ----


@case("CST111", dose="severe", data="images", net="cnn")
@cured(epochs=15)
def digits_cnn_for_two_epochs(seed, epochs=2):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, images=True)
    net = SmallCNN()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    doctor = watch(net, optimizer, criterion)
    for _ in range(epochs):
        running = 0.0
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(net(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(
                criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
            )
    return doctor.diagnosis()


@case("CST111", dose="severe", data="tabular", net="mlp")
@cured(epochs=60)
def regression_for_four_epochs(seed, epochs=4):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed, n=1200)
    model = nn.Sequential(
        nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    doctor = watch(model, optimizer)
    for _ in range(epochs):
        for xb, yb in batches(X, y, 64):
            pred = model(xb)
            loss = F.mse_loss(pred, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=pred, targets=yb)
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


@case("CST111", dose="mild", data="images", net="autoencoder")
@cured(epochs=60)
def autoencoder_for_six_epochs(seed, epochs=6):
    torch.manual_seed(seed)
    X, _, X_val, _ = data.digits(seed)
    model = nn.Sequential(
        nn.Linear(64, 48),
        nn.ReLU(),
        nn.Linear(48, 12),
        nn.Linear(12, 48),
        nn.ReLU(),
        nn.Linear(48, 64),
    )
    mse = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    doctor = watch(model, optimizer, loss_fn=mse)
    for _ in range(epochs):
        for xb, _ in batches(X, X, 64):
            optimizer.zero_grad()
            mse(model(xb), xb).backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(mse(model(X_val), X_val).item())
    return doctor.diagnosis()


@case("CST111", dose="mild", data="sequences", net="lstm")
@cured(epochs=40)
def lstm_for_ten_epochs(seed, epochs=10):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.echoes(seed, lag=2)
    lstm, head = nn.LSTM(1, 24, batch_first=True), nn.Linear(24, 1)
    model = nn.ModuleDict({"lstm": lstm, "head": head})
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer)
    for _ in range(epochs):
        for xb, yb in batches(X, y, 40):
            optimizer.zero_grad()
            loss = F.mse_loss(head(lstm(xb)[0][:, -1]), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(F.mse_loss(head(lstm(X_val)[0][:, -1]), y_val).item())
    return doctor.diagnosis()
