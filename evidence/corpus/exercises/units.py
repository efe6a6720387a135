"""Units that are dead, pinned or alike, and weights that start badly: CST106 to 109."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import clouds, digits, friedman, sentences, waves
from evidence.corpus.exercises._loops import accuracy, batches, r2, train, verdict
from evidence.corpus.exercises._nets import Recurrent, SmallCNN, mlp


@case("CST106", dose="severe", data="images", net="cnn")
def the_bias_of_a_rare_class_on_every_layer(seed: int, fault: bool = True) -> Diagnosis:
    """A bias of -4.6, meant for the output alone, was given to all layers."""
    torch.manual_seed(seed)
    net = SmallCNN()
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear) and fault:
            nn.init.constant_(layer.bias, -4.6)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    return train(net, optimizer, nn.CrossEntropyLoss(), digits(seed), epochs=10, tell="module")


@case("CST106", dose="mild", data="tabular", net="mlp")
def training_goes_on_after_the_units_died(seed: int, fault: bool = True) -> Diagnosis:
    """An earlier run killed most units; this one, at a sensible rate, started from its weights."""
    torch.manual_seed(seed)
    data = friedman(seed)
    net = mlp(8, 64, 64, 1)
    if fault:
        with torch.no_grad():
            net[0].bias[:62] -= 6.0
            net[2].bias[:58] -= 6.0
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, F.mse_loss, data, epochs=20, score=r2, report="loss")


# Weights of unit spread are why the units are pinned: the initialisation is as right an answer.
@case("CST107", dose="severe", data="images", net="mlp", accept=("CST109",))
def unit_normal_weights_under_tanh(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(64, 128, 128, 128, 10, activation=nn.Tanh)
    for layer in (net[0], net[2], net[4]):
        if fault:
            nn.init.normal_(layer.weight, std=1.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = digits(seed, flat=True)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=15, tell="module")


class Steep(nn.Module):
    """A network whose author wanted sharp decisions."""

    def __init__(self, steepness: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(10, 48), nn.Linear(48, 48)
        self.head = nn.Linear(48, 4)
        self.steepness = steepness

    def forward(self, x: Tensor) -> Tensor:
        h = torch.sigmoid(self.steepness * self.first(x))
        h = torch.sigmoid(self.steepness * self.second(h))
        return self.head(h)


@case("CST107", dose="mild", data="tabular", net="mlp")
def sigmoids_made_steep(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Steep(200.0 if fault else 2.0)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    data = clouds(seed)
    return train(net, optimizer, F.cross_entropy, data, epochs=25, tell="all", report="loss")


@case("CST108", dose="severe", data="images", net="cnn")
def every_filter_the_same(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = SmallCNN()
    for weight in net.parameters():
        if fault:
            nn.init.constant_(weight, 0.02)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, F.cross_entropy, digits(seed), epochs=8)


@case("CST108", dose="severe", data="tabular", net="mlp")
def weights_of_zero(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(8, 32, 32, 1, activation=nn.Tanh)
    for layer in net:
        if isinstance(layer, nn.Linear) and fault:
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    data = friedman(seed)
    return train(net, optimizer, nn.MSELoss(), data, epochs=15, score=r2, tell="module")


@case("CST108", dose="mild", data="series", net="gru")
def a_recurrent_layer_filled_with_one_number(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Recurrent(nn.GRU, 1, 16, 3)
    for name, weight in net.rnn.named_parameters():
        if fault and name.startswith("weight"):
            nn.init.constant_(weight, 0.1)
    if fault:
        nn.init.constant_(net.rnn.bias_ih_l0, 0.0)
        nn.init.constant_(net.rnn.bias_hh_l0, 0.0)
        nn.init.constant_(net.head.weight, 0.1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    return train(
        net, optimizer, nn.CrossEntropyLoss(), waves(seed, 300, 20), epochs=12, tell="module"
    )


@case("CST109", dose="severe", data="images", net="mlp")
def relu_layers_of_unit_normal_weights(seed: int, fault: bool = True) -> Diagnosis:
    """The first loss is in the thousands."""
    torch.manual_seed(seed)
    net = mlp(64, 128, 128, 128, 10)
    for layer in net:
        if isinstance(layer, nn.Linear) and fault:
            nn.init.normal_(layer.weight, std=1.0)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    data = digits(seed, flat=True)
    return train(net, optimizer, F.cross_entropy, data, epochs=10, tell="all")


# Signals that shrink forward shrink backward too: the vanishing gradient is as right an answer.
@case("CST109", dose="severe", data="images", net="cnn", accept=("CST103",))
def a_deep_stack_started_at_a_hundredth(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for channels in [1, *[12] * 5]:
        layers += [nn.Conv2d(channels, 12, 3, 2 if channels == 1 else 1, 1), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(192, 10))
    for layer in net:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            if fault:
                nn.init.normal_(layer.weight, std=0.01)
            else:
                nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    data = digits(seed, n_train=600)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=8, tell="module")


class Tied(nn.Module):
    """A language model whose output layer is the embedding itself."""

    def __init__(self, letters: int, spread: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 96)
        nn.init.normal_(self.embed.weight, std=spread)
        self.gru = nn.GRU(96, 96, batch_first=True)

    def forward(self, letters: Tensor) -> Tensor:
        e = self.embed(letters)
        h = e + self.gru(e)[0]
        return F.linear(h, self.embed.weight)


@case("CST109", dose="mild", data="text", net="gru")
def an_embedding_tied_to_the_output(seed: int, fault: bool = True) -> Diagnosis:
    """Started with unit spread, the first loss is many times the logarithm of the alphabet."""
    torch.manual_seed(seed)
    text, letters = sentences(seed, n=160)
    net = Tied(letters, 1.0 if fault else 0.1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer, task="lm")
    for _ in range(5):
        for x, y in batches(text[:120, :-1], text[:120, 1:], 8):
            logits = net(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            logits, y = net(text[120:, :-1]), text[120:, 1:]
            doctor.epoch(F.cross_entropy(logits.flatten(0, 1), y.flatten()).item())
    return verdict(doctor, accuracy(logits, y))
