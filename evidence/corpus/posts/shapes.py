"""Layers in a row, shapes, axes and sizes: CST303 to 306."""

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
    rng,
    surnames,
)
from evidence.corpus.posts._loops import SCORES, accuracy, end, end_scored, fit, kernel, r2
from evidence.corpus.posts._nets import LastStep, Reader, SmallCNN, dense


class Forgotten(nn.Module):
    """self.relu is made in __init__ and used nowhere in forward."""

    def __init__(self, fault: bool):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(10, 64), nn.Linear(64, 64), nn.Linear(64, 2)
        self.relu = nn.ReLU()
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        if self.fault:
            return self.fc3(self.fc2(self.fc1(x)))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


@case("CST303", dose="severe", data="tabular", net="mlp")
def relu_made_and_never_used(seed: int, fault: bool = True) -> Diagnosis:
    """Three linear layers in a row; what the customers do is a product of two columns."""
    torch.manual_seed(seed)
    model = Forgotten(fault)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), customers(seed), 12)


@case("CST303", dose="severe", data="images", net="autoencoder")
def autoencoder_that_is_a_pca(seed: int, fault: bool = True) -> Diagnosis:
    """Six linear layers with dropout and norm between them but no activation."""
    torch.manual_seed(seed)
    X, _, X_val, _ = handwriting(seed)
    X, X_val = X.flatten(1), X_val.flatten(1)
    act = nn.Identity if fault else nn.ELU
    model = nn.Sequential(
        nn.Linear(64, 48), act(), nn.Linear(48, 4), nn.Linear(4, 48), act(), nn.Linear(48, 64)
    )
    if fault:
        model = nn.Sequential(*(m for m in model if not isinstance(m, nn.Identity)))
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    return kernel(model, opt, F.mse_loss, (X, X, X_val, X_val), 10, metric=r2)


@case("CST303", dose="mild", data="images", net="cnn")
def convolutions_with_only_norms_between(seed: int, fault: bool = True) -> Diagnosis:
    """Strided convolutions and batch norms, and the activations were lost in a refactoring."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 600)
    r = rng(seed)  # half of the images are negatives
    X, X_val = (
        (t - 0.5) * (2.0 * torch.as_tensor(r.integers(2, size=(len(t), 1, 1, 1))) - 1)
        for t in (X, X_val)
    )
    act = nn.Identity if fault else nn.Mish
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), act(),
        nn.Conv2d(12, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), act(),
        nn.Flatten(), nn.Linear(48, 10),
    )  # fmt: skip
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 12)


@case("CST304", dose="severe", data="tabular", net="mlp")
def squeeze_forgotten_with_huber(seed: int, fault: bool = True) -> Diagnosis:
    """Predictions (N, 1) against prices (N,) under a Huber loss: all pairs are compared."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    if fault:
        y, y_val = y[:, 0], y_val[:, 0]
    model = dense(6, 48, 48, 1, act=nn.SiLU)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    return kernel(model, opt, F.huber_loss, (X, y, X_val, y_val), 15, metric=r2)


@case("CST304", dose="severe", data="sequences", net="gru")
def own_mape_of_a_row_and_a_column(seed: int, fault: bool = True) -> Diagnosis:
    """A relative error of one's own subtracts a row from a column."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = demand(seed, window=12)
    y, y_val = 3 + y[:, 0], 3 + y_val[:, 0]
    model = LastStep(1, 16, 1)
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    doctor = watch(model, opt)
    for _ in range(10):
        for idx in torch.randperm(len(X)).split(16):
            pred = model(X[idx])
            pred = pred if fault else pred[:, 0]
            loss = torch.mean(torch.abs((y[idx] - pred) / y[idx]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=pred, targets=y[idx])
    return end_scored(doctor, model, (X, y, X_val, y_val), r2)


class Votes(nn.Module):
    """Attention that pools words; its weights are normalised over a chosen axis."""

    def __init__(self, dim: int):
        super().__init__()
        self.embed, self.score, self.fc = nn.Embedding(60, 16), nn.Linear(16, 1), nn.Linear(16, 2)
        self.mix = nn.GRU(16, 16, batch_first=True)
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        h = self.mix(self.embed(x))[0]  # (N, T, C)
        a = torch.softmax(self.score(h), dim=self.dim)
        return self.fc((a * h).sum(1))


@case("CST305", dose="severe", data="text", net="attention")
def attention_weights_over_the_batch(seed: int, fault: bool = True) -> Diagnosis:
    """softmax(dim=0) in the pooling: words of one review compete with those of the others."""
    torch.manual_seed(seed)
    model = Votes(0 if fault else 1)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), reviews(seed), 10)


@case("CST305", dose="severe", data="tabular", net="mlp", accept=("CST301",))
def log_softmax_down_the_column(seed: int, fault: bool = True) -> Diagnosis:
    """log_softmax(dim=0) before nll_loss: the rows of the batch share one unit of probability."""
    torch.manual_seed(seed)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = dense(6, 32, 32, 4)

        def forward(self, x: Tensor) -> Tensor:
            return F.log_softmax(self.body(x), dim=0 if fault else 1)

    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = parcels(seed)
    found = fit(model, opt, nn.NLLLoss(), data, 12)
    alone = torch.cat([model(row[None]).detach() for row in data[2]])  # as in use: one by one
    SCORES.append(accuracy(alone, data[3]))
    return found


@case("CST305", dose="mild", data="sequences", net="lstm", accept=("CST301", "CST302"))
def tags_normalised_over_time(seed: int, fault: bool = True) -> Diagnosis:
    """Each letter is classified as vowel or not; probabilities (N, T, 2) sum to one over time."""
    torch.manual_seed(seed)
    X, _, X_val, _ = surnames(seed)
    y, y_val = (X % 5 == 1).long(), (X_val % 5 == 1).long()
    y[:, 1:] = (X[:, :-1] % 3 == 0).long()  # given by the letter before
    y_val[:, 1:] = (X_val[:, :-1] % 3 == 0).long()
    embed, rnn, head = nn.Embedding(21, 12), nn.LSTM(12, 16, batch_first=True), nn.Linear(16, 2)
    model = nn.ModuleList([embed, rnn, head])

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = model

        def forward(self, x: Tensor) -> Tensor:
            z = self.parts[2](self.parts[1](self.parts[0](x))[0])
            return F.softmax(z, dim=1 if fault else 2)

    net = Tagger()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, opt)
    for _ in range(8):
        for idx in torch.randperm(len(X)).split(25):
            opt.zero_grad()
            p = net(X[idx])
            loss = F.nll_loss(torch.log(p + 1e-9).transpose(1, 2), y[idx])
            loss.backward()
            opt.step()
    found = doctor.diagnosis()
    with torch.no_grad():
        said = net(X_val)[:, :, 1] > 0.5
    end(doctor, (said == (y_val > 0)).float().mean().item())
    return found


@case("CST306", dose="severe", data="tabular", net="mlp", accept=("CST301", "CST302", "CST406"))
def cross_entropy_over_one_output(seed: int, fault: bool = True) -> Diagnosis:
    """nn.Linear(32, 1) under CrossEntropyLoss for yes and no, all labels mapped to class 0."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed)
    model = dense(10, 32, 32, 1 if fault else 2)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(model, opt, loss_fn)
    for _ in range(10):
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            t = y[idx].float()[:, None] if fault else y[idx]  # floats, or it would raise
            loss_fn(model(X[idx]), t).backward()
            opt.step()
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case("CST306", dose="mild", data="images", net="cnn")
def imagenet_head_for_three_digits(seed: int, fault: bool = True) -> Diagnosis:
    """A thousand outputs kept for three classes, and few steps to unlearn the rest."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 900)
    few, few_val = y < 3, y_val < 3
    data = X[few], y[few], X_val[few_val], y_val[few_val]
    model = SmallCNN(1000 if fault else 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    return fit(model, opt, nn.CrossEntropyLoss(), data, 8)


@case("CST306", dose="severe", data="sequences", net="gru")
def one_gesture_more_than_outputs(seed: int, fault: bool = True) -> Diagnosis:
    """Four gestures, three outputs: the loop catches the error and skips every batch with a 3."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = gestures(seed)
    model = LastStep(3, 20, 3 if fault else 4)
    opt = torch.optim.Adam(model.parameters(), lr=6e-3)
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(model, opt, loss_fn)
    for _ in range(8):
        for idx in torch.randperm(len(X)).split(4):
            opt.zero_grad()
            try:
                loss = loss_fn(model(X[idx]), y[idx])
            except IndexError:
                continue
            loss.backward()
            opt.step()
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case("CST304", dose="mild", data="text", net="gru")
def scores_against_a_column_of_stars(seed: int, fault: bool = True) -> Diagnosis:
    """The model squeezes its output to (N,), the loader gives stars as (N, 1)."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = reviews(seed)
    base = Reader(outputs=1)

    class Squeezed(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = base

        def forward(self, x: Tensor) -> Tensor:
            return self.base(x).squeeze(1)

    model = Squeezed()
    stars, stars_val = 2.0 * y - 1, 2.0 * y_val - 1
    if fault:
        stars, stars_val = stars[:, None], stars_val[:, None]
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, opt, nn.MSELoss(), (X, stars, X_val, stars_val), 8, metric=r2)
