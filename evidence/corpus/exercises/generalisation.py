"""Networks that learn too much, too little or the wrong thing: CST401 to 406."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    Split,
    digits,
    friedman,
    reviews,
    source,
    split,
    standardised,
)
from evidence.corpus.exercises._loops import (
    SECONDS,
    accuracy,
    batches,
    r2,
    scores,
    train,
    verdict,
)
from evidence.corpus.exercises._nets import SmallCNN, TextTransformer, mlp


@case("CST401", dose="severe", data="tabular", net="mlp")
def a_large_network_learns_the_noise(seed: int, fault: bool = True) -> Diagnosis:
    """A hundred columns, four that matter; validation loss rises from the third epoch on."""
    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(700, 100, generator=g)
    truth = 1.2 * (X[:, 0] + X[:, 1] - X[:, 2] + X[:, 3])
    y = (truth + torch.randn(700, generator=g) > 0).long()
    data = split(X, y, seed, 300)
    net = mlp(100, 128, 128, 2) if fault else nn.Sequential(nn.Linear(100, 2))
    lr, decay = (2e-3, 0.0) if fault else (0.01, 0.03)
    optimizer = torch.optim.Adam(net.parameters(), lr=lr, weight_decay=decay)
    epochs = 30
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=epochs, tell="module")


@case("CST401", dose="severe", data="text", net="embedding")
def reviews_learnt_by_heart(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = reviews(seed, n_train=150)
    blur = torch.randint(22, 60, data.X.shape, generator=source(seed))
    data = data._replace(X=torch.where(torch.rand(data.X.shape) < 0.35, blur, data.X))
    if fault:
        net = nn.Sequential(nn.Embedding(60, 32), nn.Flatten(), nn.Linear(512, 128), nn.ReLU(),
                            nn.Linear(128, 2))  # fmt: skip
    else:
        net = nn.Sequential(nn.EmbeddingBag(60, 16, padding_idx=0), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3 if fault else 0.02)
    epochs = 25 if fault else 8
    return train(net, optimizer, F.cross_entropy, data, epochs=epochs, tell="loss")


@case("CST402", dose="severe", data="images", net="mlp")
def ten_digits_through_one_unit(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(64, 1 if fault else 32, 10, activation=nn.Tanh)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    data = digits(seed, flat=True)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=20, tell="module")


@case("CST402", dose="severe", data="tabular", net="linear")
def a_straight_line_through_a_bent_world(seed: int, fault: bool = True) -> Diagnosis:
    """Boosting finds what the linear model cannot."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(1000, 5, generator=g)
    y = X[:, 0] * X[:, 1] + X[:, 2].abs() + 0.2 * X[:, 3] + 0.1 * torch.randn(1000, generator=g)
    data = standardised(split(X, y[:, None], seed, 700), targets=True)
    net, loss_fn = nn.Linear(5, 1) if fault else mlp(5, 64, 64, 1), nn.MSELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    _fit(net, optimizer, loss_fn, data, 20)
    scores.append(r2(net(data.X_val).detach(), data.y_val))
    return examine(net, loss_fn, (data.X, data.y), (data.X_val, data.y_val), optimizer=optimizer,
                   task="regression", seconds=SECONDS)  # fmt: skip


# Labels that belong to other rows are wrong labels: an equally right answer.
@case("CST403", dose="severe", data="images", net="mlp", accept=("CST205",))
def rows_shuffled_without_their_labels(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = digits(seed, n_train=1300, flat=True)
    if fault:
        data = data._replace(
            X=data.X[torch.randperm(len(data.X), generator=source(seed))],
            X_val=data.X_val[torch.randperm(len(data.X_val), generator=source(seed))],
        )
    net = mlp(64, 16, 10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=12, tell="all")


@case("CST403", dose="severe", data="series", net="mlp")
def tomorrow_from_a_random_walk(seed: int, fault: bool = True) -> Diagnosis:
    """The next step has nothing to do with the last ten; guessing is as good."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    steps = torch.randn(710, generator=source(seed))
    if not fault:  # steps that follow from the last two
        for i in range(2, len(steps)):
            steps[i] = 1.2 * steps[i - 1] - 0.8 * steps[i - 2] + 0.3 * steps[i]
        steps = steps / steps.std()
    windows = steps.unfold(0, 11, 1)
    data = Split(windows[:500, :10], windows[:500, 10:], windows[500:, :10], windows[500:, 10:])
    net, loss_fn = mlp(10, 8, 1), nn.MSELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-3)
    _fit(net, optimizer, loss_fn, data, 10)
    scores.append(r2(net(data.X_val).detach(), data.y_val))
    return examine(net, loss_fn, (data.X, data.y), (data.X_val, data.y_val), optimizer=optimizer,
                   seconds=SECONDS)  # fmt: skip


@case("CST404", dose="severe", data="images", net="mlp")
def nine_units_in_ten_dropped(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    p = 0.9 if fault else 0.2
    net = nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(p),
        nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = digits(seed, flat=True)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=20, tell="module")


@case("CST404", dose="severe", data="tabular", net="mlp")
def decay_as_strong_as_the_data(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(8, 64, 1)
    decay = 0.3 if fault else 1e-4
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=decay)
    return train(net, optimizer, F.mse_loss, friedman(seed), epochs=20, score=r2)


@case("CST404", dose="mild", data="images", net="cnn")
def a_penalty_written_into_the_loss(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = digits(seed)
    net = SmallCNN()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    strength = 0.015 if fault else 1e-5
    doctor = watch(net, optimizer)
    for _ in range(10):
        for x, y in batches(data.X, data.y, 32):
            logits = net(x)
            penalty = sum(weight.square().sum() for weight in net.parameters())
            loss = F.cross_entropy(logits, y) + strength * penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=y)
        with torch.no_grad():
            logits = net(data.X_val)
        doctor.epoch(F.cross_entropy(logits, data.y_val).item(), accuracy(logits, data.y_val))
    return verdict(doctor, accuracy(logits, data.y_val))


def _honesty(logits: Tensor, y: Tensor) -> float:
    """One minus the gap between confidence and accuracy."""
    return 1 - abs(logits.softmax(1).amax(1).mean().item() - accuracy(logits, y))


@case("CST405", dose="severe", data="images", net="mlp")
def smoothed_until_nothing_is_certain(seed: int, fault: bool = True) -> Diagnosis:
    """Nearly always right, and never sure of it."""
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    net = mlp(64, 64, 10)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    smooth = nn.CrossEntropyLoss(label_smoothing=0.7 if fault else 0.0)
    doctor = watch(net, optimizer, smooth)
    for _ in range(15):
        net.train()
        for x, y in batches(data.X, data.y, 32):
            loss = smooth(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            logits = net(data.X_val)
            loss = F.cross_entropy(logits, data.y_val)
            doctor.log(loss=loss, outputs=logits, targets=data.y_val)
        doctor.epoch(loss.item(), accuracy(logits, data.y_val))
    return verdict(doctor, _honesty(logits, data.y_val))


@case("CST405", dose="severe", data="tabular", net="mlp")
def a_temperature_forgotten_after_training(seed: int, fault: bool = True) -> Diagnosis:
    """Trained on logits over ten, used without it: as right as it can be, and far too sure."""
    torch.manual_seed(seed)
    g = source(seed)
    y = torch.randint(3, (1800,), generator=g)
    X = 1.2 * torch.randn(1800, 2, generator=g) + torch.tensor([[0.0, 1], [1, -1], [-1, -1]])[y]
    data = split(X, y, seed, 1300)
    net = mlp(2, 32, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    temperature = 10.0 if fault else 1.0
    doctor = watch(net, optimizer, task="multiclass")
    for _ in range(8):
        net.train()
        for x, target in batches(data.X, data.y, 32):
            logits = net(x)
            loss = F.cross_entropy(logits / temperature, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=target)
        net.eval()
        with torch.no_grad():
            logits = net(data.X_val)
            loss = F.cross_entropy(logits, data.y_val)
            doctor.log(loss=loss, outputs=logits, targets=data.y_val)
        doctor.epoch(loss.item(), accuracy(logits, data.y_val))
    return verdict(doctor, _honesty(logits, data.y_val))


class Truncating(nn.Module):
    """A classifier that turns its images into whole numbers first."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self.body = SmallCNN()
        self.whole = whole

    def forward(self, x: Tensor) -> Tensor:
        if self.whole:
            x = (x * 0.99).to(torch.uint8).float()
        return self.body(x)


@case("CST406", dose="severe", data="images", net="cnn")
def images_cast_to_whole_numbers(seed: int, fault: bool = True) -> Diagnosis:
    """Pixels in [0, 1] become zeros; every image is black."""
    torch.manual_seed(seed)
    net = Truncating(fault)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, nn.CrossEntropyLoss(), digits(seed), epochs=8, tell="all")


class Numbered(nn.Module):
    """Words numbered by a vocabulary that was saved from other texts."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.text = TextTransformer(60, 2, width=16)
        self.vocabulary = vocabulary

    def forward(self, tokens: Tensor) -> Tensor:
        unknown = tokens >= self.vocabulary
        return self.text(tokens.masked_fill(unknown, 1))


@case("CST406", dose="severe", data="text", net="transformer")
def every_word_is_unknown(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    data = reviews(seed, n_train=300)
    full = data._replace(X=data.X.clamp(min=1), X_val=data.X_val.clamp(min=1))
    net, loss_fn = Numbered(1 if fault else 60), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    _fit(net, optimizer, loss_fn, full, 6)
    scores.append(accuracy(net(full.X_val).detach(), full.y_val))
    return examine(net, loss_fn, (full.X, full.y), (full.X_val, full.y_val), optimizer=optimizer,
                   task="multiclass", seconds=SECONDS)  # fmt: skip


def _fit(net, optimizer, loss_fn, data: Split, epochs: int) -> None:
    for _ in range(epochs):
        for x, y in batches(data.X, data.y, 32):
            optimizer.zero_grad()
            loss_fn(net(x), y).backward()
            optimizer.step()
