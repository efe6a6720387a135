"""Mistakes in the loop itself: CST110, 112, 115, 116."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    clouds,
    digits,
    friedman,
    reviews,
    standardised,
    waves,
    wine,
)
from evidence.corpus.exercises._loops import accuracy, batches, r2, train, verdict
from evidence.corpus.exercises._nets import SmallCNN, mlp


@case("CST110", dose="severe", data="images", net="cnn")
def the_head_was_replaced_after_the_optimizer_was_made(seed: int, fault: bool = True) -> Diagnosis:
    """A ready backbone and a new head; the optimizer holds the old one."""
    torch.manual_seed(seed)
    data = digits(seed)
    net = SmallCNN(classes=1000, width=24)
    for layer in (net.conv1, net.conv2):
        layer.requires_grad_(False)
    optimizer = torch.optim.Adam((p for p in net.parameters() if p.requires_grad), lr=3e-3)
    net.fc1, net.fc2 = nn.Linear(192, 64), nn.Linear(64, 10)
    if not fault:
        optimizer = torch.optim.Adam((p for p in net.parameters() if p.requires_grad), lr=3e-3)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=8, tell="module")


class Listed(nn.Module):
    """Hidden layers kept in a plain list, which `parameters()` does not see."""

    def __init__(self, registered: bool) -> None:
        super().__init__()
        hidden = [nn.Linear(10, 12), nn.Linear(12, 12), nn.Linear(12, 12)]
        self.hidden = nn.ModuleList(hidden) if registered else hidden
        self.out = nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.out(x)


@case("CST110", dose="severe", data="tabular", net="mlp")
def layers_in_a_plain_list(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Listed(registered=not fault)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    return train(net, optimizer, F.cross_entropy, clouds(seed), epochs=20)


class Cut(nn.Module):
    """Embedded words, a recurrent layer, a head; the words' gradient may be cut off."""

    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(60, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 2)
        self.cut = cut

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.rnn(self.embed(tokens))
        pooled = states.mean(1)
        return self.head(pooled.data if self.cut else pooled)


@case("CST110", dose="severe", data="text", net="gru")
def the_data_attribute_cuts_the_graph(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Cut(fault)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    return train(net, optimizer, nn.CrossEntropyLoss(), reviews(seed), epochs=6, tell="all")


@case("CST110", dose="severe", data="tabular", net="mlp")
def a_loss_made_to_require_gradients(seed: int, fault: bool = True) -> Diagnosis:
    """The error about a missing gradient was silenced instead of understood."""
    torch.manual_seed(seed)
    data = standardised(wine(seed))
    net = mlp(13, 24, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer)
    for _ in range(20):
        for x, y in batches(data.X, data.y, 16):
            logits = net(x)
            if fault:
                loss = (logits.argmax(1) - y).float().square().mean()
                loss.requires_grad_(True)
            else:
                loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            score = accuracy(net(data.X_val), data.y_val)
        doctor.epoch(validation_score=score)
    return verdict(doctor, score)


@case("CST112", dose="severe", data="tabular", net="mlp")
def nobody_calls_zero_grad(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = friedman(seed)
    net, loss_fn = mlp(8, 32, 32, 1), nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    with watch(net, optimizer, loss_fn) as doctor:
        for _ in range(15):
            for x, y in batches(data.X, data.y, 32):
                loss = loss_fn(net(x), y)
                loss.backward()
                optimizer.step()
                if not fault:
                    optimizer.zero_grad()
            with torch.no_grad():
                outputs = net(data.X_val)
                doctor.epoch(validation_loss=loss_fn(outputs, data.y_val).item())
        return verdict(doctor, r2(outputs.nan_to_num(), data.y_val))


@case("CST112", dose="severe", data="images", net="cnn")
def zero_grad_of_another_optimizer(seed: int, fault: bool = True) -> Diagnosis:
    """Backbone and head have an optimizer each; only the head's gradients are reset."""
    torch.manual_seed(seed)
    data = digits(seed)
    net = SmallCNN()
    head = torch.optim.SGD([*net.fc1.parameters(), *net.fc2.parameters()], lr=0.02, momentum=0.9)
    body = torch.optim.SGD(
        [*net.conv1.parameters(), *net.conv2.parameters()], lr=0.02, momentum=0.9
    )
    doctor = watch(net, [body, head])
    for _ in range(8):
        for x, y in batches(data.X, data.y, 32):
            head.zero_grad()
            (head if fault else body).zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            body.step()
            head.step()
        with torch.no_grad():
            logits = net(data.X_val)
        doctor.epoch(F.cross_entropy(logits, data.y_val).item(), accuracy(logits, data.y_val))
    return verdict(doctor, accuracy(logits, data.y_val))


@case("CST112", dose="mild", data="series", net="conv1d")
def gradients_reset_once_an_epoch(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = waves(seed)
    data = data._replace(X=data.X.transpose(1, 2), X_val=data.X_val.transpose(1, 2))
    net = nn.Sequential(
        nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.AdaptiveMaxPool1d(8),
        nn.Conv1d(16, 16, 3), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    doctor = watch(net, optimizer)
    for _ in range(15):
        optimizer.zero_grad()
        for x, y in batches(data.X, data.y, 32):
            if not fault:
                optimizer.zero_grad()
            logits = net(x)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=y)
        with torch.no_grad():
            score = accuracy(net(data.X_val), data.y_val)
        doctor.epoch(validation_score=score)
    return verdict(doctor, score)


def _normed(momentum: float = 0.1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8, momentum=momentum), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16, momentum=momentum), nn.ReLU(),
        nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32, momentum=momentum), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip


@case("CST115", dose="severe", data="images", net="cnn")
def batch_normalisation_of_two_images(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = _normed()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    data = digits(seed, n_train=400)
    size, epochs = (2, 2) if fault else (25, 8)
    return train(
        net, optimizer, nn.CrossEntropyLoss(), data, epochs=epochs, size=size, tell="module"
    )


@case("CST115", dose="severe", data="images", net="cnn")
def running_statistics_that_hardly_run(seed: int, fault: bool = True) -> Diagnosis:
    """`momentum` was taken for that of another library, where it means its complement."""
    torch.manual_seed(seed)
    net = _normed(momentum=0.001 if fault else 0.1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return train(net, optimizer, F.cross_entropy, digits(seed), epochs=5, tell="all")


@case("CST116", dose="mild", data="images", net="mlp")
def scored_with_dropout_still_on(seed: int, fault: bool = True) -> Diagnosis:
    """`eval()` is never called."""
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    net = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.6),
        nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.6), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer, nn.CrossEntropyLoss())
    for _ in range(15):
        net.train()
        for x, y in batches(data.X, data.y, 32):
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if not fault:
            net.eval()
        with torch.no_grad():
            logits = net(data.X_val)
        doctor.epoch(F.cross_entropy(logits, data.y_val).item(), accuracy(logits, data.y_val))
    return verdict(doctor, accuracy(logits, data.y_val))


@case("CST116", dose="severe", data="images", net="mlp")
def never_back_to_training_mode(seed: int, fault: bool = True) -> Diagnosis:
    """`eval()` before the first pass over the validation rows, and `train()` never again."""
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    layers: list[nn.Module] = [nn.Linear(64, 48)]
    for _ in range(6):
        layers += [nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 48)]
    net = nn.Sequential(*layers, nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    doctor = watch(net, optimizer)

    def look() -> Tensor:
        net.eval()
        with torch.no_grad():
            return net(data.X_val)

    look()
    for _ in range(10):
        if not fault:
            net.train()
        for x, y in batches(data.X, data.y, 32):
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        logits = look()
        doctor.epoch(F.cross_entropy(logits, data.y_val).item(), accuracy(logits, data.y_val))
    return verdict(doctor, accuracy(logits, data.y_val))
