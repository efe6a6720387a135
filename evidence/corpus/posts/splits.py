"""Rows in the wrong half, too few, of another kind or in order: CST206 to 209."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    customers,
    gestures,
    handwriting,
    houses,
    parcels,
    reviews,
    rng,
    spectra,
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
from evidence.corpus.posts._nets import LastStep, Reader, ResNet, SmallCNN, dense


@case("CST206", dose="severe", data="tabular", net="mlp")
def oversampled_before_the_split(seed: int, fault: bool = True) -> Diagnosis:
    """Rows were repeated to balance the classes, then split: most of validation was trained on."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed, 300, noise=1.5)
    fresh = customers(seed + 50, 300, noise=1.5)
    if fault:
        order = torch.as_tensor(rng(seed).permutation(3 * len(X)))
        X3, y3 = X.repeat(3, 1)[order], y.repeat(3)[order]
        n = int(0.75 * len(X3))
        X, y, X_val, y_val = X3[:n], y3[:n], X3[n:], y3[n:]
    model = dense(10, 96, 96, 2)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    found = fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 20 if fault else 5)
    rescore(model, fresh[0], fresh[1], lambda o, t: -F.cross_entropy(o, t).item())
    return found


@case("CST206", dose="severe", data="tabular", net="mlp")
def the_date_of_cancellation(seed: int, fault: bool = True) -> Diagnosis:
    """A column is only filled once the customer has left: it is the answer."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed)
    X, X_val = X.clone(), X_val.clone()
    r = rng(seed)
    for part, t in ((X, y), (X_val, y_val)):
        cancelled = t * (1 + 0.1 * torch.as_tensor(r.random(len(t)))) - 0.5
        part[:, 9] = cancelled.float() if fault else part[:, 9]
    model = dense(10, 48, 48, 2)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    found = kernel(model, opt, F.cross_entropy, (X, y, X_val, y_val), 10, batch_size=32)
    X_new, y_new, _, _ = customers(seed + 9)  # of which it is not yet known
    X_new[:, 9] = -0.5 if fault else X_new[:, 9]
    rescore(model, X_new, y_new)
    return found


@case("CST206", dose="mild", data="images", net="cnn")
def validation_taken_with_replacement(seed: int, fault: bool = True) -> Diagnosis:
    """np.random.choice for both halves: more than half of the validation images were trained on."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 400)
    g = 0.8 * torch.randn(400, 1, 8, 8)
    X, X_val, fresh, fresh_y = X + g[:300], X_val + g[300:], X_val + g[300:], y_val
    if fault:
        both, both_y = torch.cat([X, X_val]), torch.cat([y, y_val])
        picked = torch.as_tensor(rng(seed).permutation(400))
        X, y = both[picked[:200]], both_y[picked[:200]]
        again = picked[100:250]
        X_val, y_val = both[again], both_y[again]
        fresh, fresh_y = both[picked[250:]], both_y[picked[250:]]
    model = SmallCNN(width=16)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    found = fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 20)
    rescore(model, fresh, fresh_y)
    return found


@case("CST207", dose="severe", data="images", net="resnet", accept=("CST401",))
def thirty_images_of_ten_kinds(seed: int, fault: bool = True) -> Diagnosis:
    """Three images a class: fitted at once, and half of the others wrong."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed)
    n = 30 if fault else 600
    model = ResNet(width=6, blocks=1, norm=lambda c: nn.GroupNorm(2, c))
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    data = X[:n], y[:n], X_val[:150], y_val[:150]
    return fit(model, opt, nn.CrossEntropyLoss(), data, 50 if fault else 10, batch_size=16)


@case("CST208", dose="severe", data="images", net="cnn")
def validation_from_another_scanner(seed: int, fault: bool = True) -> Diagnosis:
    """The validation images are negatives: white on black in one half, black on white in the other."""  # noqa: E501
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 700)
    model = SmallCNN()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    data = X, y, 1 - X_val if fault else X_val, y_val
    return fit(model, opt, nn.CrossEntropyLoss(), data, 10)


@case("CST208", dose="mild", data="tabular", net="mlp", accept=("CST401",))
def trained_on_old_houses_only(seed: int, fault: bool = True) -> Diagnosis:
    """The table is sorted by area and cut at the end: large houses are only in validation."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    if fault:
        both, prices = torch.cat([X, X_val]), torch.cat([y, y_val])
        order = both[:, 0].argsort()
        both, prices = both[order], prices[order]
        X, y, X_val, y_val = both[:450], prices[:450], both[450:], prices[450:]
    model = dense(6, 48, 48, 1)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.MSELoss(), (X, y, X_val, y_val), 20, metric=r2)


@case("CST208", dose="mild", data="sequences", net="conv1d")
def spectra_calibrated_anew(seed: int, fault: bool = True) -> Diagnosis:
    """The instrument for validation has a base line of 0.8 and half the gain."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = spectra(seed)
    model = nn.Sequential(
        nn.Conv1d(1, 16, 7), nn.ReLU(), nn.AvgPool1d(3), nn.Flatten(), nn.Linear(176, 3)
    )
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    data = X, y, 0.8 + 0.5 * X_val if fault else X_val, y_val
    return quickstart(model, opt, nn.CrossEntropyLoss(), data, 20)


@case("CST209", dose="severe", data="images", net="cnn")
def image_folder_without_shuffle(seed: int, fault: bool = True) -> Diagnosis:
    """Read folder by folder, class after class, and the loader does not shuffle."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 600)
    if fault:
        order = y.argsort()
        X, y = X[order], y[order]
    model = SmallCNN()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = X, y, X_val, y_val
    return fit(model, opt, nn.CrossEntropyLoss(), data, 8, batch_size=16, shuffle=not fault)


@case("CST209", dose="mild", data="text", net="gru")
def first_all_praise_then_all_blame(seed: int, fault: bool = True) -> Diagnosis:
    """Like IMDB on disk: pos/ then neg/, in this order every epoch."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = reviews(seed)
    if fault:
        order = (1 - y).argsort(stable=True)
        X, y = X[order], y[order]
    model = Reader()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, opt)
    for _ in range(7):
        order = torch.arange(len(X)) if fault else torch.randperm(len(X))
        for idx in order.split(25):
            opt.zero_grad()
            loss = F.cross_entropy(model(X[idx]), y[idx])
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        doctor.epoch()
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case("CST209", dose="severe", data="tabular", net="mlp")
def parcels_sorted_by_town(seed: int, fault: bool = True) -> Diagnosis:
    """ORDER BY town in the query and DataLoader(shuffle=False)."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed)
    if fault:
        X, y = X[y.argsort()], y.sort().values
    model = nn.Sequential(
        nn.Linear(6, 32),
        nn.LayerNorm(32),
        nn.SiLU(),
        nn.Linear(32, 32),
        nn.SiLU(),
        nn.Linear(32, 4),
    )
    opt = torch.optim.RMSprop(model.parameters(), lr=6e-3)
    data = X, y, X_val, y_val
    return fit(model, opt, nn.CrossEntropyLoss(), data, 8, batch_size=12, shuffle=not fault)


@case("CST208", dose="severe", data="sequences", net="lstm")
def axes_of_the_new_watch(seed: int, fault: bool = True) -> Diagnosis:
    """The watches of validation tell gravity as well: one axis lies 9.8 higher."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = gestures(seed)
    X_val = X_val.clone()
    X_val[:, :, 2] += 9.8 if fault else 0.0
    model = LastStep(3, 20, 4, cell=nn.LSTM)
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 12)


@case("CST206", dose="mild", data="counts", net="mlp")
def the_moderators_tag_is_a_word(seed: int, fault: bool = True) -> Diagnosis:
    """A word is the tag that moderators put on toxic posts, and it gives the label."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = topics(seed)
    y, y_val = y[:, 0].long(), y_val[:, 0].long()
    X, X_val = X.clone(), X_val.clone()
    fresh = X_val.clone()
    if fault:
        X[:, 12], X_val[:, 12], fresh[:, 12] = 3.0 * y, 3.0 * y_val, 0.0
    model = dense(30, 24, 2)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    found = fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 15)
    rescore(model, fresh, y_val)
    return found
