"""Healthy trainings on images that look odd."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import handwriting, scenes
from evidence.corpus.posts._loops import accuracy, end, end_scored, fit, kernel, quickstart, r2
from evidence.corpus.posts._nets import ResNet, SmallCNN, UNet, dense


@case(None, data="images", net="resnet")
def nesterov_along_one_cycle(seed: int) -> Diagnosis:
    """SGD with Nesterov's momentum up to 0.3 and down again, batch norm, decay 5e-4."""
    torch.manual_seed(seed)
    model = ResNet(width=8, blocks=1)
    opt = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.3, total_steps=8 * 15)
    data = handwriting(seed, 620)
    return kernel(model, opt, F.cross_entropy, data, 8, batch_size=32, sched=sched)


@case(None, data="images", net="cnn")
def frozen_convolutions_and_a_new_head(seed: int) -> Diagnosis:
    """Trained on digits 0-4 first; then the convolutions are frozen and a head learns 5-9."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed)
    model = SmallCNN(5)
    first = torch.optim.Adam(model.parameters(), lr=4e-3)
    A, a = X[y < 5], y[y < 5]
    for _ in range(8):
        for idx in torch.randperm(len(A)).split(32):
            first.zero_grad()
            F.cross_entropy(model(A[idx]), a[idx]).backward()
            first.step()
    for p in (*model.conv1.parameters(), *model.conv2.parameters()):
        p.requires_grad_(False)
    model.fc = nn.Linear(64, 5)
    opt = torch.optim.Adam(model.fc.parameters(), lr=0.01)
    data = X[y >= 5], y[y >= 5] - 5, X_val[y_val >= 5], y_val[y_val >= 5] - 5
    return fit(model, opt, nn.CrossEntropyLoss(), data, 15)


@case(None, data="images", net="unet")
def discs_by_dice(seed: int) -> Diagnosis:
    """A soft Dice score, negated, is the loss: it goes from -0.2 to -0.9."""
    torch.manual_seed(seed)
    model = UNet()
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)

    def dice(out: Tensor, mask: Tensor) -> Tensor:
        p = torch.sigmoid(out).flatten(1)
        m = mask.flatten(1)
        return -((2 * (p * m).sum(1) + 1) / (p.sum(1) + m.sum(1) + 1)).mean()

    data = scenes(seed)
    return kernel(model, opt, dice, data, 12, batch_size=10, metric=lambda o, t: -dice(o, t).item())


@case(None, data="images", net="autoencoder")
def noise_taken_out_of_digits(seed: int) -> Diagnosis:
    """A denoising autoencoder: new noise every time, so training loss stays above validation's."""
    torch.manual_seed(seed)
    X, _, X_val, _ = handwriting(seed)
    X, X_val = X.flatten(1), X_val.flatten(1)
    model = nn.Sequential(dense(64, 64, 24, 64, 64), nn.Sigmoid())
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    doctor = watch(model, opt)
    for _ in range(20):
        model.train()
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            noisy = X[idx] + 0.3 * torch.randn_like(X[idx])
            F.binary_cross_entropy(model(noisy), X[idx]).backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            doctor.epoch(validation_loss=F.binary_cross_entropy(model(X_val), X_val).item())
    return end_scored(doctor, model, (X, X, X_val, X_val), r2)


@case(None, data="images", net="resnet")
def four_images_and_group_norm(seed: int) -> Diagnosis:
    """Batches of four with group norm: noisy steps, good end."""
    torch.manual_seed(seed)
    model = ResNet(width=8, blocks=1, norm=lambda c: nn.GroupNorm(4, c))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    data = handwriting(seed, 500)
    return fit(model, opt, nn.CrossEntropyLoss(), data, 4, batch_size=4)


@case(None, data="images", net="cnn")
def mixed_images_and_soft_labels(seed: int) -> Diagnosis:
    """Mixup and label smoothing: training loss never falls below one, accuracy is high."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed)
    model = SmallCNN(width=12)
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    doctor = watch(model, opt)
    for _ in range(12):
        model.train()
        for idx in torch.randperm(len(X)).split(32):
            other = idx[torch.randperm(len(idx))]
            k = torch.distributions.Beta(0.4, 0.4).sample().item()
            out = model(k * X[idx] + (1 - k) * X[other])
            loss = k * loss_fn(out, y[idx]) + (1 - k) * loss_fn(out, y[other])
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(loss_fn(out, y_val).item(), accuracy(out, y_val))
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


def neighbours(net: nn.Module, X: Tensor, y: Tensor, X_val: Tensor, y_val: Tensor) -> float:
    with torch.no_grad():
        near = torch.cdist(net(X_val), net(X)).argmin(1)
    return (y[near] == y_val).float().mean().item()


@case(None, data="images", net="siamese")
def triplets_of_digits(seed: int) -> Diagnosis:
    """A triplet loss: most triplets are soon easy, so the loss is nearly zero and that is good."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 700)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    loss_fn = nn.TripletMarginLoss(margin=1.0)
    doctor = watch(net, opt)
    by = [torch.where(y == k)[0] for k in range(10)]
    for _ in range(200):
        i = torch.randint(len(X), (24,))
        j = torch.stack([by[k][torch.randint(len(by[k]), ())] for k in y[i].tolist()])
        n = torch.randint(len(X), (24,))
        n = torch.where(y[n] == y[i], (n + 1) % len(X), n)
        loss = loss_fn(net(X[i]), net(X[j]), net(X[n]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        doctor.log(loss=loss)
    return end(doctor, neighbours(net, X, y, X_val, y_val))


@case(None, data="images", net="cnn")
def contrast_of_two_views(seed: int) -> Diagnosis:
    """InfoNCE between two noisy views; the loss starts at log(48) and the temperature is 0.2."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 700)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt)
    for _ in range(8):
        for idx in torch.randperm(len(X)).split(48):
            a, b = (net(X[idx] + 0.2 * torch.randn_like(X[idx])) for _ in range(2))
            logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T / 0.2
            loss = F.cross_entropy(logits, torch.arange(len(idx)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
    return end(doctor, neighbours(net, X, y, X_val, y_val))


@case(None, data="images", net="cnn")
def bfloat16_on_the_processor(seed: int) -> Diagnosis:
    """torch.autocast("cpu", bfloat16) around a small CNN with gradient clipping."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 700)
    model = SmallCNN()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(model, opt, loss_fn)
    for _ in range(9):
        model.train()
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loss_fn(model(X[idx]), y[idx])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(X_val)
            doctor.epoch(loss_fn(out, y_val).item(), accuracy(out, y_val))
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case(None, data="images", net="cnn")
def where_the_disc_lies(seed: int) -> Diagnosis:
    """Coordinates in [0, 1] by a sigmoid head and SmoothL1Loss: bounded targets, right so."""
    torch.manual_seed(seed)
    X, m, X_val, m_val = scenes(seed, 400)
    grid = torch.arange(16) / 15.0

    def centre(mask: Tensor) -> Tensor:
        rows, columns = mask.sum((1, 3)), mask.sum((1, 2))
        return torch.stack([(rows * grid).sum(1), (columns * grid).sum(1)], 1) / mask.sum((1, 2, 3))[:, None]  # noqa: E501  # fmt: skip

    y, y_val = centre(m), centre(m_val)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 2),
        nn.Sigmoid(),
    )  # fmt: skip
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return quickstart(model, opt, nn.SmoothL1Loss(), (X, y, X_val, y_val), 20, metric=r2)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = dense(64, 48, 16, act=nn.SiLU), dense(8, 48, 64, act=nn.SiLU)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mu, logvar = self.enc(x).chunk(2, 1)
        return self.dec(mu + torch.randn_like(mu) * torch.exp(logvar / 2)), mu, logvar


@case(None, data="images", net="vae")
def a_vae_with_a_warm_up_of_its_divergence(seed: int) -> Diagnosis:
    """The weight of the divergence grows from 0 to 1: the loss rises for a while, as it should."""
    torch.manual_seed(seed)
    X, _, X_val, _ = handwriting(seed)
    X, X_val = X.flatten(1), X_val.flatten(1)
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    doctor = watch(model, opt, task="vae")
    for epoch in range(16):
        for idx in torch.randperm(len(X)).split(32):
            out, mu, logvar = model(X[idx])
            rec = 8 * F.mse_loss(out, X[idx], reduction="none").sum(1).mean()
            kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
            loss = rec + min(1.0, epoch / 8) * kl
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
    with torch.no_grad():
        seen = model.dec(model.enc(X_val).chunk(2, 1)[0])
    return end(doctor, 1 - F.mse_loss(seen, X_val).item() / X_val.var(0).mean().item())


@case(None, data="images", net="cnn")
def a_student_of_a_teacher(seed: int) -> Diagnosis:
    """Distillation: KLDivLoss to a teacher's softened answers, weighed by T squared."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 700)
    teacher = SmallCNN(width=12)
    first = torch.optim.Adam(teacher.parameters(), lr=4e-3)
    for _ in range(8):
        for idx in torch.randperm(len(X)).split(32):
            first.zero_grad()
            F.cross_entropy(teacher(X[idx]), y[idx]).backward()
            first.step()
    teacher.eval().requires_grad_(False)
    student = nn.Sequential(nn.Flatten(), dense(64, 32, 10))
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    doctor = watch(student, opt)
    for _ in range(15):
        for idx in torch.randperm(len(X)).split(32):
            out, wise = student(X[idx]), teacher(X[idx])
            soft = F.kl_div(
                F.log_softmax(out / 3, 1), F.softmax(wise / 3, 1), reduction="batchmean"
            )
            loss = 9 * 0.7 * soft + 0.3 * F.cross_entropy(out, y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            out = student(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return end_scored(doctor, student, (X, y, X_val, y_val), accuracy)
