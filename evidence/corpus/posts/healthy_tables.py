"""Healthy trainings on tables that look odd."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer, load_wine
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import customers, halves, houses, parcels, rng, topics, zscore
from evidence.corpus.posts._loops import (
    accuracy,
    end,
    end_scored,
    fit,
    kernel,
    quickstart,
    r2,
    rescore,
)
from evidence.corpus.posts._nets import dense


@case(None, data="tabular", net="mlp")
def a_sparse_code_of_houses(seed: int) -> Diagnosis:
    """256 ReLU units under an L1 penalty on what they say: most are silent on most houses."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    body, head = nn.Sequential(nn.Linear(6, 256), nn.ReLU()), nn.Linear(256, 1)
    model = nn.Sequential(body, head)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, opt)
    for _ in range(30):
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            h = body(X[idx])
            loss = F.mse_loss(head(h), y[idx]) + 1e-3 * h.abs().mean()
            loss.backward()
            opt.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(model(X_val), y_val).item())
    return end_scored(doctor, model, (X, y, X_val, y_val), r2)


@case(None, data="tabular", net="mlp")
def a_high_rate_after_a_warm_up(seed: int) -> Diagnosis:
    """SGD warms up to 0.5, then falls along a cosine."""
    torch.manual_seed(seed)
    model = dense(6, 48, 48, 4, act=nn.Tanh)
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    warm = torch.optim.lr_scheduler.LinearLR(opt, 0.02, 1.0, total_iters=60)
    cool = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 430)
    sched = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cool], [60])
    return kernel(model, opt, F.cross_entropy, parcels(seed), 15, metric=accuracy, sched=sched)


@case(None, data="tabular", net="linear")
def coins_that_are_nearly_fair(seed: int) -> Diagnosis:
    """Labels are drawn with probabilities of 0.2 to 0.8: two thirds right is all there is."""
    torch.manual_seed(seed)
    r = rng(seed)
    X = r.normal(size=(1200, 5))
    p = 1 / (1 + np.exp(-1.2 * X[:, 0] + 0.8 * X[:, 1]))
    X, y, X_val, y_val = halves(X, (r.random(1200) < p).astype(np.float64)[:, None])
    model = nn.Linear(5, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    return fit(model, opt, nn.BCEWithLogitsLoss(), (X, y, X_val, y_val), 12)


@case(None, data="tabular", net="mlp")
def nine_rows_of_validation(seed: int) -> Diagnosis:
    """Only nine rows are held out; their loss jumps about."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed)
    model = dense(6, 40, 40, 4)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    found = quickstart(model, opt, nn.CrossEntropyLoss(), (X, y, X_val[:9], y_val[:9]), 15)
    rescore(model, X_val, y_val)
    return found


@case(None, data="tabular", net="mlp")
def stopped_early_and_restored(seed: int) -> Diagnosis:
    """Early stopping with patience 3; the best weights are loaded back."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed, 1600)
    model = dense(10, 64, 2)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(model, opt, loss_fn)
    best, kept, waited = float("inf"), None, 0
    for _ in range(60):
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
        if val < best:
            best, kept, waited = val, copy.deepcopy(model.state_dict()), 0
        else:
            waited += 1
            if waited == 3:
                break
    model.load_state_dict(kept)
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case(None, data="tabular", net="mlp")
def losses_summed_over_the_batch(seed: int) -> Diagnosis:
    """reduction="sum" with a rate that is small to suit: losses of hundreds, nothing wrong."""
    torch.manual_seed(seed)
    model = dense(6, 48, 48, 1, act=nn.SiLU)
    opt = torch.optim.SGD(model.parameters(), lr=5e-4, momentum=0.9)
    loss = nn.MSELoss(reduction="sum")
    return fit(model, opt, loss, houses(seed), 25, batch_size=64, metric=r2)


class Gauss(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean, self.logvar = dense(6, 48, 48), nn.Linear(48, 1), nn.Linear(48, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = F.elu(self.body(x))
        return self.mean(h), self.logvar(h).clamp(-7, 7).exp()


@case(None, data="tabular", net="mlp")
def a_likelihood_below_zero(seed: int) -> Diagnosis:
    """GaussianNLLLoss of well-predicted prices: the loss is negative and falls on."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed, 900)
    model, nll = Gauss(), nn.GaussianNLLLoss()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    doctor = watch(model, opt)
    for _ in range(25):
        for idx in torch.randperm(len(X)).split(32):
            mean, var = model(X[idx])
            loss = nll(mean, y[idx], var)
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            mean, var = model(X_val)
            doctor.epoch(validation_loss=nll(mean, y_val, var).item())
    return end(doctor, r2(mean, y_val))


@case(None, data="tabular", net="mlp")
def one_in_twelve_with_weights(seed: int) -> Diagnosis:
    """Skewed classes, weighted in the loss, scored by balanced accuracy."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed, 2400, classes=2)
    r = torch.as_tensor(rng(seed).random(len(y)))
    rv = torch.as_tensor(rng(seed + 1).random(len(y_val)))
    rows, rows_val = (y == 0) | (r < 0.09), (y_val == 0) | (rv < 0.09)
    X, y, X_val, y_val = X[rows], y[rows], X_val[rows_val], y_val[rows_val]
    weight = len(y) / (2 * y.bincount().float())
    model = dense(6, 24, 2)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)

    def balanced(out: Tensor, t: Tensor) -> float:
        said = out.argmax(1)
        return sum((said[t == k] == k).float().mean().item() for k in (0, 1)) / 2

    data = X, y, X_val, y_val
    return fit(model, opt, nn.CrossEntropyLoss(weight=weight), data, 10, metric=balanced)


@case(None, data="tabular", net="mlp")
def homework_without_validation(seed: int) -> Diagnosis:
    """Full batches, Adagrad at 0.1, no validation data, the course's own loop."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed)
    model = dense(6, 32, 4, act=nn.Tanh)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    doctor = watch(model, opt)
    for _ in range(200):
        opt.zero_grad()
        loss = F.cross_entropy(model(X), y)
        loss.backward()
        opt.step()
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case(None, data="tabular", net="mlp")
def raw_wine_behind_a_batch_norm(seed: int) -> Diagnosis:
    """Columns come raw; the first layer is a batch norm that scales them."""
    torch.manual_seed(seed)
    X, y = load_wine(return_X_y=True)
    order = rng(seed).permutation(len(y))
    data = halves(X[order], y[order])
    model = nn.Sequential(nn.BatchNorm1d(13), nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), data, 20, batch_size=19)


class Entities(nn.Module):
    """Embeddings of shop and weekday beside two numbers."""

    def __init__(self):
        super().__init__()
        self.shop, self.day = nn.Embedding(12, 4), nn.Embedding(7, 3)
        self.fc = dense(9, 32, 1)

    def forward(self, x: Tensor) -> Tensor:
        shop, day = self.shop(x[:, 0].long()), self.day(x[:, 1].long())
        return self.fc(torch.cat([shop, day, x[:, 2:]], 1))


@case(None, data="tabular", net="embedding")
def shops_and_weekdays(seed: int) -> Diagnosis:
    """Categories as numbers in the columns, embedded; sales by AdamW with decay."""
    torch.manual_seed(seed)
    r = rng(seed)
    shop, day, rest = r.integers(12, size=900), r.integers(7, size=900), r.normal(size=(900, 2))
    worth, week = r.normal(size=12), r.normal(size=7)
    y = worth[shop] + week[day] + 0.5 * rest[:, 0] + 0.2 * r.normal(size=900)
    X = np.concatenate([np.stack([shop, day], 1) / 1.0, rest], 1)
    model = Entities()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    return fit(model, opt, nn.MSELoss(), halves(X, y[:, None] / y.std()), 15, metric=r2)


@case(None, data="tabular", net="mlp")
def three_quantiles_at_once(seed: int) -> Diagnosis:
    """A pinball loss for the 10 %, 50 % and 90 % quantile; three outputs, one target."""
    torch.manual_seed(seed)
    model = dense(6, 48, 48, 3)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    q = torch.tensor([0.1, 0.5, 0.9])

    def pinball(out: Tensor, t: Tensor) -> Tensor:
        e = t - out
        return torch.maximum(q * e, (q - 1) * e).mean()

    return kernel(model, opt, pinball, houses(seed), 15, metric=lambda o, t: r2(o[:, 1:2], t))


@case(None, data="tabular", net="residual")
def sixteen_layers_with_skips(seed: int) -> Diagnosis:
    """Eight residual blocks with layer norm; batches of eight, gradients of four added up."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed, 500)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Sequential(
                nn.LayerNorm(24), nn.Linear(24, 24), nn.GELU(), nn.Linear(24, 24)
            )

        def forward(self, x: Tensor) -> Tensor:
            return x + self.f(x)

    model = nn.Sequential(nn.Linear(6, 24), *(Block() for _ in range(8)), nn.Linear(24, 4))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    doctor = watch(model, opt)
    for _ in range(10):
        for i, idx in enumerate(torch.randperm(len(X))[:352].split(8)):
            (F.cross_entropy(model(X[idx]), y[idx]) / 4).backward()
            if i % 4 == 3:
                opt.step()
                opt.zero_grad()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case(None, data="counts", net="linear")
def words_for_several_tags(seed: int) -> Diagnosis:
    """Logistic regression of five tags on counts, plain SGD: linear is right here."""
    torch.manual_seed(seed)
    model = nn.Linear(30, 5)
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    return fit(model, opt, nn.BCEWithLogitsLoss(), topics(seed), 35)


@case(None, data="tabular", net="mlp")
def judged_by_its_moving_average(seed: int) -> Diagnosis:
    """An exponential average of the weights is what is validated; the raw net is noisy."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    model = dense(6, 48, 48, 1)
    ema = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95)
    )
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    doctor = watch(model, opt)
    for _ in range(20):
        for idx in torch.randperm(len(X)).split(16):
            opt.zero_grad()
            F.mse_loss(model(X[idx]), y[idx]).backward()
            opt.step()
            ema.update_parameters(model)
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(ema(X_val), y_val).item())
    return end(doctor, r2(ema(X_val).detach(), y_val))


@case(None, data="tabular", net="selu")
def selu_with_alpha_dropout(seed: int) -> Diagnosis:
    """A self-normalising net with LeCun's initialisation and a little alpha dropout."""
    torch.manual_seed(seed)
    X, y = load_breast_cancer(return_X_y=True)
    order = rng(seed).permutation(len(y))
    X, y, X_val, y_val = halves(X[order], y[order])
    X, X_val = zscore(X, X_val)
    layers: list[nn.Module] = []
    for a, b in ((30, 32), (32, 32), (32, 32)):
        layers += [nn.Linear(a, b), nn.SELU(), nn.AlphaDropout(0.05)]
    model = nn.Sequential(*layers, nn.Linear(32, 2))
    for m in model:
        if isinstance(m, nn.Linear):
            nn.init.kaiming_normal_(m.weight, nonlinearity="linear")
            nn.init.zeros_(m.bias)
    opt = torch.optim.RMSprop(model.parameters(), lr=3e-4)
    return quickstart(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 12)


@case(None, data="tabular", net="multitask")
def price_and_kind_from_one_trunk(seed: int) -> Diagnosis:
    """Regression and classification share a trunk; losses are weighed by learnt uncertainties."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    kind, kind_val = (X[:, 0] + X[:, 3] > 0).long(), (X_val[:, 0] + X_val[:, 3] > 0).long()

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk = dense(6, 48, 48)
            self.price, self.kind = nn.Linear(48, 1), nn.Linear(48, 2)
            self.log_var = nn.Parameter(torch.zeros(2))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            h = F.relu(self.trunk(x))
            return self.price(h), self.kind(h)

    model = Two()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, opt)
    for _ in range(20):
        for idx in torch.randperm(len(X)).split(32):
            price, said = model(X[idx])
            parts = torch.stack([F.mse_loss(price, y[idx]), F.cross_entropy(said, kind[idx])])
            loss = (torch.exp(-model.log_var) * parts + model.log_var).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=price, targets=y[idx])
        doctor.epoch()
    with torch.no_grad():
        price, said = model(X_val)
    return end(doctor, min(r2(price, y_val), accuracy(said, kind_val)))
