"""Things not connected, not reset or in the wrong mode: CST110, 112, 115, 116."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    customers,
    demand,
    gestures,
    handwriting,
    houses,
    parcels,
    reviews,
    scenes,
    surnames,
)
from evidence.corpus.posts._loops import accuracy, end, end_scored, final, fit, r2
from evidence.corpus.posts._nets import Block, LastStep, Reader, ResNet, SmallCNN, UNet, dense


@case("CST110", dose="severe", data="images", net="cnn")
def new_head_after_the_optimizer(seed: int, fault: bool = True) -> Diagnosis:
    """Backbone frozen, then the head is replaced after the optimizer was made: nothing learns."""
    torch.manual_seed(seed)
    model = SmallCNN(classes=100)
    if not fault:
        model.fc = nn.Linear(64, 10)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    if fault:
        for p in (*model.conv1.parameters(), *model.conv2.parameters()):
            p.requires_grad = False
        model.fc = nn.Linear(64, 10)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed, 600), 8)


@case("CST110", dose="severe", data="tabular", net="mlp")
def zeroed_between_backward_and_step(seed: int, fault: bool = True) -> Diagnosis:
    """zero_grad stands between backward and step: every step is made with no gradient."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    model = dense(6, 32, 32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    doctor = watch(model, optimizer)
    for _ in range(12):
        for idx in torch.randperm(len(X)).split(32):
            if not fault:
                optimizer.zero_grad()
            loss = F.mse_loss(model(X[idx]), y[idx])
            loss.backward()
            if fault:
                optimizer.zero_grad()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(model(X_val), y_val).item())
    return end_scored(doctor, model, (X, y, X_val, y_val), r2)


class Captioned(nn.Module):
    """An encoder whose features are taken under no_grad, left from the days of transfer."""

    def __init__(self, fault: bool):
        super().__init__()
        self.embed = nn.Embedding(21, 6)
        self.rnn = nn.GRU(6, 24, batch_first=True)
        self.fc = nn.Linear(24, 3)
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        if self.fault:
            with torch.no_grad():
                h = self.rnn(self.embed(x))[0]
        else:
            h = self.rnn(self.embed(x))[0]
        return self.fc(h[:, -1])


@case("CST110", dose="mild", data="text", net="gru")
def encoder_under_no_grad(seed: int, fault: bool = True) -> Diagnosis:
    """The recurrent part runs under no_grad although it was never trained before."""
    torch.manual_seed(seed)
    model = Captioned(fault)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    return fit(model, opt, nn.CrossEntropyLoss(), surnames(seed), 12)


@case("CST110", dose="severe", data="tabular", net="mlp")
def the_average_is_trained_not_the_net(seed: int, fault: bool = True) -> Diagnosis:
    """The optimizer got the parameters of the averaged copy; the net itself never moves."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed)
    model = dense(6, 40, 40, 4)
    ema = copy.deepcopy(model)
    opt = torch.optim.AdamW((ema if fault else model).parameters(), lr=3e-3)
    doctor = watch(model, opt)
    for _ in range(10):
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss = F.cross_entropy(model(X[idx]), y[idx])
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


class Tower(nn.Module):
    """A shared trunk with two heads; the second sees a trunk cut off by detach."""

    def __init__(self, fault: bool):
        super().__init__()
        self.trunk, self.price = dense(6, 32, 32), nn.Linear(32, 1)
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.trunk(x))
        return self.price(h.detach() if self.fault else h)


@case("CST110", dose="mild", data="tabular", net="multitask")
def a_detach_left_from_debugging(seed: int, fault: bool = True) -> Diagnosis:
    """Features are detached before the head, so that the trunk stays random."""
    torch.manual_seed(seed)
    model = Tower(fault)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, opt, nn.HuberLoss(), houses(seed), 20, metric=r2)


@case("CST112", dose="severe", data="images", net="cnn", accept=("CST101",))
def zero_grad_without_parentheses(seed: int, fault: bool = True) -> Diagnosis:
    """``optimizer.zero_grad`` is named but not called."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 600)
    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(8):
        for idx in torch.randperm(len(X)).split(32):
            optimizer.zero_grad  # noqa: B018
            if not fault:
                optimizer.zero_grad()
            loss = loss_fn(model(X[idx]), y[idx])
            loss.backward()
            optimizer.step()
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case("CST112", dose="severe", data="sequences", net="gru")
def accumulation_that_never_starts_anew(seed: int, fault: bool = True) -> Diagnosis:
    """Gradient accumulation over four batches; zero_grad is only called once an epoch."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = demand(seed, window=12)
    model = LastStep(1, 16, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.4)
    doctor = watch(model, opt)
    for _ in range(10):
        opt.zero_grad()
        for i, idx in enumerate(torch.randperm(len(X)).split(8)):
            loss = F.mse_loss(model(X[idx]), y[idx]) / 4
            loss.backward()
            if i % 4 == 3:
                opt.step()
                if not fault:
                    opt.zero_grad()
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(model(X_val), y_val).item())
    return end_scored(doctor, model, (X, y, X_val, y_val), r2)


@case("CST112", dose="severe", data="text", net="gru")
def the_wrong_optimizer_is_reset(seed: int, fault: bool = True) -> Diagnosis:
    """Two optimizers, one for embeddings; only that one is ever reset."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = reviews(seed)
    model = Reader()
    rest = [p for n, p in model.named_parameters() if not n.startswith("embed")]
    opt_e = torch.optim.SGD(model.embed.parameters(), lr=0.5, momentum=0.9)
    opt_r = torch.optim.SGD(rest, lr=0.3, momentum=0.9)
    doctor = watch(model, [opt_r, opt_e])
    for _ in range(10):
        for idx in torch.randperm(len(X)).split(32):
            opt_e.zero_grad()
            if not fault:
                opt_r.zero_grad()
            loss = F.cross_entropy(model(X[idx]), y[idx])
            loss.backward()
            opt_r.step()
            opt_e.step()
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case("CST115", dose="severe", data="images", net="resnet", accept=("CST113",))
def resnet_with_two_images_a_batch(seed: int, fault: bool = True) -> Diagnosis:
    """Batches of two for lack of memory, with a batch norm in every block."""
    torch.manual_seed(seed)
    model = ResNet(width=6, blocks=2)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    X, y, X_val, y_val = handwriting(seed, 240)
    bs, epochs = (2, 2) if fault else (16, 12)
    return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), epochs, batch_size=bs)


@case("CST115", dose="severe", data="images", net="resnet")
def momentum_of_a_thousandth(seed: int, fault: bool = True) -> Diagnosis:
    """BatchNorm2d(momentum=0.001): running statistics are still those of the start at the end."""
    torch.manual_seed(seed)
    model = ResNet(width=8, blocks=1)
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 0.001 if fault else 0.1
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed, 500), 8)


@case("CST115", dose="mild", data="sequences", net="conv1d")
def batches_of_two_watches(seed: int, fault: bool = True) -> Diagnosis:
    """BatchNorm1d after pooling, two rows a batch: each unit only knows which is the larger."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = gestures(seed, noise=0.6)
    model = nn.Sequential(
        nn.Conv1d(3, 16, 5), nn.ReLU(), nn.AdaptiveMaxPool1d(2), nn.Flatten(),
        nn.Linear(32, 24), nn.BatchNorm1d(24), nn.Tanh(),
        nn.Linear(24, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 4),
    )  # fmt: skip
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    data = X.transpose(1, 2), y, X_val.transpose(1, 2), y_val
    return fit(
        model, opt, nn.CrossEntropyLoss(), data, 3 if fault else 10, batch_size=2 if fault else 24
    )


@case("CST116", dose="mild", data="tabular", net="mlp")
def eval_once_and_never_train_again(seed: int, fault: bool = True) -> Diagnosis:
    """model.train() stands before the loop over epochs: from the second on it trains in eval mode."""  # noqa: E501
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed, 320)
    model = nn.Sequential(
        nn.Linear(10, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(96, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Dropout(0.5), nn.Linear(96, 2),
    )  # fmt: skip
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(model, opt, loss_fn)
    model.train()
    for _ in range(25):
        if not fault:
            model.train()
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss_fn(model(X[idx]), y[idx]).backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            val = loss_fn(out, y_val).item()
            doctor.epoch(val, accuracy(out, y_val))
    return end(doctor, -val)


@case("CST116", dose="severe", data="tabular", net="mlp")
def validation_with_dropout_on(seed: int, fault: bool = True) -> Diagnosis:
    """No model.eval() before validation: what is reported is that of a half-dropped net."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed)
    model = nn.Sequential(
        nn.Linear(6, 64), nn.ELU(), nn.Dropout(0.6), nn.Linear(64, 64), nn.ELU(),
        nn.Dropout(0.6), nn.Linear(64, 4),
    )  # fmt: skip
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, opt)
    for _ in range(15):
        model.train()
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            F.cross_entropy(model(X[idx]), y[idx]).backward()
            opt.step()
        with torch.no_grad():
            if not fault:
                model.eval()
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return end(doctor, accuracy(out, y_val))


@case("CST116", dose="mild", data="images", net="unet")
def segmentation_scored_in_training_mode(seed: int, fault: bool = True) -> Diagnosis:
    """Validation images go one by one through batch norm in training mode."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = scenes(seed, 100)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), Block(8), UNetTail())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    doctor = watch(model, opt, loss_fn)
    for _ in range(6):
        model.train()
        for idx in torch.randperm(len(X)).split(10):
            opt.zero_grad()
            loss_fn(model(X[idx]), y[idx]).backward()
            opt.step()
        if not fault:
            model.eval()
        with torch.no_grad():
            total = sum(loss_fn(model(a[None]), b[None]).item() for a, b in zip(X_val, y_val))  # noqa: B905
            doctor.epoch(validation_loss=total / len(X_val))
    return end(doctor, -total / len(X_val))


class UNetTail(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout2d(0.3)
        self.out = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.drop(x))


@case("CST110", dose="severe", data="images", net="unet")
def encoder_frozen_by_a_pattern(seed: int, fault: bool = True) -> Diagnosis:
    """``if "d" in name`` was to freeze one layer and froze all but the last, at random."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = scenes(seed, 120)
    model = UNet()
    for name, p in model.named_parameters():
        if fault and ("d" in name or "up" in name):
            p.requires_grad = False
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    doctor = watch(model, opt)
    for _ in range(10):
        for idx in torch.randperm(len(X)).split(15):
            opt.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(X[idx]), y[idx])
            loss.backward()
            opt.step()
    score = final(
        model, X_val, y_val, lambda o, t: -F.binary_cross_entropy_with_logits(o, t).item()
    )
    return end(doctor, score)
