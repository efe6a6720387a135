"""Healthy trainings of unusual shape: two optimizers, shared modules, double backward, averages."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import autograd, nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR

import castalia
from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case


@case(None, data="tabular", net="gan")
def a_small_gan_that_has_found_its_balance(seed: int) -> Diagnosis:
    """Neither player wins: both losses hover, which is what should happen."""
    torch.manual_seed(seed)
    mix = torch.tensor([[1.0, 0.4], [0.0, 0.6]])

    def real(n):
        return torch.randn(n, 2) @ mix + torch.tensor([0.5, -0.5])

    G = nn.Sequential(nn.Linear(4, 32), nn.SiLU(), nn.Linear(32, 2))
    D = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
    opt_g = optim.Adam(G.parameters(), lr=2e-3, betas=(0.0, 0.99))
    opt_d = optim.Adam(D.parameters(), lr=8e-3, betas=(0.0, 0.99))
    schedules = CosineAnnealingLR(opt_g, T_max=300), CosineAnnealingLR(opt_d, T_max=300)
    bce = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)
    doctor = castalia.diagnose.watch(nn.ModuleDict({"G": G, "D": D}), [opt_g, opt_d], task="gan")
    for _ in range(300):
        fake = G(torch.randn(128, 4))
        d_loss = bce(D(real(128)), ones) + bce(D(fake.detach()), zeros)
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        g_loss = bce(D(fake), ones)
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        for schedule in schedules:
            schedule.step()
    return doctor.diagnosis()


@case(None, data="image", net="siamese")
def a_contrastive_embedding_of_digits(seed: int) -> Diagnosis:
    """One encoder called twice a step; many pairs end with no loss at all."""
    torch.manual_seed(seed)
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    X = torch.tensor(bunch.data[order] / 16, dtype=torch.float32)
    y = torch.tensor(bunch.target[order])
    encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = optim.Adam(encoder.parameters(), lr=3e-3, weight_decay=1e-4)
    schedule = CosineAnnealingLR(optimizer, T_max=300)
    doctor = castalia.diagnose.watch(encoder, optimizer)
    sorted_by_class = y[:1400].argsort()
    for step in range(300):
        i, j = torch.randint(0, 1400, (2, 128))
        place = torch.randint(0, 1350, (64,))  # half of the pairs are neighbours in that order
        i[:64], j[:64] = (
            sorted_by_class[place],
            sorted_by_class[place + torch.randint(1, 50, (64,))],
        )
        a, b = encoder(X[i]), encoder(X[j])
        distance = (a - b).pow(2).sum(1).add(1e-6).sqrt()
        same = (y[i] == y[j]).float()
        loss = (same * distance**2 + (1 - same) * F.relu(2.0 - distance) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        doctor.log(loss=loss)
        if step % 60 == 59:
            with torch.no_grad():
                near = torch.cdist(encoder(X[1400:]), encoder(X[:1400])).argmin(1)
            doctor.epoch(validation_score=(y[:1400][near] == y[1400:]).float().mean().item())
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def a_curve_fitted_by_lbfgs(seed: int) -> Diagnosis:
    """Several evaluations a step, full batch, float64."""
    torch.manual_seed(seed)
    x = torch.linspace(-2, 2, 120, dtype=torch.float64).unsqueeze(1)
    y = torch.exp(-(x**2)) * torch.cos(3 * x) + 0.02 * torch.randn_like(x)
    model = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1)).double()
    optimizer = optim.LBFGS(model.parameters(), lr=1, max_iter=10, line_search_fn="strong_wolfe")
    doctor = castalia.diagnose.watch(model, optimizer)

    def closure():
        optimizer.zero_grad()
        penalty = 1e-5 * sum(p.pow(2).sum() for p in model.parameters())
        loss = F.mse_loss(model(x), y) + penalty
        loss.backward()
        return loss

    for _ in range(20):
        loss = optimizer.step(closure)
        doctor.log(loss=loss)
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def a_ranking_learnt_from_pairs(seed: int) -> Diagnosis:
    """Only differences of scores are trained: the bias of the output never matters."""

    class Scorer(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(
                nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1, bias=False), nn.Flatten(0)
            )

        def forward(self, x):
            return self.net(x)

    torch.manual_seed(seed)
    X = torch.randn(900, 6)
    worth = X[:, 0] + X[:, 1].abs() - X[:, 2] * X[:, 3]
    i, j = torch.randint(0, 700, (2, 3000))
    chosen = (worth[i] - worth[j]) + 0.3 * torch.randn(3000) > 0
    better, worse = torch.where(chosen, i, j), torch.where(chosen, j, i)
    model = Scorer()
    optimizer = optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-3)
    schedule = CosineAnnealingLR(optimizer, T_max=15)
    doctor = castalia.diagnose.watch(model, optimizer)
    for _ in range(15):
        for idx in torch.randperm(3000).split(100):
            margin = model(X[better[idx]]) - model(X[worse[idx]])
            loss = -F.logsigmoid(margin).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        schedule.step()
        with torch.no_grad():
            score = model(X[700:])
        agree = (score[:100] > score[100:]) == (worth[700:800] > worth[800:])
        doctor.epoch(validation_score=agree.float().mean().item())
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def a_penalty_on_the_gradient_by_the_inputs(seed: int) -> Diagnosis:
    """Double backward: the graph of the loss holds a backward pass of its own."""
    torch.manual_seed(seed)
    X = torch.randn(800, 4)
    y = torch.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * torch.randn(800)
    model = nn.Sequential(nn.Linear(4, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU())
    model.append(nn.Linear(32, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = CosineAnnealingLR(optimizer, T_max=25)
    doctor = castalia.diagnose.watch(model, optimizer)
    for _ in range(25):
        for idx in torch.randperm(640).split(64):
            x = X[idx].clone().requires_grad_()
            pred = model(x).squeeze(1)
            (slope,) = autograd.grad(pred.sum(), x, create_graph=True)
            loss = F.mse_loss(pred, y[idx]) + 1e-3 * slope.pow(2).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            error = F.mse_loss(model(X[640:]).squeeze(1), y[640:]).item()
        doctor.epoch(validation_loss=error, validation_score=1 - error / y[640:].var().item())
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def weights_averaged_over_the_steps(seed: int) -> Diagnosis:
    """Validation runs on a copy that moves slowly and is never given to the optimizer."""
    torch.manual_seed(seed)
    y = torch.randint(0, 3, (1500,))
    centres = 1.5 * torch.randn(3, 8)
    X = centres[y] + torch.randn(1500, 8)
    X = (X - X.mean(0)) / X.std(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    ema = copy.deepcopy(model).requires_grad_(False)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=3e-3)
    schedule = CosineAnnealingLR(optimizer, T_max=20)
    doctor = castalia.diagnose.watch(model, optimizer, criterion)
    for _ in range(20):
        for idx in torch.randperm(1200).split(100):
            optimizer.zero_grad()
            criterion(model(X[idx]), y[idx]).backward()
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(ema.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 0.1)
        schedule.step()
        with torch.no_grad():
            out = ema(X[1200:])
        score = (out.argmax(1) == y[1200:]).float().mean().item()
        doctor.epoch(validation_loss=F.cross_entropy(out, y[1200:]).item(), validation_score=score)
    return doctor.diagnosis()


@case(None, data="tabular", net="mlp")
def monte_carlo_dropout_and_a_learnt_variance(seed: int) -> Diagnosis:
    """Dropout stays on while validating, on purpose; the Gaussian loss goes below nought."""

    class Heteroscedastic(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(2, 48), nn.Linear(48, 48)
            self.mean, self.log_var = nn.Linear(48, 1), nn.Linear(48, 1)

        def forward(self, x):
            h = F.dropout(F.relu(self.fc1(x)), 0.05, training=True)
            h = F.dropout(F.relu(self.fc2(h)), 0.05, training=True)
            return self.mean(h), self.log_var(h)

    torch.manual_seed(seed)
    X = torch.rand(1200, 2) * 3 - 1.5
    y = torch.sin(2 * X[:, :1]) + (0.1 + 0.1 * X[:, 1:].abs()) * torch.randn(1200, 1)
    model = Heteroscedastic()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = CosineAnnealingLR(optimizer, T_max=40)
    doctor = castalia.diagnose.watch(model, optimizer)
    for _ in range(40):
        for idx in torch.randperm(1000).split(100):
            mean, log_var = model(X[idx])
            loss = (0.5 * log_var + 0.5 * (y[idx] - mean) ** 2 / log_var.exp()).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            draws = torch.stack([model(X[1000:])[0] for _ in range(8)])
        error = F.mse_loss(draws.mean(0), y[1000:]).item()
        doctor.epoch(validation_score=1 - error / y[1000:].var().item())
    return doctor.diagnosis()


@case(None, data="image", net="mlp")
def two_tasks_on_one_trunk(seed: int) -> Diagnosis:
    """Which digit, and how much ink: two heads, two losses, one backward."""

    class MultiTask(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
            self.digit = nn.Linear(64, 10)
            self.ink = nn.Linear(64, 1)

        def forward(self, x):
            h = self.trunk(x)
            return self.digit(h), self.ink(h).squeeze(1)

    torch.manual_seed(seed)
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    X = torch.tensor(bunch.data[order] / 16, dtype=torch.float32)
    y, ink = torch.tensor(bunch.target[order]), X.pow(2).mean(1)
    ink = (ink - ink.mean()) / ink.std()
    model = MultiTask()
    optimizer = optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-4)
    schedule = CosineAnnealingLR(optimizer, T_max=20)
    doctor = castalia.diagnose.watch(model, optimizer)
    for _ in range(20):
        for idx in torch.randperm(1300).split(65):
            logits, amount = model(X[idx])
            loss = F.cross_entropy(logits, y[idx]) + 0.5 * F.mse_loss(amount, ink[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        schedule.step()
        with torch.no_grad():
            logits, amount = model(X[1300:])
            val = F.cross_entropy(logits, y[1300:]) + 0.5 * F.mse_loss(amount, ink[1300:])
        score = (logits.argmax(1) == y[1300:]).float().mean().item()
        doctor.epoch(validation_loss=val.item(), validation_score=score)
    return doctor.diagnosis()
