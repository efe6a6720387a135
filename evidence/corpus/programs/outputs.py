"""Outputs, losses and shapes that do not belong together."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import watch
from evidence.corpus.cases import case
from evidence.corpus.programs._data import (
    churn,
    cifar,
    housing,
    mnist,
    scaled,
    shifted,
    sklearn_table,
    spiral,
    topics,
)
from evidence.corpus.programs._loops import (
    Net,
    accuracy,
    mlp,
    notebook,
    posted,
    r2,
    reached,
    tutorial,
    watched,
)


@case("CST301", dose="mild", data="images", net="cnn")
@posted
def softmax_in_forward_and_cross_entropy(seed, fault):
    """Why does my loss stop at 1.5?"""
    net = Net(last=nn.Softmax(dim=1) if fault else None)
    return tutorial(
        net, torch.optim.SGD(net.parameters(), 0.05, 0.9), nn.CrossEntropyLoss(), mnist(seed), 5
    )


@case("CST301", dose="mild", data="tabular", net="mlp")
@posted
def sigmoid_in_forward_and_bce_with_logits(seed, fault):
    """My loss is stuck just under 0.693."""
    x, y, x_val, y_val = churn(seed)
    net = nn.Sequential(mlp(10, 32, 1), nn.Sigmoid() if fault else nn.Identity())
    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])

    def metric(out, y):
        return accuracy(out - 0.5 if fault else out, y)

    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    return tutorial(net, optimizer, nn.BCEWithLogitsLoss(), data, 8, metric=metric)


class Regressor(nn.Module):
    def __init__(self, inputs, last):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(inputs, 32), nn.Linear(32, 32), nn.Linear(32, 1)
        self.last = last

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.last(self.fc3(x))


@case("CST301", dose="severe", data="tabular", net="mlp", accept=("CST106",))
@posted
def relu_after_the_last_layer_of_a_regression(seed, fault):
    net = Regressor(5, F.relu if fault else lambda x: x)
    data = scaled(housing(seed), targets=True)
    return tutorial(
        net, torch.optim.Adam(net.parameters(), 3e-3), nn.MSELoss(), data, 10, metric=r2
    )


@case("CST301", dose="severe", data="tabular", net="mlp", accept=("CST202", "CST107"))
@watched
def tanh_on_prices_in_tens_of_thousands(seed, fault):
    x, y, x_val, y_val = scaled(housing(seed))
    y, y_val = y / 1e5, y_val / 1e5
    net = Regressor(5, torch.tanh if fault else lambda x: x)
    loss_fn, optimizer = nn.MSELoss(), torch.optim.Adam(net.parameters(), 3e-3)
    doctor = watch(net, optimizer, loss_fn)
    for _ in range(12):
        for idx in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss_fn(net(x[idx]), y[idx]).backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(loss_fn(net(x_val), y_val).item())
    return doctor, lambda: reached(net, x_val, y_val, r2)


@case("CST301", dose="severe", data="images", net="autoencoder")
@posted
def sigmoid_decoder_for_images_in_minus_one_to_one(seed, fault):
    """transforms.Normalize((0.5,), (0.5,)) was kept from another notebook."""
    x, _, x_val, _ = mnist(seed)
    x, x_val = 2 * x.flatten(1) - 1, 2 * x_val.flatten(1) - 1
    net = nn.Sequential(mlp(64, 48, 12, 48, 64), nn.Sigmoid() if fault else nn.Tanh())
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-5)
    return tutorial(net, optimizer, nn.MSELoss(), (x, x, x_val, x_val), 12, metric=r2)


@case("CST301", dose="severe", data="images", net="cnn", accept=("CST106",))
@posted
def relu_on_the_logits(seed, fault):
    """x = F.relu(self.fc3(x)) copied one line too far."""
    net = Net(last=F.relu if fault else None)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 8)


@case("CST301", dose="severe", data="tabular", net="mlp", accept=("CST302", "CST101", "CST105"))
@posted
def nll_loss_on_raw_outputs(seed, fault):
    """Why is my loss negative?"""
    net = nn.Sequential(mlp(13, 32, 3), nn.Identity() if fault else nn.LogSoftmax(dim=1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    return tutorial(net, optimizer, nn.NLLLoss(), scaled(sklearn_table("wine", seed)), 15)


@case("CST301", dose="mild", data="tabular", net="mlp", accept=("CST302",))
@posted
def nll_loss_on_probabilities(seed, fault):
    """nn.Softmax where nn.LogSoftmax was meant: the loss goes to -1."""
    last = nn.Softmax(dim=1) if fault else nn.LogSoftmax(dim=1)
    net = nn.Sequential(mlp(64, 48, 48, 10), last)
    x, y, x_val, y_val = mnist(seed)
    data = (x.flatten(1), y, x_val.flatten(1), y_val)
    return tutorial(net, torch.optim.SGD(net.parameters(), 0.05, 0.9), nn.NLLLoss(), data, 6)


@case("CST302", dose="severe", data="tabular", net="mlp")
@posted
def squared_error_on_the_number_of_the_class(seed, fault):
    x, y, x_val, y_val = spiral(seed)
    net = mlp(2, 48, 48, 1 if fault else 3, act=nn.Tanh)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    if not fault:
        return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 12)

    def metric(out, y):
        return (out.round().flatten() == y.flatten()).float().mean().item()

    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])
    return tutorial(net, optimizer, nn.MSELoss(), data, 12, metric=metric)


@case("CST302", dose="mild", data="images", net="cnn", accept=("CST102", "CST111"))
@posted
def squared_error_between_softmax_and_one_hot(seed, fault):
    x, y, x_val, y_val = mnist(seed)
    net = Net(last=nn.Softmax(dim=1) if fault else None)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    if not fault:
        return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 5)
    data = (x, F.one_hot(y, 10).float(), x_val, F.one_hot(y_val, 10).float())

    def metric(out, y):
        return (out.argmax(1) == y.argmax(1)).float().mean().item()

    return tutorial(net, optimizer, nn.MSELoss(), data, 5, metric=metric)


@case("CST302", dose="severe", data="tabular", net="mlp", accept=("CST306",))
@posted
def binary_cross_entropy_for_three_cultivars(seed, fault):
    """One logit, labels 0, 1 and 2: the loss is negative."""
    x, y, x_val, y_val = scaled(sklearn_table("wine", seed))
    net = mlp(13, 24, 1 if fault else 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    if not fault:
        return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 12)

    def metric(out, y):
        return (out.sigmoid().round().flatten() == y.flatten()).float().mean().item()

    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])
    return tutorial(net, optimizer, nn.BCEWithLogitsLoss(), data, 12, metric=metric)


@case("CST302", dose="severe", data="tabular", net="mlp", accept=("CST301",))
@posted
def cross_entropy_for_five_labels_at_once(seed, fault):
    net = mlp(20, 48, 5)
    criterion = nn.CrossEntropyLoss() if fault else nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)

    def metric(out, y):
        return ((out > 0) == (y > 0.5)).float().mean().item()

    return tutorial(net, optimizer, criterion, topics(seed), 12, metric=metric)


@case("CST306", dose="severe", data="tabular", net="mlp", accept=("CST301", "CST302"))
@posted
def cross_entropy_over_one_output_is_zero(seed, fault):
    """My loss is 0.0 from the first batch on and the accuracy does not move."""
    x, y, x_val, y_val = scaled(sklearn_table("breast_cancer", seed))
    net = mlp(30, 16, 1)
    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])
    criterion = nn.CrossEntropyLoss() if fault else nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    return tutorial(net, optimizer, criterion, data, 6)


@case("CST304", dose="severe", data="tabular", net="mlp")
@posted
def predictions_of_n_by_one_and_prices_of_n(seed, fault):
    x, y, x_val, y_val = scaled(housing(seed), targets=True)
    data = (x, y.squeeze() if fault else y, x_val, y_val.squeeze() if fault else y_val)
    net = Regressor(5, lambda x: x)
    return tutorial(net, torch.optim.Adam(net.parameters(), 3e-3), nn.MSELoss(), data, 8, metric=r2)


@case("CST304", dose="severe", data="sequence", net="gru")
@posted
def a_mean_absolute_error_by_hand_that_broadcasts(seed, fault):
    x, y, x_val, y_val = scaled(sklearn_table("diabetes", seed), targets=True)
    net = mlp(10, 32, 1, act=nn.ELU)

    def mae(out, y):
        return (out - y if fault else out[:, 0] - y).abs().mean()

    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    return notebook(net, optimizer, mae, (x, y, x_val, y_val), 250, metric=r2)


class Attention(nn.Module):
    """Self-attention by hand over ten tokens; `dim` of its softmax is a parameter."""

    def __init__(self, dim: int, words: int = 8, width: int = 32):
        super().__init__()
        self.embed, self.place = nn.Embedding(words, width), nn.Embedding(10, width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.softmax = nn.Softmax(dim=dim)
        self.head = mlp(2 * width, 64, words)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x) + self.place(torch.arange(x.shape[1]))
        scores = self.q(h) @ self.k(h).transpose(1, 2) / h.shape[-1] ** 0.5
        h = torch.cat([h, self.softmax(scores) @ self.v(h)], -1)
        return self.head(h).transpose(1, 2)


@case("CST305", dose="severe", data="sequence", net="transformer")
@posted
def attention_that_sums_to_one_over_the_batch(seed, fault):
    net = Attention(dim=0 if fault else 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), shifted(seed), 14)


@case("CST303", dose="severe", data="tabular", net="mlp")
@posted
def a_spiral_and_four_linear_layers(seed, fault):
    if fault:
        net = nn.Sequential(
            nn.Linear(2, 64),
            nn.Linear(64, 64),
            nn.Dropout(0.1),
            nn.Linear(64, 64),
            nn.Linear(64, 3),
        )
    else:
        net = mlp(2, 64, 64, 64, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), spiral(seed), 12)


@case("CST303", dose="severe", data="images", net="cnn")
@posted
def convolutions_one_after_the_other(seed, fault):
    """Strides instead of pooling, batch norm, and no activation anywhere."""
    act = nn.Identity if fault else nn.ReLU
    layers = [nn.Conv2d(3, 12, 3, 2, 1), nn.BatchNorm2d(12), act(), nn.Conv2d(12, 24, 3, 2, 1)]
    layers += [nn.BatchNorm2d(24), act(), nn.Flatten(), nn.Linear(24 * 9, 32), act()]
    net = nn.Sequential(*(m for m in layers if not isinstance(m, nn.Identity)), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), cifar(seed, noise=0.3), 8)
