"""Units that are dead, pinned, alike or badly begun: CST106 to 109."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    LETTERS,
    customers,
    demand,
    gestures,
    handwriting,
    houses,
    letters,
    parcels,
    scenes,
    spectra,
    surnames,
)
from evidence.corpus.posts._loops import accuracy, end, end_scored, final, fit, kernel, r2
from evidence.corpus.posts._nets import LastStep, SmallCNN, UNet, dense


@case("CST106", dose="severe", data="images", net="cnn")
def biases_of_minus_three(seed: int, fault: bool = True) -> Diagnosis:
    """A prior for rare detections, a bias of -3, was put into every convolution."""
    torch.manual_seed(seed)
    model = SmallCNN(width=10)
    if fault:
        for conv in (model.conv1, model.conv2):
            nn.init.constant_(conv.bias, -3.0)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed, 600), 10)


@case("CST106", dose="severe", data="tabular", net="mlp", accept=("CST101",))
def one_giant_first_step(seed: int, fault: bool = True) -> Diagnosis:
    """A first rate of 3 that a scheduler mends after four steps: the layer is dead by then."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    model = dense(6, 48, 48, 1)
    opt = torch.optim.SGD(model.parameters(), lr=3.0 if fault else 0.03)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [4], gamma=0.01 if fault else 1.0)
    data = X, y + 3, X_val, y_val + 3
    return kernel(model, opt, F.smooth_l1_loss, data, 10, metric=r2, sched=sched)


@case("CST106", dose="mild", data="sequences", net="conv1d", accept=("CST109",))
def relu6_after_a_shifted_norm(seed: int, fault: bool = True) -> Diagnosis:
    """The shift of a batch norm begun at -4, "to make it sparse": few units ever fire."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv1d(1, 16, 7, padding=3), nn.BatchNorm1d(16), nn.ReLU6(), nn.MaxPool1d(4),
        nn.Conv1d(16, 16, 3, padding=1), nn.BatchNorm1d(16), nn.ReLU6(), nn.Flatten(),
        nn.Linear(160, 3),
    )  # fmt: skip
    if fault:
        nn.init.constant_(model[1].bias, -7.0)
        nn.init.constant_(model[5].bias, -4.0)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), spectra(seed), 12)


@case("CST107", dose="severe", data="tabular", net="mlp", accept=("CST109", "CST201"))
def tanh_on_raw_money(seed: int, fault: bool = True) -> Diagnosis:
    """tanh units see euros and years as they come: all of them at -1 or 1 for good."""
    torch.manual_seed(seed)
    X, _, X_val, _ = houses(seed, raw=fault)
    _, y, _, y_val = houses(seed)
    model = dense(6, 32, 32, 1, act=nn.Tanh)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, opt, nn.MSELoss(), (X, y, X_val, y_val), 25, metric=r2)


@case("CST107", dose="severe", data="sequences", net="lstm", accept=("CST109",))
def lstm_weights_from_a_unit_normal(seed: int, fault: bool = True) -> Diagnosis:
    """Every weight of a stacked LSTM drawn from N(0, 3): its gates are switches."""
    torch.manual_seed(seed)
    model = LastStep(3, 24, 4, cell=nn.LSTM)
    if fault:
        for name, p in model.rnn.named_parameters():
            if "weight" in name:
                nn.init.normal_(p, 0, 3.0)
    opt = torch.optim.Adam(model.parameters(), lr=6e-3)
    return kernel(model, opt, F.cross_entropy, gestures(seed), 10)


@case("CST107", dose="mild", data="tabular", net="mlp", accept=("CST109",))
def sigmoids_with_wide_weights(seed: int, fault: bool = True) -> Diagnosis:
    """Two sigmoid layers begun with weights of spread 6 rather than 0.3."""
    torch.manual_seed(seed)
    model = dense(10, 40, 40, 2, act=nn.Sigmoid)
    for m in (model[0], model[2]):
        nn.init.normal_(m.weight, 0, 6.0 if fault else 0.3)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    return fit(model, opt, nn.CrossEntropyLoss(), customers(seed), 25)


def overlap(out: Tensor, mask: Tensor) -> float:
    """Intersection over union of the masks."""
    here, there = out > 0, mask > 0.5
    return ((here & there).sum() / (here | there).sum().clamp(min=1)).item()


@case("CST108", dose="severe", data="images", net="unet", accept=("CST109",))
def every_filter_begins_at_a_tenth(seed: int, fault: bool = True) -> Diagnosis:
    """All weights of a U-Net set to 0.1 "for reproducibility": one filter, many times."""
    torch.manual_seed(seed)
    model = UNet()
    if fault:
        for p in model.parameters():
            nn.init.constant_(p, 0.1)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    data = scenes(seed)
    return fit(model, opt, nn.BCEWithLogitsLoss(), data, 12, batch_size=10, metric=overlap)


@case("CST108", dose="severe", data="tabular", net="mlp", accept=("CST109",))
def numpy_homework_with_ones(seed: int, fault: bool = True) -> Diagnosis:
    """A two-layer net by hand whose weight matrices are torch.ones."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = parcels(seed)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            make = torch.ones if fault else torch.randn
            self.W1 = nn.Parameter(make(6, 30) / 6**0.5)
            self.W2 = nn.Parameter(make(30, 4) / 30**0.5)
            self.b1 = nn.Parameter(torch.zeros(30))
            self.b2 = nn.Parameter(torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            return torch.tanh(x @ self.W1 + self.b1) @ self.W2 + self.b2

    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    doctor = watch(model, opt)
    for _ in range(200):
        logits = model(X)
        loss = -torch.log_softmax(logits, 1)[torch.arange(len(y)), y].mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


class Crosses(nn.Module):
    """A factorisation machine: letters of two places meet in a product."""

    def __init__(self, zero: bool):
        super().__init__()
        self.left, self.right = nn.Embedding(21, 12), nn.Embedding(21, 12)
        self.fc = nn.Linear(12, 3)
        if zero:
            for e in (self.left, self.right):
                nn.init.constant_(e.weight, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc((self.left(x[:, :-1]) * self.right(x[:, 1:])).sum(1))


@case("CST108", dose="mild", data="text", net="embedding", accept=("CST402", "CST109"))
def factors_that_begin_alike(seed: int, fault: bool = True) -> Diagnosis:
    """Embeddings whose every entry begins at 0.5 and a head of equal weights: one factor, twelve times."""  # noqa: E501
    torch.manual_seed(seed)
    model = Crosses(fault)
    if fault:
        nn.init.constant_(model.fc.weight[0], 0.1)
        nn.init.constant_(model.fc.weight[1], -0.1)
        nn.init.constant_(model.fc.weight[2], 0.0)
    else:
        for e in (model.left, model.right):
            nn.init.normal_(e.weight, 0, 0.4)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    return fit(model, opt, nn.CrossEntropyLoss(), surnames(seed), 8)


class Tied(nn.Module):
    """A language model whose head is its embedding."""

    def __init__(self, spread: float):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), 64)
        nn.init.normal_(self.embed.weight, 0, spread)
        self.gru = nn.GRU(64, 64, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(self.embed(x))[0] @ self.embed.weight.T


@case("CST109", dose="mild", data="text", net="gru")
def tied_embeddings_from_a_wide_normal(seed: int, fault: bool = True) -> Diagnosis:
    """Tied embeddings begun with N(0, 6): the first loss is many times log(letters)."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = letters(seed, 200)
    model = Tied(6.0 if fault else 0.3)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    doctor = watch(model, opt)
    for _ in range(10):
        for idx in torch.randperm(len(X)).split(16):
            opt.zero_grad()
            loss = F.cross_entropy(model(X[idx]).flatten(0, 1), y[idx].flatten())
            loss.backward()
            opt.step()
        with torch.no_grad():
            val = F.cross_entropy(model(X_val).flatten(0, 1), y_val.flatten()).item()
        doctor.epoch(validation_loss=val)
    return end(doctor, -val)


@case("CST109", dose="severe", data="tabular", net="mlp", accept=("CST104", "CST101"))
def randn_for_every_matrix(seed: int, fault: bool = True) -> Diagnosis:
    """Six ReLU layers with weights straight from torch.randn: outputs of a million at the start."""
    torch.manual_seed(seed)
    model = dense(6, 64, 64, 64, 64, 64, 4)
    for m in model:
        if isinstance(m, nn.Linear):
            m.weight.data = torch.randn_like(m.weight) * (
                1 if fault else (2 / m.in_features) ** 0.5
            )
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), parcels(seed, spread=1.4), 12)


@case("CST109", dose="severe", data="sequences", net="mlp", accept=("CST103",))
def truncated_normal_of_a_thousandth(seed: int, fault: bool = True) -> Diagnosis:
    """TensorFlow 1's truncated_normal(stddev=0.001) ported for five leaky layers: silence."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), *dense(24, 48, 48, 48, 48, 1, act=nn.LeakyReLU))
    if fault:
        for m in model:
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.001)
                nn.init.zeros_(m.bias)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return fit(model, opt, nn.MSELoss(), demand(seed), 15, metric=r2)


@case("CST106", dose="mild", data="tabular", net="mlp", accept=("CST109", "CST406"))
def weights_from_zero_to_minus_one(seed: int, fault: bool = True) -> Diagnosis:
    """uniform_(-1, 0) instead of uniform_(-1, 1): after the first ReLU nothing positive comes."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed)
    model = dense(10, 40, 40, 40, 1)
    for m in model:
        if isinstance(m, nn.Linear):
            top = 0.0 if fault else 1.0
            m.weight.data.uniform_(-1, top).mul_((2 / m.in_features) ** 0.5)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, opt, task="binary")
    for _ in range(12):
        for idx in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(X[idx]).squeeze(1), y[idx].float())
            loss.backward()
            opt.step()
        doctor.epoch(validation_score=final(model, X_val, y_val))
    return end(doctor, final(model, X_val, y_val))
