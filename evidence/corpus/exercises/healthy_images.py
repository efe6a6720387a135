"""Healthy trainings on images."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import Split, digits
from evidence.corpus.exercises._loops import accuracy, batches, r2, train, verdict
from evidence.corpus.exercises._nets import SmallCNN, mlp


@case(None, data="images", net="mlp")
def digits_with_a_cosine_schedule(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(64, 64, 10)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15 * 38)
    data = digits(seed, n_train=1200, flat=True)
    return train(
        net, optimizer, nn.CrossEntropyLoss(), data, epochs=15, tell="module", schedule=schedule
    )


@case(None, data="images", net="cnn")
def batch_normalised_convolutions_in_one_cycle(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6 * 38)
    data = digits(seed, n_train=1200)
    return train(net, optimizer, F.cross_entropy, data, epochs=6, tell="nothing", schedule=schedule)


@case(None, data="images", net="cnn")
def dropout_and_negative_log_likelihood(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25),
        nn.Linear(192, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, 10), nn.LogSoftmax(dim=1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.995)
    data = digits(seed, n_train=1200)
    return train(net, optimizer, F.nll_loss, data, epochs=12, tell="all", schedule=schedule)


class Residual(nn.Module):
    """Normalise, convolve, add."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(F.relu(self.norm(x)))


@case(None, data="images", net="resnet")
def residual_blocks_with_group_normalisation(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1), Residual(16), Residual(16), Residual(16),
        nn.ReLU(), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
    data = digits(seed, n_train=1200)
    loss_fn = nn.CrossEntropyLoss()
    return train(net, optimizer, loss_fn, data, epochs=6, tell="module", report="score")


@case(None, data="images", net="cnn")
def a_new_head_on_a_frozen_backbone(seed: int) -> Diagnosis:
    """The body learnt the digits 0 to 4; its new head learns 5 to 9."""
    torch.manual_seed(seed)
    data = digits(seed, n_train=1300)
    low, high, high_val = data.y < 5, data.y >= 5, data.y_val >= 5
    net = SmallCNN(classes=5, width=16)
    first = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(5):
        for x, y in batches(data.X[low], data.y[low], 32):
            first.zero_grad()
            F.cross_entropy(net(x), y).backward()
            first.step()
    for layer in (net.conv1, net.conv2):
        layer.requires_grad_(False)
    net.fc1, net.fc2 = nn.Linear(128, 64), nn.Linear(64, 5)
    part = Split(data.X[high], data.y[high] - 5, data.X_val[high_val], data.y_val[high_val] - 5)
    optimizer = torch.optim.Adam((p for p in net.parameters() if p.requires_grad), lr=3e-3)
    return train(net, optimizer, nn.CrossEntropyLoss(), part, epochs=16, tell="module")


@case(None, data="images", net="mlp")
def four_small_batches_to_a_step(seed: int) -> Diagnosis:
    """Gradient accumulation as it should be."""
    torch.manual_seed(seed)
    data = digits(seed, n_train=1280, flat=True)
    net, loss_fn = mlp(64, 64, 10), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    doctor = watch(net, optimizer, loss_fn)
    for _ in range(12):
        optimizer.zero_grad()
        for step, (x, y) in enumerate(batches(data.X, data.y, 16), 1):
            loss = loss_fn(net(x), y) / 4
            loss.backward()
            if step % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        with torch.no_grad():
            logits = net(data.X_val)
            doctor.epoch(loss_fn(logits, data.y_val).item(), accuracy(logits, data.y_val))
    return verdict(doctor, accuracy(logits, data.y_val))


@case(None, data="images", net="autoencoder")
def an_autoencoder_with_a_linear_bottleneck(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    part = digits(seed, flat=True)
    data = Split(part.X, part.X, part.X_val, part.X_val)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 12), nn.Linear(12, 64),
                        nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=8e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20 * 32)
    return train(
        net, optimizer, nn.MSELoss(), data, epochs=20, score=r2, tell="module", schedule=schedule
    )


@case(None, data="images", net="autoencoder")
def noise_taken_off_by_convolutions(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    clean = digits(seed, n_train=700)
    noisy, noisy_val = (x + 0.25 * torch.randn_like(x) for x in (clean.X, clean.X_val))
    data = Split(noisy, clean.X, noisy_val, clean.X_val)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 1, 3, padding=1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6 * 22)
    return train(net, optimizer, F.mse_loss, data, epochs=6, score=r2, report="loss",
                 schedule=schedule)  # fmt: skip


class VAE(nn.Module):
    """Images to ten normal codes and back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU())
        self.mean, self.logvar = nn.Linear(96, 10), nn.Linear(96, 10)
        self.decoder = nn.Sequential(nn.Linear(10, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.encoder(x)
        mean, logvar = self.mean(h), self.logvar(h)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decoder(z), mean, logvar


@case(None, data="images", net="vae")
def a_variational_autoencoder_that_uses_its_codes(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    net = VAE()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer, task="vae")
    for _ in range(20):
        for x, _ in batches(data.X, data.y, 32):
            logits, mean, logvar = net(x)
            error = F.mse_loss(logits, x, reduction="sum") / 0.1
            kl = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum()
            loss = (error + kl) / len(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=(logits, mean, logvar), targets=x)
        with torch.no_grad():
            seen = net(data.X_val)[0]
        doctor.epoch(validation_loss=F.mse_loss(seen, data.X_val).item())
    return verdict(doctor, r2(seen, data.X_val))


@case(None, data="images", net="siamese")
def neighbours_by_triplets(seed: int) -> Diagnosis:
    """Metric learning; the score is that of the nearest neighbour."""
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    net = mlp(64, 64, 16)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    loss_fn = nn.TripletMarginLoss(margin=1.0)
    doctor = watch(net, optimizer, loss_fn)
    by_class = [data.X[data.y == k] for k in range(10)]
    for _ in range(6):
        for x, y in batches(data.X, data.y, 32):
            other = (y + torch.randint(1, 10, y.shape)) % 10
            same = torch.stack([by_class[k][torch.randint(len(by_class[k]), ())] for k in y])
            far = torch.stack([by_class[k][torch.randint(len(by_class[k]), ())] for k in other])
            loss = loss_fn(net(x), net(same), net(far))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            near = torch.cdist(net(data.X_val), net(data.X)).argmin(1)
            score = (data.y[near] == data.y_val).float().mean().item()
        doctor.epoch(validation_score=score)
    return verdict(doctor, score)


@case(None, data="points", net="gan")
def a_generator_that_finds_its_cloud(seed: int) -> Diagnosis:
    """Two networks, two optimizers; the score says how near mean and spread came."""
    torch.manual_seed(seed)
    g, d = mlp(4, 24, 2), mlp(2, 32, 32, 1, activation=nn.Tanh)
    net = nn.ModuleDict({"generator": g, "discriminator": d})
    of_g = torch.optim.Adam(g.parameters(), lr=2e-3, betas=(0.5, 0.9))
    of_d = torch.optim.Adam(d.parameters(), lr=5e-3, betas=(0.5, 0.9))
    slower = [torch.optim.lr_scheduler.ExponentialLR(o, 0.994) for o in (of_g, of_d)]
    doctor = watch(net, [of_g, of_d], task="gan")
    centre, spread = torch.tensor([1.0, -0.5]), torch.tensor([0.6, 1.0])
    for step in range(400):
        real = centre + spread * torch.randn(64, 2)
        false = g(torch.randn(64, 4))
        wrong = F.softplus(-d(real)).mean() + F.softplus(d(false.detach())).mean()
        of_d.zero_grad()
        wrong.backward()
        of_d.step()
        fooled = F.softplus(-d(false)).mean()
        of_g.zero_grad()
        fooled.backward()
        of_g.step()
        for schedule in slower:
            schedule.step()
        if step % 50 == 49:
            doctor.epoch()
    with torch.no_grad():
        drawn = g(torch.randn(2000, 4))
    miss = (drawn.mean(0) - centre).abs().max() + (drawn.std(0) - spread).abs().max()
    return verdict(doctor, 1 - miss)
