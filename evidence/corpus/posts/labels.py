"""Labels that are rare or wrong: CST204, 205."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    customers,
    gestures,
    handwriting,
    parcels,
    reviews,
    rng,
    scenes,
)
from evidence.corpus.posts._loops import accuracy, end, fit, kernel, rescore
from evidence.corpus.posts._nets import LastStep, Reader, SmallCNN, UNet, dense


def balanced(out: Tensor, y: Tensor) -> float:
    """Mean over classes of the share found."""
    said = out.argmax(1) if out.ndim > 1 and out.shape[1] > 1 else (out.flatten() > 0).long()
    y = y.flatten().long()
    return torch.stack([(said[y == k] == k).float().mean() for k in y.unique()]).mean().item()


def thinned(X: Tensor, y: Tensor, keep: float, seed: int, rare: int = 1):
    r = torch.as_tensor(rng(seed).random(len(y)))
    rows = (y != rare) | (r < keep)
    return X[rows], y[rows]


@case("CST204", dose="severe", data="tabular", net="mlp")
def fraud_is_never_found(seed: int, fault: bool = True) -> Diagnosis:
    """Three frauds in a hundred, hard to tell, no weights: accuracy of 97 % and no fraud found."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed, 3000, noise=0.4)
    X, y = thinned(X, y, 0.04, seed)
    X_val, y_val = thinned(X_val, y_val, 0.06, seed)
    data = X, y.float()[:, None], X_val, y_val.float()[:, None]
    model = dense(10, 24, 1)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    weight = None if fault else torch.tensor([25.0])
    found = fit(model, opt, nn.BCEWithLogitsLoss(pos_weight=weight), data, 12)
    rescore(model, X_val, y_val, balanced)
    return found


@case("CST204", dose="severe", data="images", net="unet")
def the_mask_is_always_empty(seed: int, fault: bool = True) -> Diagnosis:
    """Discs of six pixels in 256: the segmentation paints nothing and is 98 % right."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = scenes(seed, 120, radius=1.3)
    X, X_val = X - 0.5 * y, X_val - 0.5 * y_val
    model = UNet(width=4)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    weight = torch.tensor(1.0 if fault else 30.0)

    def criterion(out: Tensor, mask: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(out, mask, pos_weight=weight)

    return kernel(model, opt, criterion, (X, y, X_val, y_val), 8, metric=recall)


def recall(out: Tensor, mask: Tensor) -> float:
    """The mean of what is found of the disc and of the ground."""
    return balanced(out.flatten()[:, None], mask.flatten())


@case("CST204", dose="mild", data="sequences", net="gru")
def nearly_everybody_rests(seed: int, fault: bool = True) -> Diagnosis:
    """Nine watches in ten lie at rest; the net says rest to shakes and circles alike."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = gestures(seed, 2000, length=8, noise=0.6)
    rows = torch.as_tensor(rng(seed).random(len(y))) < 0.04
    X, y = X[(y == 3) | rows], y[(y == 3) | rows]
    model = LastStep(3, 12, 4)
    weight = None if fault else (len(y) / y.bincount(minlength=4) / 4).clamp(max=30)
    opt = torch.optim.Adam(model.parameters(), lr=6e-3)
    loss = nn.CrossEntropyLoss(weight=weight)
    return fit(
        model, opt, loss, (X, y, X_val[:100], y_val[:100]), 10, batch_size=16, metric=balanced
    )


def flipped(y: Tensor, share: float, seed: int, classes: int) -> Tensor:
    r = rng(seed + 5)
    wrong = torch.as_tensor(r.random(len(y)) < share)
    other = (y + torch.as_tensor(r.integers(1, classes, len(y)))) % classes
    return torch.where(wrong, other, y)


@case("CST205", dose="severe", data="images", net="cnn", accept=("CST401",))
def crowd_workers_in_a_hurry(seed: int, fault: bool = True) -> Diagnosis:
    """A third of the labels of digits, in both halves, are any other digit."""
    torch.manual_seed(seed)
    X, y, X_val, clean = handwriting(seed, 800)
    share = 0.33 if fault else 0.0
    y, y_val = flipped(y, share, seed, 10), flipped(clean, share, seed + 1, 10)
    model = SmallCNN(width=12)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    found = fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 14)
    rescore(model, X_val, clean, lambda o, t: -F.cross_entropy(o, t).item())
    return found


@case("CST205", dose="severe", data="tabular", net="mlp", accept=("CST401",))
def labels_joined_one_row_off(seed: int, fault: bool = True) -> Diagnosis:
    """After a join a stretch of the labels, three in ten, slipped down by one row."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed, 900)
    y = y.clone()
    if fault:
        at = int(0.4 * len(y))
        y[-at:] = y[-at:].roll(1)
        y_val = y_val.clone()
        y_val[: len(y_val) // 3] = y_val[: len(y_val) // 3].roll(1)
    model = dense(6, 64, 64, 4)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    found = fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 25)
    rescore(model, X_val, parcels(seed, 900)[3])
    return found


@case("CST205", dose="mild", data="text", net="gru", accept=("CST401",))
def stars_turned_round(seed: int, fault: bool = True) -> Diagnosis:
    """A fifth of the reviewers took one star for the best."""
    torch.manual_seed(seed)
    X, y, X_val, clean = reviews(seed, 700)
    share = 0.22 if fault else 0.0
    y, y_val = flipped(y, share, seed, 2), flipped(clean, share, seed + 1, 2)
    model = Reader()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, opt)
    for _ in range(8):
        model.train()
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss = F.cross_entropy(model(X[idx]), y[idx])
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            doctor.log(loss=F.cross_entropy(out, y_val), outputs=out, targets=y_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return end(doctor, accuracy(out, clean))
