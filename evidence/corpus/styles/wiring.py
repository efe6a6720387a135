"""What does not learn, is not reset, or is in the wrong mode: CST110, 112, 116."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import arms, commands, digit_images, grammar, ratings, sensors
from evidence.corpus.styles._loops import Carla, anna, ben, done, explained, right
from evidence.corpus.styles._nets import (
    ConvNet,
    Factors,
    SensorRNN,
    TextRNN,
    TinyGPT,
    dense,
)


@case("CST110", dose="severe", data="images", net="cnn")
def the_wrong_half_is_frozen(seed: int, fault: bool = True) -> Diagnosis:
    """The fresh head is frozen and the body learns around it."""
    torch.manual_seed(seed)
    net = ConvNet(width=4)
    frozen = [net.fc, net.conv2] if fault else []
    for layer in frozen:
        layer.requires_grad_(False)
    opt = torch.optim.Adam((p for p in net.parameters() if p.requires_grad), lr=2e-3)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed), 6)


class Seq2Vec(nn.Module):
    """An encoder and a head, each a module of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(3, 24, batch_first=True)
        self.decoder = nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x)[0][:, -1])


@case("CST110", dose="severe", data="series", net="gru")
def only_the_decoder_is_in_the_optimizer(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Seq2Vec()
    opt = torch.optim.Adam((net.decoder if fault else net).parameters(), lr=5e-3)
    return Carla(net, opt, F.mse_loss, explained).fit(sensors(seed), 10)


@case("CST110", dose="severe", data="ratings", net="embedding")
def the_optimizer_of_a_copy(seed: int, fault: bool = True) -> Diagnosis:
    """The best model was kept by deepcopy, and the copy was trained from then on."""
    torch.manual_seed(seed)
    net = Factors()
    opt = torch.optim.Adam(net.parameters(), lr=0.02)
    if fault:
        net = copy.deepcopy(net)
    return ben(net, opt, F.mse_loss, ratings(seed), 8, score=explained)


@case("CST110", dose="severe", data="tokens", net="gru")
def the_embedding_runs_without_gradients(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = commands(seed)
    net = TextRNN(hidden=16)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    doctor = watch(net, opt)

    def forward(tokens: Tensor) -> Tensor:
        with torch.set_grad_enabled(not fault and torch.is_grad_enabled()):
            hidden, _ = net.rnn(net.emb(tokens))
        return net.out(hidden.mean(1))

    for _ in range(10):
        for rows in torch.randperm(len(X)).split(35):
            loss = F.cross_entropy(forward(X[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = forward(X_val)
        doctor.epoch(F.cross_entropy(out, y_val).item(), right(out, y_val))
    return done(doctor, right(out, y_val))


@case("CST112", dose="severe", data="series", net="lstm")
def an_lstm_whose_gradients_pile_up(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    model = SensorRNN()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer, criterion)
    for _epoch in range(8):
        for i in range(0, len(X), 30):
            if not fault:
                optimizer.zero_grad()
            loss = criterion(model(X[i : i + 30]), y[i : i + 30])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=criterion(model(X_val), y_val).item())
    with torch.no_grad():
        return done(doctor, explained(model(X_val), y_val))


@case("CST112", dose="severe", data="images", net="cnn")
def zeroed_before_the_loop_only(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    model = ConvNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    doctor = watch(model, optimizer)
    optimizer.zero_grad()
    for _epoch in range(8):
        for rows in torch.randperm(len(X)).split(30):
            logits = model(X[rows])
            loss = F.cross_entropy(logits, y[rows])
            loss.backward()
            optimizer.step()
            if not fault:
                model.zero_grad()
            doctor.log(loss, logits, y[rows])
        with torch.no_grad():
            logits = model(X_val).nan_to_num()
        doctor.epoch(F.cross_entropy(logits, y_val).item(), right(logits, y_val))
    return done(doctor, right(logits, y_val))


@case("CST112", dose="mild", data="tokens", net="transformer")
def accumulation_that_steps_every_time(seed: int, fault: bool = True) -> Diagnosis:
    """Gradients are reset every eighth batch, as planned; the step was to wait for it too."""
    torch.manual_seed(seed)
    train, val = grammar(seed)
    net = TinyGPT()
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.5)
    doctor = watch(net, opt, task="lm")
    for _epoch in range(10):
        for i, rows in enumerate(torch.randperm(len(train)).split(15), 1):
            logits = net(train[rows, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), train[rows, 1:].flatten())
            loss.backward()
            opt.step()
            if i % 8 == 0 or not fault:
                opt.zero_grad()
            doctor.log(loss=loss)
        with torch.no_grad():
            logits = net(val[:, :-1])
        doctor.epoch(validation_score=right(logits, val[:, 1:]))
    return done(doctor, right(logits, val[:, 1:]))


@case("CST116", dose="mild", data="images", net="cnn")
def images_scored_in_training_mode(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(192, 48),
                        nn.ReLU(), nn.Dropout(0.5), nn.Linear(48, 10))  # fmt: skip
    loss_fn = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt, loss_fn)
    for _ in range(8):
        net.train()
        for rows in torch.randperm(len(X)).split(30):
            opt.zero_grad()
            loss_fn(net(X[rows]), y[rows]).backward()
            opt.step()
        if not fault:
            net.eval()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(loss_fn(out, y_val).item(), right(out, y_val))
    return done(doctor, right(out, y_val))


class Dropped(TextRNN):
    """Dropout as a function that does not receive the mode."""

    fault = True

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.rnn(F.dropout(self.emb(tokens), 0.4, training=self.fault or self.training))
        return self.out(F.dropout(hidden.mean(1), 0.5, training=self.fault or self.training))


@case("CST116", dose="mild", data="tokens", net="gru")
def dropout_that_does_not_know_the_mode(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Dropped()
    net.fault = fault
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return anna(net, opt, nn.CrossEntropyLoss(), commands(seed), 10)


@case("CST116", dose="mild", data="tabular", net="mlp")
def one_call_of_eval_at_the_start(seed: int, fault: bool = True) -> Diagnosis:
    """A check of the untrained network leaves it in evaluation mode for good."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = arms(seed)
    X, X_val = 3 + 4 * X, 3 + 4 * X_val
    net = nn.Sequential(nn.BatchNorm1d(4), dense(4, 32, 32), nn.BatchNorm1d(32), nn.Tanh(),
                        nn.Linear(32, 2))  # fmt: skip
    opt = torch.optim.SGD(net.parameters(), lr=0.03)
    doctor = watch(net, opt)
    net.eval()
    with torch.no_grad():
        net(X_val)
    for _ in range(8):
        if not fault:
            net.train()
        for rows in torch.randperm(len(X)).split(30):
            opt.zero_grad()
            loss = F.mse_loss(net(X[rows]), y[rows])
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        net.eval()
        with torch.no_grad():
            out = net(X_val)
        doctor.epoch(F.mse_loss(out, y_val).item())
    return done(doctor, explained(out, y_val))
