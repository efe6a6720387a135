"""Healthy trainings on images."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import digit_images, patches, properties, rng
from evidence.corpus.styles._loops import Carla, anna, ben, done, explained, right
from evidence.corpus.styles._nets import ConvNet, dense


@case(None, data="images", net="cnn")
def the_tutorial_as_it_stands(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = ConvNet()
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed, 1200), 12)


@case(None, data="images", net="cnn")
def batch_norm_nesterov_and_steps_down(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(),
                        nn.Conv2d(12, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16),
                        nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                        nn.Linear(64, 10))  # fmt: skip
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.MultiStepLR(opt, [6, 8], gamma=0.1)
    return ben(net, opt, F.cross_entropy, digit_images(seed, 1000), 9, bs=40, scheduler=schedule)


@case(None, data="images", net="segmentation")
def a_class_for_every_pixel(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1),
                        nn.ReLU(), nn.Conv2d(12, 3, 1))  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), lr=8e-3)

    def pixels(out: Tensor, y: Tensor) -> float:
        return right(out.movedim(1, -1), y)

    return anna(net, opt, nn.CrossEntropyLoss(), patches(seed), 12, size=10, score=pixels)


@case(None, data="images", net="autoencoder")
def images_through_sixteen_numbers(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, _, X_val, _ = digit_images(seed, 1000)
    X, X_val = X.flatten(1), X_val.flatten(1)
    net = nn.Sequential(dense(64, 64, 16), nn.ReLU(), dense(16, 64, 64))
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 18)
    data = X, X, X_val, X_val
    return ben(net, opt, F.mse_loss, data, 18, score=explained, scheduler=schedule)


@case(None, data="tabular", net="mlp")
def four_labels_that_go_together(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = dense(64, 48, 4)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-4)
    return Carla(net, opt, nn.BCEWithLogitsLoss()).fit(properties(seed, 1100), 12)


@case(None, data="images", net="cnn")
def images_mixed_with_each_other(seed: int) -> Diagnosis:
    """Mixup: the loss stays high, as the targets are mixtures, and the score is good."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed, 1200)
    net = ConvNet(width=12)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    doctor = watch(net, opt)
    share = torch.distributions.Beta(0.3, 0.3)
    for _ in range(12):
        for rows in torch.randperm(len(X)).split(40):
            lam, other = share.sample(), rows[torch.randperm(len(rows))]
            out = net(lam * X[rows] + (1 - lam) * X[other])
            loss = lam * F.cross_entropy(out, y[rows])
            loss = loss + (1 - lam) * F.cross_entropy(out, y[other])
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = net(X_val)
        doctor.epoch(F.cross_entropy(out, y_val).item(), right(out, y_val))
    return done(doctor, right(out, y_val))


@case(None, data="images", net="mlp")
def a_student_and_its_teacher(seed: int) -> Diagnosis:
    """Distillation: the targets are another network's probabilities."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed, 1200)
    teacher = ConvNet(width=12)
    first = torch.optim.Adam(teacher.parameters(), lr=4e-3)
    for _ in range(8):
        for rows in torch.randperm(len(X)).split(40):
            first.zero_grad()
            F.cross_entropy(teacher(X[rows]), y[rows]).backward()
            first.step()
    student = nn.Sequential(nn.Flatten(), dense(64, 32, 10))
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    doctor = watch(student, opt)
    for _ in range(12):
        for rows in torch.randperm(len(X)).split(40):
            with torch.no_grad():
                soft = (teacher(X[rows]) / 2).softmax(1)
            logp = (student(X[rows]) / 2).log_softmax(1)
            loss = 4 * F.kl_div(logp, soft, reduction="batchmean")
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = student(X_val)
        doctor.epoch(F.cross_entropy(out, y_val).item(), right(out, y_val))
    return done(doctor, right(out, y_val))


@case(None, data="images", net="cnn")
def fine_tuning_at_a_small_rate(seed: int) -> Diagnosis:
    """A network that knows the digits meets noisier ones; small steps are what it needs."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed, 1200)
    net = ConvNet(width=12)
    first = torch.optim.Adam(net.parameters(), lr=4e-3)
    for _ in range(6):
        for rows in torch.randperm(len(X)).split(40):
            first.zero_grad()
            F.cross_entropy(net(X[rows]), y[rows]).backward()
            first.step()
    g = rng(seed)
    X = X + 0.5 * torch.randn(X.shape, generator=g)
    X_val = X_val + 0.5 * torch.randn(X_val.shape, generator=g)
    opt = torch.optim.Adam(net.parameters(), lr=2e-4)
    return anna(net, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 8, size=40)


@case(None, data="images", net="mlp")
def sigmoids_that_do_learn(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Flatten(), dense(64, 48, 10, act=nn.Sigmoid))
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed, 1200), 12)


@case(None, data="images", net="siamese")
def are_these_two_the_same_digit(seed: int) -> Diagnosis:
    """Pairs of images, one network for both, a contrastive loss."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed, 1200)
    net = ConvNet(out=8)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt)
    loss_fn = nn.CosineEmbeddingLoss(margin=0.3)
    for _ in range(8):
        for rows in torch.randperm(len(X)).split(40):
            left, right_ = rows[:20], rows[20:]
            for k in range(0, len(left), 2):  # every second pair is one of a kind
                right_[k] = (y == y[left[k]]).nonzero()[torch.randint(50, ()), 0]
            same = torch.where(y[left] == y[right_], 1, -1)
            loss = loss_fn(net(X[left]), net(X[right_]), same)
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            near = F.normalize(net(X_val)) @ F.normalize(net(X)).T
        score = (y[near.argmax(1)] == y_val).float().mean().item()
        doctor.epoch(validation_score=score)
    return done(doctor, score)
