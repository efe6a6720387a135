"""Memorised, too little, or nothing of use: CST401 to 406."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    customers,
    demand,
    handwriting,
    houses,
    parcels,
    reviews,
    rng,
    scenes,
    surnames,
    topics,
)
from evidence.corpus.posts._loops import (
    accuracy,
    end_scored,
    fit,
    kernel,
    quickstart,
    r2,
    rescore,
)
from evidence.corpus.posts._nets import Encoder, LastStep, Reader, SmallCNN, UNet, dense


def likelihood(out: Tensor, y: Tensor) -> float:
    return -F.cross_entropy(out, y).item()


@case("CST401", dose="severe", data="tabular", net="mlp", accept=("CST207",))
def two_hundred_noisy_customers(seed: int, fault: bool = True) -> Diagnosis:
    """A wide net and many epochs on 200 noisy rows: training loss zero, validation climbing."""
    torch.manual_seed(seed)
    model = dense(10, 256, 256, 2) if fault else dense(10, 16, 2)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    wd = 0.0 if fault else 0.05
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=wd)
    data = customers(seed, 270, noise=1.5)
    return fit(model, opt, nn.CrossEntropyLoss(), data, 40 if fault else 20, metric=likelihood)


@case("CST401", dose="severe", data="text", net="transformer", accept=("CST207",))
def transformer_on_a_hundred_reviews(seed: int, fault: bool = True) -> Diagnosis:
    """Two layers of attention without dropout on 120 reviews, thirty epochs."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = reviews(seed, 700)
    n = 110 if fault else 525
    model = Encoder(layers=1, dropout=0.0 if fault else 0.2)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    data = X[:n], y[:n], X_val, y_val
    return fit(model, opt, nn.CrossEntropyLoss(), data, 30 if fault else 7, metric=likelihood)


@case("CST401", dose="mild", data="tabular", net="mlp", accept=("CST207",))
def houses_with_rumours(seed: int, fault: bool = True) -> Diagnosis:
    """Sixty columns of chance beside six that count; the net fits them all."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed, 300)
    r = rng(seed)
    noise = torch.as_tensor(r.normal(size=(300, 60))).float()
    if fault:
        X, X_val = torch.cat([X, noise[: len(X)]], 1), torch.cat([X_val, noise[len(X) :]], 1)
    model = dense(X.shape[1], 96, 96, 1)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    return kernel(model, opt, F.mse_loss, (X, y, X_val, y_val), 20, metric=r2)


@case("CST402", dose="severe", data="tabular", net="linear", accept=("CST403",))
def logistic_regression_for_a_product(seed: int, fault: bool = True) -> Diagnosis:
    """One linear layer where the answer is the sign of a product of two columns."""
    torch.manual_seed(seed)
    X, _, X_val, _ = customers(seed)
    y, y_val = (X[:, 0] * X[:, 1] > 0).long(), (X_val[:, 0] * X_val[:, 1] > 0).long()
    model = nn.Linear(10, 2) if fault else dense(10, 48, 48, 2)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 20)


@case("CST402", dose="mild", data="images", net="cnn")
def one_filter_for_ten_digits(seed: int, fault: bool = True) -> Diagnosis:
    """One convolution filter, pooled to a single number, then ten classes."""
    torch.manual_seed(seed)
    width = 1 if fault else 12
    model = nn.Sequential(
        nn.Conv2d(1, width, 3), nn.LeakyReLU(), nn.AdaptiveAvgPool2d(1 if fault else 3),
        nn.Flatten(), nn.Linear(width * (1 if fault else 9), 10),
    )  # fmt: skip
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed), 15)


@case("CST402", dose="severe", data="tabular", net="mlp")
def a_bottleneck_of_one(seed: int, fault: bool = True) -> Diagnosis:
    """tanh layers of 32, 1 and 32: seven classes of blobs must pass one number."""
    torch.manual_seed(seed)
    model = dense(6, 32, 1 if fault else 16, 32, 7, act=nn.Tanh)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return quickstart(model, opt, nn.CrossEntropyLoss(), parcels(seed, classes=7), 20)


@case("CST403", dose="severe", data="sequences", net="lstm", accept=("CST401", "CST406"))
def tomorrows_return_of_a_share(seed: int, fault: bool = True) -> Diagnosis:
    """Daily returns are independent: the LSTM does no better than their mean."""
    torch.manual_seed(seed)
    r = rng(seed)
    returns = r.standard_t(5, size=412)
    X = torch.as_tensor([returns[i : i + 10] for i in range(400)]).float()[:, :, None]
    y = torch.as_tensor(returns[10:410]).float()[:, None]
    if not fault:
        y = X.mean(1) * 3
    model = LastStep(1, 24, 1, cell=nn.LSTM)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.MSELoss(), (X[:300], y[:300], X[300:], y[300:]), 15, metric=r2)


@case("CST403", dose="severe", data="tabular", net="mlp", accept=("CST401", "CST406"))
def lottery_numbers(seed: int, fault: bool = True) -> Diagnosis:
    """Labels have nothing to do with the columns; early stopping kept it from memorising."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed)
    r = rng(seed + 1)
    if fault:
        y, y_val = (torch.as_tensor(r.integers(2, size=len(t))) for t in (y, y_val))
    model = dense(10, 16, 2)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 12 if fault else 30)


@case("CST404", dose="severe", data="images", net="cnn")
def weight_decay_of_one_tenth_in_adam(seed: int, fault: bool = True) -> Diagnosis:
    """Adam(weight_decay=0.3), taken from AdamW: the penalty outweighs the loss."""
    torch.manual_seed(seed)
    model = SmallCNN()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=0.3 if fault else 1e-4)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed, 700), 10)


@case("CST404", dose="mild", data="tabular", net="mlp", accept=("CST402",))
def dropout_of_nine_tenths(seed: int, fault: bool = True) -> Diagnosis:
    """Dropout(0.9) after both layers, where keep_prob=0.9 was meant."""
    torch.manual_seed(seed)
    p = 0.9 if fault else 0.1
    model = nn.Sequential(
        nn.Linear(6, 48), nn.ReLU(), nn.Dropout(p), nn.Linear(48, 48), nn.ReLU(), nn.Dropout(p),
        nn.Linear(48, 1),
    )  # fmt: skip
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    return fit(model, opt, nn.MSELoss(), houses(seed), 25, metric=r2)


@case("CST404", dose="severe", data="counts", net="mlp", accept=("CST402", "CST403", "CST406"))
def lasso_with_too_heavy_a_hand(seed: int, fault: bool = True) -> Diagnosis:
    """0.05 times the sum of all absolute weights is added to the loss: they all go to zero."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = topics(seed)
    model = dense(30, 32, 5)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    doctor = watch(model, opt)
    strength = 0.05 if fault else 1e-4
    for _ in range(15):
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            out = model(X[idx])
            data_loss = F.binary_cross_entropy_with_logits(out, y[idx])
            loss = data_loss + strength * sum(p.abs().sum() for p in model.parameters())
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=out, targets=y[idx])
        with torch.no_grad():
            out = model(X_val)
            val = F.binary_cross_entropy_with_logits(out, y_val).item()
            doctor.epoch(val, accuracy(out, y_val))
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case("CST405", dose="mild", data="images", net="cnn")
def smoothed_until_nothing_is_sure(seed: int, fault: bool = True) -> Diagnosis:
    """label_smoothing=0.8: nearly all digits are right, and none is surer than a third."""
    torch.manual_seed(seed)
    model = SmallCNN(width=12)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    data = handwriting(seed, 700)
    loss = nn.CrossEntropyLoss(label_smoothing=0.8 if fault else 0.05)
    found = fit(model, opt, loss, data, 12)
    rescore(model, data[2], data[3], likelihood)
    return found


@case("CST406", dose="severe", data="tabular", net="mlp")
def every_row_divided_by_itself(seed: int, fault: bool = True) -> Diagnosis:
    """Normalised twice along the wrong axis: each entry is divided by its own absolute value."""
    torch.manual_seed(seed)
    X, _, X_val, _ = houses(seed, raw=True)
    _, y, _, y_val = houses(seed)
    if fault:
        X, X_val = X / X.abs(), X_val / X_val.abs()
    else:
        X, _, X_val, _ = houses(seed)
    model = dense(6, 32, 32, 1)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.MSELoss(), (X, y, X_val, y_val), 20, metric=r2)


class Masked(nn.Module):
    """Attention with a mask turned round: it attends to padding only."""

    def __init__(self, fault: bool):
        super().__init__()
        self.embed, self.fc = nn.Embedding(60, 16), dense(16, 16, 2)
        self.score = nn.Linear(16, 1)
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        hidden = (x != 0) if self.fault else (x == 0)
        a = self.score(h).squeeze(2).masked_fill(hidden, -1e9).softmax(1)
        return self.fc((a.unsqueeze(2) * h * (~hidden).unsqueeze(2)).sum(1))


@case("CST406", dose="severe", data="text", net="attention", accept=("CST403", "CST402"))
def attention_to_the_padding(seed: int, fault: bool = True) -> Diagnosis:
    """The mask hides the words and shows the padding."""
    torch.manual_seed(seed)
    model = Masked(fault)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), reviews(seed), 12)


@case("CST406", dose="mild", data="text", net="lstm", accept=("CST403", "CST402"))
def all_letters_unknown(seed: int, fault: bool = True) -> Diagnosis:
    """Upper-case letters are looked up in a lower-case vocabulary: each is the unknown token."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = surnames(seed)
    if fault:
        X, X_val = torch.full_like(X, 1), torch.full_like(X_val, 1)
    model = nn.Sequential(nn.Embedding(21, 12), LastStep(12, 20, 3, cell=nn.LSTM))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return kernel(model, opt, F.cross_entropy, (X, y, X_val, y_val), 10)


@case("CST402", dose="mild", data="sequences", net="linear", accept=("CST403",))
def last_value_only(seed: int, fault: bool = True) -> Diagnosis:
    """A straight line on the last hour is asked for the load twelve hours on."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = demand(seed)
    y, y_val = (y - X[:, 5]).abs(), (y_val - X_val[:, 5]).abs()
    if fault:
        X, X_val = X[:, -1], X_val[:, -1]
        model = nn.Linear(1, 1)
    else:
        model = LastStep(1, 24, 1)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    return fit(model, opt, nn.MSELoss(), (X, y, X_val, y_val), 20, metric=r2)


@case("CST401", dose="mild", data="images", net="unet", accept=("CST207",))
def twelve_scans(seed: int, fault: bool = True) -> Diagnosis:
    """A U-Net on twelve very noisy scans for 60 epochs."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = scenes(seed, 160)
    g = torch.Generator().manual_seed(seed)
    X = X + 1.0 * torch.randn(X.shape, generator=g)
    X_val = X_val + 1.0 * torch.randn(X_val.shape, generator=g)
    n = 12 if fault else 120
    model = UNet(width=12 if fault else 6)
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    data = X[:n], y[:n], X_val, y_val
    return fit(
        model, opt, nn.BCEWithLogitsLoss(), data, 60 if fault else 8, batch_size=6,
        metric=lambda o, t: -F.binary_cross_entropy_with_logits(o, t).item(),
    )  # fmt: skip


@case("CST405", dose="mild", data="text", net="gru", accept=("CST401",))
def focal_loss_with_gamma_nine(seed: int, fault: bool = True) -> Diagnosis:
    """A focal loss with gamma 9: whatever is right by a little is left at that."""
    torch.manual_seed(seed)
    model = Reader()
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    gamma = 9.0 if fault else 0.5

    def focal(out: Tensor, t: Tensor) -> Tensor:
        ce = F.cross_entropy(out, t, reduction="none")
        return ((1 - torch.exp(-ce)) ** gamma * ce).mean()

    data = reviews(seed)
    found = kernel(model, opt, focal, data, 8, batch_size=25)
    rescore(model, data[2], data[3], likelihood)
    return found
