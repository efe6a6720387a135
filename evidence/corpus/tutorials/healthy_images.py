"""Images: classified, found, rebuilt, compared, dreamt up."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from evidence.corpus.cases import case
from evidence.corpus.programs._data import mnist, rng
from evidence.corpus.programs._loops import (
    Net,
    accuracy,
    loaders,
    mlp,
    posted,
    reached,
    tutorial,
)
from evidence.corpus.tutorials._data import glyphs, scenes
from evidence.corpus.tutorials._loops import ConvNet, by_steps


@case(None, data="images", net="cnn")
@posted
def segments_with_a_cosine(seed, fault):
    net = ConvNet()
    optimizer = SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    schedule = CosineAnnealingLR(optimizer, 10)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), glyphs(seed), 10, scheduler=schedule)


@case(None, data="images", net="cnn")
@posted
def one_cycle_and_shifted_images(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1000)
    net = ConvNet(size=8)
    optimizer = AdamW(net.parameters(), 1e-3)
    train, _ = loaders((x, y, x_val, y_val), 50)
    schedule = OneCycleLR(optimizer, 0.01, epochs=10, steps_per_epoch=len(train))
    for _ in range(10):
        net.train()
        for a, b in train:
            a = a.roll(torch.randint(-1, 2, (2,)).tolist(), (2, 3))
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
            schedule.step()
        net.eval()
        with torch.no_grad():
            F.cross_entropy(net(x_val), y_val)
    return reached(net, x_val, y_val)


@case(None, data="images", net="cnn")
@posted
def images_mixed_up(seed, fault):
    """Mixup: two images and two labels in one."""
    x, y, x_val, y_val = glyphs(seed)
    net = ConvNet()
    optimizer = Adam(net.parameters(), 5e-3)
    train, test = loaders((x, y, x_val, y_val))
    for _ in range(10):
        net.train()
        for a, b in train:
            lam = torch.distributions.Beta(0.4, 0.4).sample().item()
            other = torch.randperm(len(a))
            out = net(lam * a + (1 - lam) * a[other])
            loss = lam * F.cross_entropy(out, b) + (1 - lam) * F.cross_entropy(out, b[other])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for a, b in test:
                F.cross_entropy(net(a), b)
    return reached(net, x_val, y_val)


@case(None, data="images", net="cnn")
@posted
def labels_made_smooth(seed, fault):
    net = Net()
    optimizer = Adam(net.parameters(), 3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(label_smoothing=0.1), mnist(seed, 1347), 9)


@case(None, data="images", net="cnn")
@posted
def half_precision_on_the_cpu(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1200)
    x, x_val = x.flatten(1), x_val.flatten(1)
    net = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 10))
    optimizer = AdamW(net.parameters(), 3e-3)
    train, _ = loaders((x, y, x_val, y_val))
    for _ in range(9):
        net.train()
        for a, b in train:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(net(a), b)
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            F.cross_entropy(net(x_val), y_val)
    return reached(net, x_val, y_val)


@case(None, data="images", net="cnn")
@posted
def four_small_batches_a_step(seed, fault):
    x, y, x_val, y_val = glyphs(seed)
    net = ConvNet(norm=lambda c: nn.GroupNorm(2, c))
    optimizer = Adam(net.parameters(), 8e-3)
    train, _ = loaders((x, y, x_val, y_val), 8)
    for _ in range(10):
        net.train()
        for i, (a, b) in enumerate(train, 1):
            (F.cross_entropy(net(a), b) / 4).backward()
            if i % 4 == 0 or i == len(train):
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        net.eval()
        with torch.no_grad():
            F.cross_entropy(net(x_val), y_val)
    return reached(net, x_val, y_val)


@case(None, data="images", net="siamese")
@posted
def pairs_of_digits(seed, fault):
    """Contrastive loss on same and different pairs; scored by the nearest neighbour."""
    x, y, x_val, y_val = glyphs(seed)
    net = ConvNet(classes=8)
    optimizer = Adam(net.parameters(), 3e-3)
    for _ in range(220):
        i = torch.randint(len(x), (48,))
        mate = torch.stack([(y == k).nonzero().flatten()[torch.randint(40, ())] for k in y[i]])
        j = torch.where(torch.rand(48) < 0.5, mate, torch.randint(len(x), (48,)))
        far = (net(x[i]) - net(x[j])).square().sum(1).add(1e-6).sqrt()
        same = (y[i] == y[j]).float()
        loss = (same * far**2 + (1 - same) * F.relu(2 - far) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        near = torch.cdist(net(x_val), net(x)).argmin(1)
    return (y[near] == y_val).float().mean().item()


class Finder(nn.Module):
    """What and where: one body, two heads."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, 1, 1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 24, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.hidden = nn.Linear(24 * 16, 64)
        self.what, self.where = nn.Linear(64, 3), nn.Linear(64, 3)

    def forward(self, x):
        h = F.relu(self.hidden(self.body(x)))
        return self.what(h), self.where(h).sigmoid()


@case(None, data="images", net="detector")
@posted
def what_and_where(seed, fault):
    x, kind, box, _ = scenes(seed, 1400)
    net = Finder()
    optimizer = Adam(net.parameters(), 2e-3)

    def loss_of(rows):
        what, where = net(x[rows])
        return F.cross_entropy(what, kind[rows]) + 20 * F.smooth_l1_loss(where, box[rows])

    for _ in range(16):
        net.train()
        for rows in torch.randperm(1200).split(32):
            loss = loss_of(rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            loss_of(torch.arange(1200, 1400))
    with torch.no_grad():
        return accuracy(net(x[1200:])[0], kind[1200:])


@case(None, data="images", net="autoencoder")
@posted
def images_squeezed_and_rebuilt(seed, fault):
    x, _, x_val, _ = mnist(seed, 1200)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 16),
        nn.Linear(16, 256),
        nn.ReLU(),
        nn.Unflatten(1, (16, 4, 4)),
        nn.ConvTranspose2d(16, 1, 4, 2, 1),
        nn.Sigmoid(),
    )
    optimizer = Adam(net.parameters(), 3e-3)
    data = (x, x, x_val, x_val)
    metric = lambda o, y: 1 - ((o - y) ** 2).mean().item() / y.var().item()  # noqa: E731
    return tutorial(net, optimizer, nn.MSELoss(), data, 20, metric=metric)


class Variational(nn.Module):
    def __init__(self, size=64, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(size, 96), nn.LeakyReLU(), nn.Linear(96, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, 96), nn.LeakyReLU(), nn.Linear(96, size))

    def forward(self, x):
        mu, log_var = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * log_var).exp()
        return self.dec(z), mu, log_var


def elbo(out, x, beta=1.0):
    logits, mu, log_var = out
    rebuilt = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    divergence = -0.5 * (1 + log_var - mu**2 - log_var.exp()).sum() / len(x)
    return rebuilt + beta * divergence


@case(None, data="images", net="vae")
@posted
def digits_dreamt_up(seed, fault):
    x, _, x_val, _ = mnist(seed, 1200)
    x, x_val = x.flatten(1), x_val.flatten(1)
    net = Variational()
    optimizer = Adam(net.parameters(), 2e-3)
    metric = lambda o, y: -elbo(o, y).item()  # noqa: E731
    return tutorial(net, optimizer, elbo, (x, x, x_val, x_val), 20, metric=metric)


@case(None, data="tabular", net="gan")
@posted
def a_gan_of_a_bell_curve(seed, fault):
    """Scored by how near mean and spread of the samples are to 3 and 0.7."""
    maker, judge = mlp(4, 24, 1, act=nn.LeakyReLU), mlp(1, 24, 24, 1, act=nn.LeakyReLU)
    for_maker = Adam(maker.parameters(), 1e-3, betas=(0.5, 0.999))
    for_judge = Adam(judge.parameters(), 1e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
    for _ in range(700):
        real = 3 + 0.7 * torch.randn(64, 1)
        fake = maker(torch.randn(64, 4))
        for_judge.zero_grad()
        (criterion(judge(real), ones) + criterion(judge(fake.detach()), zeros)).backward()
        for_judge.step()
        for_maker.zero_grad()
        criterion(judge(fake), ones).backward()
        for_maker.step()
    with torch.no_grad():
        made = maker(torch.randn(1000, 4))
    return -abs(made.mean().item() - 3) - abs(made.std().item() - 0.7)


@case(None, data="images", net="cnn")
@posted
def a_new_head_then_everything(seed, fault):
    """Trained on digits below five, then a new head for the others, then all at a small rate."""
    x, y, x_val, y_val = glyphs(seed, 1400)
    low, low_val = y < 5, y_val < 5
    net = ConvNet(5)
    data = (x[low], y[low], x_val[low_val], y_val[low_val])
    tutorial(net, Adam(net.parameters(), 5e-3), nn.CrossEntropyLoss(), data, 5)
    data = (x[~low], y[~low] - 5, x_val[~low_val], y_val[~low_val] - 5)
    net.classifier = nn.Linear(144, 5)
    net.features.requires_grad_(False)
    tutorial(net, Adam(net.classifier.parameters(), 5e-3), nn.CrossEntropyLoss(), data, 8)
    net.features.requires_grad_(True)
    return tutorial(net, Adam(net.parameters(), 5e-4), nn.CrossEntropyLoss(), data, 7)


@case(None, data="images", net="cnn")
@posted
def a_moving_average_is_kept(seed, fault):
    x, y, x_val, y_val = glyphs(seed)
    net = ConvNet()
    ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.95), use_buffers=True)
    optimizer = SGD(net.parameters(), 0.05, momentum=0.9)
    train, _ = loaders((x, y, x_val, y_val))
    for _ in range(8):
        net.train()
        for a, b in train:
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
            ema.update_parameters(net)
        ema.eval()
        with torch.no_grad():
            F.cross_entropy(ema(x_val), y_val)
    return reached(ema, x_val, y_val)


@case(None, data="images", net="cnn")
@posted
def the_last_epochs_averaged(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1100)
    net = ConvNet(size=8)
    swa = AveragedModel(net)
    optimizer = SGD(net.parameters(), 0.05, momentum=0.9)
    train, _ = loaders((x, y, x_val, y_val))
    for epoch in range(9):
        net.train()
        for a, b in train:
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        if epoch >= 5:
            swa.update_parameters(net)
    update_bn(train, swa)
    return reached(swa, x_val, y_val)


@case(None, data="images", net="mlp")
@posted
def a_pupil_of_a_larger_network(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1200)
    x, x_val = x.flatten(1), x_val.flatten(1)
    teacher, pupil = mlp(64, 128, 10), mlp(64, 16, 10)
    tutorial(teacher, Adam(teacher.parameters(), 3e-3), nn.CrossEntropyLoss(), (x, y, x_val, y_val))
    teacher.eval()
    optimizer = Adam(pupil.parameters(), 5e-3)
    for _ in range(15):
        pupil.train()
        for rows in torch.randperm(len(x)).split(50):
            with torch.no_grad():
                soft = (teacher(x[rows]) / 3).softmax(1)
            out = pupil(x[rows])
            taught = 9 * F.kl_div((out / 3).log_softmax(1), soft, reduction="batchmean")
            loss = 0.7 * taught + 0.3 * F.cross_entropy(out, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return reached(pupil, x_val, y_val)


@case(None, data="images", net="unet")
@posted
def shapes_cut_out(seed, fault):
    """A mask for every pixel; scored by overlap."""
    x, _, _, mask = scenes(seed, 360)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 1, 1),
    )

    def loss_of(out, y):
        p = out.sigmoid()
        dice = 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
        return F.binary_cross_entropy_with_logits(out, y) + dice

    def overlap(out, y):
        on = out > 0
        return ((on & (y > 0)).sum() / (on | (y > 0)).sum()).item()

    data = (x[:280], mask[:280], x[280:], mask[280:])
    return by_steps(net, Adam(net.parameters(), 5e-3), loss_of, data, 150, 16, metric=overlap)


@case(None, data="images", net="contrastive")
@posted
def two_views_of_a_digit(seed, fault):
    """NT-Xent between two noisy shifts; scored by a nearest neighbour in the embedding."""
    x, y, x_val, y_val = glyphs(seed, 900, 0.1)
    net = ConvNet(16)
    optimizer = Adam(net.parameters(), 3e-3)

    def view(a):
        a = a.roll(torch.randint(-1, 2, (2,)).tolist(), (2, 3))
        return a + 0.3 * torch.randn_like(a)

    for _ in range(150):
        a = x[torch.randperm(len(x))[:64]]
        z = F.normalize(torch.cat([net(view(a)), net(view(a))]), dim=1)
        near = (z @ z.T / 0.3).masked_fill(torch.eye(128, dtype=torch.bool), -1e9)
        loss = F.cross_entropy(near, torch.arange(128).roll(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        near = torch.cdist(F.normalize(net(x_val)), F.normalize(net(x))).argmin(1)
    return (y[near] == y_val).float().mean().item()


@case(None, data="images", net="lora")
@posted
def low_rank_changes_of_a_frozen_network(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1200)
    x, x_val = x.flatten(1), x_val.flatten(1)
    base = mlp(64, 64, 64, 10)
    tutorial(base, Adam(base.parameters(), 3e-3), nn.CrossEntropyLoss(), (x, y, x_val, y_val), 6)
    turn = torch.randperm(64, generator=rng(seed))
    x, x_val = x[:, turn], x_val[:, turn]

    class Adapted(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer.requires_grad_(False)
            self.a = nn.Parameter(0.1 * torch.randn(layer.in_features, 16))
            self.b = nn.Parameter(torch.zeros(16, layer.out_features))

        def forward(self, x):
            return self.layer(x) + x @ self.a @ self.b

    net = copy.deepcopy(base)
    for i in (0, 2, 4):
        net[i] = Adapted(net[i])
    optimizer = AdamW([p for p in net.parameters() if p.requires_grad], 5e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 14)
