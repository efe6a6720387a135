"""Units that are dead, pinned or alike, and bad beginnings: CST106 to 109."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.styles._data import (
    arms,
    commands,
    digit_images,
    orders,
    properties,
    sensors,
)
from evidence.corpus.styles._loops import Carla, anna, ben, explained
from evidence.corpus.styles._nets import ConvNet, SensorRNN, TextRNN, dense


@case("CST106", dose="severe", data="images", net="cnn")
def filters_with_a_bias_of_minus_ten(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = ConvNet()
    if fault:
        nn.init.constant_(net.conv2.bias, -10.0)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed), 8)


@case("CST106", dose="mild", data="tabular", net="mlp", accept=("CST109",))
def positive_inputs_times_negative_weights(seed: int, fault: bool = True) -> Diagnosis:
    """Shares between 0 and 1, and weights drawn from the wrong side of zero."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed)
    data = X.sigmoid(), y, X_val.sigmoid(), y_val
    net = dense(12, 48, 48, 1)
    if fault:
        nn.init.uniform_(net[0].weight, -0.5, 0.02)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return ben(net, opt, F.mse_loss, data, 25, score=explained)


@case("CST107", dose="severe", data="series", net="rnn", accept=("CST201",))
def millivolts_into_a_tanh_recurrence(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    factor = 200.0 if fault else 1.0
    net = SensorRNN(nn.RNN)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    data = factor * X, y, factor * X_val, y_val
    return anna(net, opt, nn.MSELoss(), data, 10, score=explained)


@case("CST107", dose="severe", data="tabular", net="mlp", accept=("CST109",))
def sigmoids_begun_with_large_weights(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = dense(64, 48, 32, 4, act=nn.Sigmoid)
    for layer in net:
        if isinstance(layer, nn.Linear) and fault:
            nn.init.normal_(layer.weight, std=6.0)
    opt = torch.optim.SGD(net.parameters(), lr=0.05 if fault else 0.5, momentum=0.9)
    return Carla(net, opt, nn.BCEWithLogitsLoss()).fit(properties(seed), 10)


@case("CST108", dose="severe", data="tabular", net="mlp")
def every_weight_a_twentieth(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = dense(64, 32, 16, 4, act=nn.Tanh)
    if fault:
        for p in net.parameters():
            nn.init.constant_(p, 0.05)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return anna(net, opt, nn.BCEWithLogitsLoss(), properties(seed), 10)


@case("CST108", dose="severe", data="images", net="cnn")
def ones_for_all_filters(seed: int, fault: bool = True) -> Diagnosis:
    def weights_init(m: nn.Module) -> None:
        if isinstance(m, nn.Conv2d | nn.Linear):
            nn.init.constant_(m.weight, 1 / m.weight[0].numel())
            nn.init.zeros_(m.bias)

    torch.manual_seed(seed)
    net = ConvNet()
    if fault:
        net.apply(weights_init)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return ben(net, opt, F.cross_entropy, digit_images(seed), 6)


@case("CST109", dose="severe", data="images", net="cnn", accept=("CST104",))
def five_convolutions_of_normal_weights(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    layers: list[nn.Module] = [nn.Conv2d(1, 12, 3, padding=1), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(12, 12, 3, padding=1), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(48, 10))
    for layer in net:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight)
            if fault:
                nn.init.normal_(layer.weight, std=0.7)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed, 600), 5)


@case("CST109", dose="severe", data="tokens", net="gru")
def a_head_that_begins_sure_of_itself(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = TextRNN()
    if fault:
        nn.init.normal_(net.out.weight, std=30.0)
    opt = torch.optim.SGD(net.parameters(), lr=0.1 if fault else 0.3, momentum=0.9)
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(commands(seed), 10)


@case("CST109", dose="mild", data="tabular", net="mlp", accept=("CST103",))
def eight_layers_of_hundredths(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = dense(4, *[32] * 8, 2, act=nn.Tanh)
    for layer in net:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight)
            if fault:
                nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return ben(net, opt, F.mse_loss, arms(seed), 12, score=explained)
