"""The wrong end of a network for its loss: CST301, 302."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    customers,
    demand,
    handwriting,
    houses,
    parcels,
    reviews,
    scenes,
    surnames,
    topics,
)
from evidence.corpus.posts._loops import accuracy, fit, kernel, quickstart, r2
from evidence.corpus.posts._nets import LastStep, Reader, SmallCNN, UNet, dense


def ended(model: nn.Module, last: nn.Module, fault: bool) -> nn.Module:
    return nn.Sequential(model, last) if fault else model


@case("CST301", dose="severe", data="images", net="mlp")
def keras_softmax_layer_ported(seed: int, fault: bool = True) -> Diagnosis:
    """The softmax of the Keras model was kept under CrossEntropyLoss."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Flatten(), dense(64, 48, 48, 10))
    model = ended(net, nn.Softmax(dim=-1), fault)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed), 12)


@case("CST301", dose="mild", data="images", net="unet")
def sigmoid_under_bce_with_logits(seed: int, fault: bool = True) -> Diagnosis:
    """A segmentation net ends in a sigmoid and its loss applies another one."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = scenes(seed, 120)
    model = ended(UNet(width=4), nn.Sigmoid(), fault)
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)

    def right(out: Tensor, mask: Tensor) -> float:
        p = out if fault else torch.sigmoid(out)
        return -((p - mask) ** 2).mean().item()

    loss = nn.BCEWithLogitsLoss()
    return fit(model, opt, loss, (X, y, X_val, y_val), 8, batch_size=15, metric=right)


@case("CST301", dose="severe", data="tabular", net="mlp")
def prices_below_zero_through_a_relu(seed: int, fault: bool = True) -> Diagnosis:
    """A ReLU after the last layer while half of the standardised prices are negative."""
    torch.manual_seed(seed)
    model = ended(dense(6, 48, 48, 1), nn.ReLU(), fault)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.MSELoss(), houses(seed), 20, metric=r2)


@case("CST301", dose="mild", data="sequences", net="rnn")
def forecast_squeezed_by_tanh(seed: int, fault: bool = True) -> Diagnosis:
    """The head of a forecast ends in tanh, the load goes from -3 to 3."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = demand(seed)
    model = ended(LastStep(1, 20, 1, cell=nn.RNN), nn.Tanh(), fault)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    return kernel(model, opt, F.mse_loss, (X, 2 * y, X_val, 2 * y_val), 10, metric=r2)


@case("CST301", dose="severe", data="tabular", net="mlp")
def relu_on_the_scores_of_classes(seed: int, fault: bool = True) -> Diagnosis:
    """The helper that makes layers puts a ReLU behind each, the logits of the classes too."""
    torch.manual_seed(seed)
    net = dense(64, 24, 10)
    model = nn.Sequential(nn.Flatten(), ended(net, nn.ReLU(), fault))
    if fault:
        net[2].bias.data -= 0.4
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    return quickstart(model, opt, nn.CrossEntropyLoss(), handwriting(seed, 500), 12)


@case("CST301", dose="severe", data="text", net="gru", accept=("CST302",))
def nll_loss_of_raw_scores(seed: int, fault: bool = True) -> Diagnosis:
    """NLLLoss is fed scores without log_softmax: the loss falls below zero without end."""
    torch.manual_seed(seed)
    model = ended(Reader(), nn.LogSoftmax(dim=1), not fault)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    return fit(model, opt, nn.NLLLoss(), reviews(seed), 8)


@case("CST301", dose="severe", data="tabular", net="mlp", accept=("CST406",))
def softmax_of_one_unit(seed: int, fault: bool = True) -> Diagnosis:
    """Binary, one output unit, softmax as its activation: always 1."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed)
    data = X, y.float()[:, None], X_val, y_val.float()[:, None]
    model = nn.Sequential(dense(10, 32, 32, 1), nn.Softmax(dim=1) if fault else nn.Sigmoid())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.BCELoss(), data, 12, metric=lambda o, t: accuracy(o - 0.5, t))


@case("CST302", dose="severe", data="images", net="cnn")
def digits_as_a_regression(seed: int, fault: bool = True) -> Diagnosis:
    """Class numbers 0 to 9 fitted by one unit and MSE, then rounded."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 700)
    model = SmallCNN(1 if fault else 10)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    if not fault:
        return fit(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 12)
    data = X, y.float()[:, None], X_val, y_val.float()[:, None]
    return fit(
        model, opt, nn.MSELoss(), data, 12,
        metric=lambda o, t: (o.round() == t).float().mean().item(),
    )  # fmt: skip


@case("CST302", dose="severe", data="tabular", net="mlp")
def churn_by_absolute_error(seed: int, fault: bool = True) -> Diagnosis:
    """L1Loss on a sigmoid against 0 and 1: it settles for the larger class."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed)
    rows, rows_val = (y == 0) | (X[:, 5] > 0.3), (y_val == 0) | (X_val[:, 5] > 0.3)
    X, y, X_val, y_val = X[rows], y[rows], X_val[rows_val], y_val[rows_val]
    X, X_val = X.clone(), X_val.clone()
    X[:, 5], X_val[:, 5] = 0.1 * X[:, 5], 0.1 * X_val[:, 5]
    data = X, y.float()[:, None], X_val, y_val.float()[:, None]
    model = nn.Sequential(dense(10, 32, 32, 1), nn.Sigmoid())
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss = nn.L1Loss() if fault else nn.BCELoss()
    return fit(model, opt, loss, data, 12, metric=lambda o, t: accuracy(o - 0.5, t))


@case("CST302", dose="mild", data="text", net="lstm")
def languages_by_binary_cross_entropy(seed: int, fault: bool = True) -> Diagnosis:
    """One-hot languages, exclusive, under a binary cross-entropy for each unit."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = surnames(seed, 900, languages=8)
    model = nn.Sequential(nn.Embedding(21, 12), LastStep(12, 24, 8, cell=nn.LSTM))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)

    def criterion(out: Tensor, t: Tensor) -> Tensor:
        if fault:
            return F.binary_cross_entropy_with_logits(out, F.one_hot(t, 8).float())
        return F.cross_entropy(out, t)

    return kernel(model, opt, criterion, (X, y, X_val, y_val), 8)


@case("CST302", dose="severe", data="tabular", net="mlp", accept=("CST301",))
def nll_loss_of_probabilities(seed: int, fault: bool = True) -> Diagnosis:
    """softmax without its log under F.nll_loss: minus the mean probability is minimised."""
    torch.manual_seed(seed)
    model = dense(6, 40, 40, 4, act=nn.Tanh)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)

    def criterion(out: Tensor, t: Tensor) -> Tensor:
        p = torch.softmax(out, 1)
        return F.nll_loss(p if fault else p.log(), t)

    return kernel(model, opt, criterion, parcels(seed), 12)


@case("CST302", dose="severe", data="counts", net="mlp", accept=("CST301",))
def several_tags_under_cross_entropy(seed: int, fault: bool = True) -> Diagnosis:
    """Posts with several tags at once under CrossEntropyLoss with float targets of many ones."""
    torch.manual_seed(seed)
    model = dense(30, 48, 5)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss = nn.CrossEntropyLoss() if fault else nn.BCEWithLogitsLoss()
    return fit(model, opt, loss, topics(seed), 15)
