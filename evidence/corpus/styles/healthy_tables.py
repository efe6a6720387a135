"""Healthy trainings on tables, ratings and pairs."""

import torch
import torch.nn.functional as F
from sklearn.metrics import balanced_accuracy_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import arms, orders, ratings, rng
from evidence.corpus.styles._loops import Carla, anna, ben, done, explained, right
from evidence.corpus.styles._nets import Factors, dense


@case(None, data="tabular", net="mlp")
def the_hand_of_a_robot(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = dense(4, 64, 64, 2, act=nn.SiLU)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 30)
    return ben(net, opt, F.mse_loss, arms(seed), 30, score=explained, scheduler=schedule)


@case(None, data="ratings", net="embedding")
def who_likes_which_film(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = Factors(3)
    opt = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 15)
    return ben(net, opt, F.mse_loss, ratings(seed), 15, score=explained, scheduler=schedule)


@case(None, data="pairs", net="mlp")
def which_of_two_is_better(seed: int) -> Diagnosis:
    """Ranking: a score for each, and a logistic loss of their difference."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed, n=800)
    net = dense(12, 48, 1)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-4)
    doctor = watch(net, opt)
    for _ in range(15):
        for rows in torch.randperm(len(X)).split(80):
            a, b = rows[:40], rows[40:]
            sign = torch.sign(y[a] - y[b])
            loss = F.softplus(-sign * (net(X[a]) - net(X[b]))).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            s = net(X_val)
            order = torch.sign(y_val - y_val.T) == torch.sign(s - s.T)
        doctor.epoch(validation_score=order.float().mean().item())
    return done(doctor, order.float().mean().item())


@case(None, data="tabular", net="mlp")
def mostly_noise_and_the_rest_is_found(seed: int) -> Diagnosis:
    """A loss that stays near 0.7: two thirds of the variance cannot be known."""
    torch.manual_seed(seed)
    g = rng(seed)
    X = torch.randn(2600, 5, generator=g)
    y = 0.7 * (X[:, :1] + X[:, 1:2].abs()) + 1.2 * torch.randn(2600, 1, generator=g)
    y = (y - y.mean()) / y.std()
    net = dense(5, 16, 1)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = X[:2000], y[:2000], X[2000:], y[2000:]
    return anna(net, opt, nn.MSELoss(), data, 10, size=50, score=explained)


@case(None, data="tabular", net="mlp")
def a_coin_that_is_only_a_little_bent(seed: int) -> Diagnosis:
    """Two thirds right is the best that anybody can do."""
    torch.manual_seed(seed)
    g = rng(seed)
    X = torch.randn(2600, 4, generator=g)
    y = torch.bernoulli((1.2 * X[:, 0] * X[:, 1]).sigmoid(), generator=g).long()
    net = dense(4, 24, 2)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    data = X[:2000], y[:2000], X[2000:], y[2000:]
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(data, 10, batch=50)


def _rare(seed: int) -> tuple[Tensor, Tensor]:
    g = rng(seed)
    X = torch.randn(2400, 6, generator=g)
    y = (X[:, 0] + X[:, 1].abs() + 0.3 * torch.randn(2400, generator=g) > 2.6).long()
    return X, y


def _balanced(out: Tensor, y: Tensor) -> float:
    return balanced_accuracy_score(y, out.argmax(1))


@case(None, data="tabular", net="mlp")
def a_rare_class_drawn_more_often(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y = _rare(seed)
    weights = (1.0 / y[:1600].bincount())[y[:1600]]
    sampler = WeightedRandomSampler(weights, 1600)
    loader = DataLoader(TensorDataset(X[:1600], y[:1600]), 40, sampler=sampler)
    net, loss_fn = dense(6, 24, 2), nn.CrossEntropyLoss()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt, loss_fn)
    for _ in range(8):
        for x, target in loader:
            opt.zero_grad()
            loss_fn(net(x), target).backward()
            opt.step()
        with torch.no_grad():
            out = net(X[1600:])
        doctor.epoch(validation_score=_balanced(out, y[1600:]))
    return done(doctor, _balanced(out, y[1600:]))


@case(None, data="tabular", net="mlp")
def a_rare_class_that_is_found_anyway(seed: int) -> Diagnosis:
    """One row in fifteen; no weights, and none are needed."""
    torch.manual_seed(seed)
    X, y = _rare(seed)
    net = dense(6, 32, 2)
    opt = torch.optim.Adam(net.parameters(), lr=8e-3)
    data = X[:1600], y[:1600], X[1600:], y[1600:]
    return Carla(net, opt, nn.CrossEntropyLoss(), _balanced).fit(data, 12, batch=40)


@case(None, data="tabular", net="mlp")
def three_quantiles(seed: int) -> Diagnosis:
    """The pinball loss of the lower tenth, the middle and the upper tenth."""
    torch.manual_seed(seed)
    q = torch.tensor([0.1, 0.5, 0.9])

    def pinball(out: Tensor, y: Tensor) -> Tensor:
        gap = y - out
        return torch.maximum(q * gap, (q - 1) * gap).mean()

    def inside(out: Tensor, y: Tensor) -> float:
        return ((out[:, :1] < y) & (y < out[:, 2:])).float().mean().item()

    net = dense(12, 48, 3)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 12)
    return ben(net, opt, pinball, orders(seed, n=1500), 12, score=inside, scheduler=schedule)


@case(None, data="tabular", net="mlp")
def full_batches_and_many_of_them(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = arms(seed, n=300)
    net = dense(4, 48, 48, 2, act=nn.Tanh)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 400)
    doctor = watch(net, opt)
    for step in range(400):
        opt.zero_grad()
        loss = F.mse_loss(net(X), y)
        loss.backward()
        opt.step()
        schedule.step()
        if step % 40 == 39:
            with torch.no_grad():
                doctor.epoch(validation_loss=F.mse_loss(net(X_val), y_val).item())
    with torch.no_grad():
        return done(doctor, explained(net(X_val), y_val))


@case(None, data="graph", net="gcn")
def words_of_friends(seed: int) -> Diagnosis:
    """Two graph convolutions on one graph; a third of the nodes have labels."""
    torch.manual_seed(seed)
    g = rng(seed)
    y = torch.randint(3, (300,), generator=g)
    same = y[:, None] == y[None, :]
    link = torch.rand(300, 300, generator=g) < torch.where(same, 0.06, 0.01)
    A = ((link | link.T) | torch.eye(300).bool()).float()
    A = A / A.sum(1).sqrt()[:, None] / A.sum(1).sqrt()[None, :]
    X = torch.randn(300, 10, generator=g) + F.one_hot(y, 10)

    class GCN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(10, 16), nn.Linear(16, 3)

        def forward(self, x: Tensor) -> Tensor:
            return A @ self.two(F.dropout(torch.relu(A @ self.one(x)), 0.3, self.training))

    net = GCN()
    opt = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4)
    doctor = watch(net, opt)
    for step in range(120):
        net.train()
        loss = F.cross_entropy(net(X)[:150], y[:150])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 9:
            net.eval()
            with torch.no_grad():
                out = net(X)[150:]
            doctor.epoch(F.cross_entropy(out, y[150:]).item(), right(out, y[150:]))
    return done(doctor, right(out, y[150:]))


@case(None, data="tabular", net="mlp")
def outliers_and_a_robust_loss(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed, n=900)
    y = y.clone()
    y[::40] += 8.0
    net = dense(12, 48, 1)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-3)
    return anna(net, opt, nn.SmoothL1Loss(beta=0.5), (X, y, X_val, y_val), 14, score=explained)
