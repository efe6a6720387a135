"""Healthy trainings on images: black borders, frozen backbones, autoencoders."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case


def digits(seed, n=1300):
    """Images (N, 1, 8, 8) in [0, 1]: n for training, the rest for validation."""
    bunch = load_digits()
    order = torch.randperm(len(bunch.target), generator=torch.Generator().manual_seed(seed))
    X = torch.tensor(bunch.images / 16, dtype=torch.float32).unsqueeze(1)[order]
    y = torch.tensor(bunch.target)[order]
    return X[:n], X[n:], y[:n], y[n:]


def accuracy(out, y):
    return (out.argmax(1) == y).float().mean().item()


@case(None, data="image", net="cnn")
def a_cnn_with_batch_norm_and_label_smoothing(seed: int) -> Diagnosis:
    class ConvNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(8)
            self.conv2 = nn.Conv2d(8, 16, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(16)
            self.fc = nn.Linear(16 * 4, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
            x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
            return self.fc(x.flatten(1))

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    model = ConvNet()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    loader = DataLoader(TensorDataset(Xt, yt), batch_size=64, shuffle=True)
    schedule = OneCycleLR(optimizer, max_lr=0.01, total_steps=10 * len(loader))
    doctor = watch(model, optimizer, criterion)
    for _ in range(10):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            out = model(Xv)
            doctor.epoch(criterion(out, yv).item(), accuracy(out, yv))
    return doctor.diagnosis()


@case(None, data="image", net="autoencoder")
def a_linear_autoencoder_for_principal_components(seed: int) -> Diagnosis:
    """Two linear layers in a row on purpose: what is wanted is the subspace."""
    torch.manual_seed(seed)
    Xt, Xv, _, _ = digits(seed)
    Xt, Xv = Xt.flatten(1), Xv.flatten(1)
    mean = Xt.mean(0)
    Xt, Xv = (Xt - mean) / Xt.std(), (Xv - mean) / Xt.std()
    model = nn.Sequential(nn.Linear(64, 12), nn.Linear(12, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = CosineAnnealingLR(optimizer, T_max=25)
    doctor = watch(model, optimizer)
    for _ in range(25):
        for idx in torch.randperm(len(Xt)).split(65):
            x = Xt[idx]
            loss = ((model(x) - x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        schedule.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=((model(Xv) - Xv) ** 2).mean().item())
    return doctor.diagnosis()


@case(None, data="image", net="autoencoder")
def a_denoising_autoencoder_with_a_sigmoid_output(seed: int) -> Diagnosis:
    """Pixels lie between 0 and 1, and many are exactly 0: a sigmoid output is right."""
    torch.manual_seed(seed)
    Xt, Xv, _, _ = digits(seed)
    Xt, Xv = Xt.flatten(1), Xv.flatten(1)
    model = nn.Sequential(
        nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 64), nn.Sigmoid()
    )
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    schedule = CosineAnnealingLR(optimizer, T_max=25)
    doctor = watch(model, optimizer, loss_fn)
    for _ in range(25):
        model.train()
        for (x,) in DataLoader(TensorDataset(Xt), batch_size=65, shuffle=True):
            optimizer.zero_grad()
            loss = loss_fn(model(x + 0.1 * torch.randn_like(x)), x)
            loss.backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(model(Xv), Xv).item())
    return doctor.diagnosis()


@case(None, data="image", net="cnn")
def a_new_head_on_a_frozen_backbone(seed: int) -> Diagnosis:
    """The backbone has learnt even digits; only the head is trained for all ten, as intended."""
    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    backbone = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )
    first = nn.Sequential(backbone, nn.Linear(256, 10))
    pretraining = torch.optim.Adam(first.parameters(), lr=0.005)
    even = (yt % 2 == 0).nonzero().flatten()
    for _ in range(4):
        for idx in even[torch.randperm(len(even))].split(64):
            pretraining.zero_grad()
            F.cross_entropy(first(Xt[idx]), yt[idx]).backward()
            pretraining.step()

    for p in backbone.parameters():
        p.requires_grad = False
    model = nn.Sequential(backbone, nn.Linear(256, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model[1].parameters(), lr=0.01, weight_decay=1e-4)
    schedule = CosineAnnealingLR(optimizer, T_max=12)
    doctor = watch(model, optimizer, criterion)
    for _ in range(12):
        for idx in torch.randperm(len(Xt)).split(64):
            optimizer.zero_grad()
            criterion(model(Xt[idx]), yt[idx]).backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            out = model(Xv)
        doctor.epoch(F.cross_entropy(out, yv).item(), accuracy(out, yv))
    return doctor.diagnosis()


@case(None, data="image", net="vae")
def a_variational_autoencoder_that_uses_its_code(seed: int) -> Diagnosis:
    class VAE(nn.Module):
        def __init__(self, latent=6):
            super().__init__()
            self.enc = nn.Linear(64, 64)
            self.mu, self.logvar = nn.Linear(64, latent), nn.Linear(64, latent)
            self.dec1, self.dec2 = nn.Linear(latent, 64), nn.Linear(64, 64)

        def forward(self, x):
            h = F.relu(self.enc(x))
            mu, logvar = self.mu(h), self.logvar(h)
            z = mu + torch.randn_like(mu) * torch.exp(logvar / 2)
            return self.dec2(F.relu(self.dec1(z))), mu, logvar

    def negative_elbo(x, mean, mu, logvar, sigma=0.2):
        nll = 0.5 * torch.sum((x - mean) ** 2) / sigma**2
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (nll + kl) / len(x)

    torch.manual_seed(seed)
    Xt, Xv, _, _ = digits(seed)
    Xt, Xv = Xt.flatten(1), Xv.flatten(1)
    vae = VAE()
    optimizer = torch.optim.Adam(vae.parameters(), lr=0.005)
    schedule = CosineAnnealingLR(optimizer, T_max=22)
    doctor = watch(vae, optimizer, task="vae")
    for _ in range(22):
        for idx in torch.randperm(len(Xt)).split(65):
            out = vae(Xt[idx])
            loss = negative_elbo(Xt[idx], *out)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=Xt[idx])
        schedule.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=negative_elbo(Xv, *vae(Xv)).item())
    return doctor.diagnosis()


@case(None, data="image", net="resnet")
def black_borders_and_residual_branches_from_zero(seed: int) -> Diagnosis:
    """Two pixels of black all around: columns that are constant in any image."""

    class Residual(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
            self.norm1 = nn.GroupNorm(4, channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
            self.norm2 = nn.GroupNorm(4, channels)
            nn.init.zeros_(self.norm2.weight)

        def forward(self, x):
            h = torch.relu(self.norm1(self.conv1(x)))
            return torch.relu(x + self.norm2(self.conv2(h)))

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed, n=1000)
    Xt, Xv = F.pad(Xt, (2, 2, 2, 2)), F.pad(Xv, (2, 2, 2, 2))
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.GroupNorm(4, 12),
        nn.ReLU(),
        Residual(12),
        nn.Flatten(),
        nn.Linear(12 * 36, 10),
    )
    optimizer = torch.optim.SGD(
        net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-3
    )
    schedule = CosineAnnealingLR(optimizer, T_max=8 * 20)
    doctor = watch(net, optimizer)
    for _ in range(8):
        net.train()
        for idx in torch.randperm(1000).split(50):
            loss = F.cross_entropy(net(Xt[idx]), yt[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            doctor.log(loss=loss)
        net.eval()
        with torch.no_grad():
            out = net(Xv)
        doctor.epoch(F.cross_entropy(out, yv).item(), accuracy(out, yv))
    return doctor.diagnosis()


@case(None, data="image", net="mlp")
def digits_examined(seed: int) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    Xt, Xv, yt, yv = digits(seed)
    train = TensorDataset(Xt.flatten(1), yt)
    valid = TensorDataset(Xv.flatten(1), yv)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-4)
    for _ in range(15):
        for xb, yb in DataLoader(train, batch_size=65, shuffle=True):
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
    return examine(model, criterion, train, valid, optimizer=optimizer, seconds=5)
