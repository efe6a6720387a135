"""Labels that are rare, wrong or in order: CST204, 205, 209."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    Split,
    clouds,
    digits,
    friedman,
    reviews,
    source,
)
from evidence.corpus.exercises._loops import (
    SECONDS,
    accuracy,
    balanced,
    batches,
    r2,
    scores,
    train,
    verdict,
)
from evidence.corpus.exercises._nets import SmallCNN, TextTransformer, mlp


@case("CST204", dose="severe", data="tabular", net="mlp")
def two_frauds_in_a_hundred(seed: int, fault: bool = True) -> Diagnosis:
    """Accuracy is 98 %, that of saying no to everybody."""
    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(3000, 6, generator=g)
    fraud = torch.rand(3000, generator=g) < 0.025
    X[fraud, :3] += 1.1
    data = Split(X[:1500], fraud[:1500, None].float(), X[1500:], fraud[1500:, None].float())
    net = mlp(6, 16, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=None if fault else torch.tensor(40.0))
    doctor = watch(net, optimizer, loss_fn)
    for _ in range(8):
        for x, y in batches(data.X, data.y, 64):
            loss = loss_fn(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            logits = net(data.X_val)
        doctor.epoch(validation_score=accuracy(logits, data.y_val))
    return verdict(doctor, balanced(logits, data.y_val))


@case("CST204", dose="mild", data="text", net="transformer")
def complaints_are_rare(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    part = reviews(seed, n_train=1200)
    few = (torch.rand(len(part.y), generator=source(seed)) < 0.05) | (part.y == 1)
    few_val = (torch.rand(len(part.y_val), generator=source(seed)) < 0.1) | (part.y_val == 1)
    # A third of the words are replaced, so that a complaint is no longer obvious.
    blur = torch.randint(22, 60, part.X.shape, generator=source(seed))
    vague = torch.rand(part.X.shape, generator=source(seed)) < 0.35
    X = torch.where(vague & (part.X != 0), blur, part.X)
    data = Split(X[few], part.y[few], part.X_val[few_val], part.y_val[few_val])
    net = TextTransformer(60, 2, width=16)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    weight = None if fault else torch.tensor([20.0, 1.0])
    loss_fn = nn.CrossEntropyLoss(weight=weight)
    return train(net, optimizer, loss_fn, data, epochs=5, score=balanced, tell="all", report="loss")


def _mislabelled(y: Tensor, rate: float, classes: int, seed: int) -> Tensor:
    g = source(seed)
    wrong = torch.rand(len(y), generator=g) < rate
    return torch.where(wrong, torch.randint(classes, y.shape, generator=g), y)


@case("CST205", dose="severe", data="images", net="mlp")
def four_labels_in_ten_are_random(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    if fault:
        data = data._replace(y=_mislabelled(data.y, 0.45, 10, seed))
    net, loss_fn = mlp(64, 128, 10), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer, task="multiclass")
    for _ in range(20):
        for x, y in batches(data.X, data.y, 32):
            logits = net(x)
            loss = loss_fn(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=y, inputs=x)
        net.eval()
        with torch.no_grad():
            logits = net(data.X_val)
            loss = loss_fn(logits, data.y_val)
            doctor.log(loss=loss, outputs=logits, targets=data.y_val, inputs=data.X_val)
        net.train()
        doctor.epoch(loss.item(), accuracy(logits, data.y_val))
    return verdict(doctor, accuracy(logits, data.y_val))


@case("CST205", dose="mild", data="tabular", net="mlp")
def a_quarter_of_the_answers_swapped(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    data = clouds(seed, n_train=600, classes=3)
    clean = data.y_val
    if fault:
        y, y_val = (_mislabelled(y, 0.3, 3, seed) for y in (data.y, data.y_val))
        data = data._replace(y=y, y_val=y_val)
    net, loss_fn = mlp(10, 64, 3), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(20):
        for x, y in batches(data.X, data.y, 32):
            optimizer.zero_grad()
            loss_fn(net(x), y).backward()
            optimizer.step()
    scores.append(accuracy(net(data.X_val).detach(), clean))
    return examine(
        net,
        loss_fn,
        (data.X, data.y),
        (data.X_val, data.y_val),
        optimizer=optimizer,
        task="multiclass",
        seconds=SECONDS,
    )


@case("CST209", dose="severe", data="images", net="cnn")
def all_zeros_then_all_ones(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = digits(seed)
    order = data.y.argsort()
    data = data._replace(X=data.X[order], y=data.y[order])
    net = SmallCNN()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    return train(net, optimizer, loss_fn, data, epochs=10, tell="module", shuffle=not fault)


@case("CST209", dose="severe", data="text", net="embedding")
def good_reviews_first(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = reviews(seed)
    order = data.y.argsort(descending=True)
    data = data._replace(X=data.X[order], y=data.y[order])
    net = nn.Sequential(nn.EmbeddingBag(60, 16, padding_idx=0), nn.Linear(16, 16), nn.ReLU(),
                        nn.Linear(16, 2))  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    return train(net, optimizer, F.cross_entropy, data, epochs=8, shuffle=not fault)


@case("CST209", dose="mild", data="tabular", net="mlp")
def rows_sorted_by_their_target(seed: int, fault: bool = True) -> Diagnosis:
    """A table as the database returned it: cheapest first."""
    torch.manual_seed(seed)
    data = friedman(seed)
    order = data.y[:, 0].argsort()
    data = data._replace(X=data.X[order], y=data.y[order])
    net = mlp(8, 32, 32, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    return train(
        net, optimizer, F.mse_loss, data, epochs=12, score=r2, tell="all", shuffle=not fault
    )
