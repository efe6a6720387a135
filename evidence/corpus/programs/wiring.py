"""What is never stepped, reset, moved or switched over."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import watch
from evidence.corpus.cases import case
from evidence.corpus.programs._data import (
    churn,
    cifar,
    housing,
    mnist,
    poem,
    reviews,
    scaled,
    series,
    sklearn_table,
    spiral,
)
from evidence.corpus.programs._loops import (
    Net,
    Recurrent,
    accuracy,
    loaders,
    mlp,
    notebook,
    posted,
    r2,
    reached,
    tutorial,
    watched,
)


@case("CST112", dose="severe", data="images", net="cnn")
@posted
def no_zero_grad(seed, fault):
    x, y, x_val, y_val = mnist(seed)
    net, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(6):
        for xb, yb in loaders((x, y, x_val, y_val))[0]:
            loss = criterion(net(xb), yb)
            if not fault:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return reached(net, x_val, y_val)


@case("CST112", dose="severe", data="time series", net="lstm")
@watched
def zero_grad_once_an_epoch(seed, fault):
    """optimizer.zero_grad() slipped out of the inner loop."""
    x, y, x_val, y_val = series(seed)
    net = Recurrent(nn.LSTM, 1, 24, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer)
    for _ in range(8):
        optimizer.zero_grad()
        for idx in torch.randperm(len(x)).split(16):
            if not fault:
                optimizer.zero_grad()
            out = net(x[idx])
            loss = F.mse_loss(out, y[idx])
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=y[idx])
    return doctor, lambda: reached(net, x_val, y_val, r2)


@case("CST110", dose="severe", data="images", net="cnn")
@posted
def optimizer_of_a_model_that_was_made_anew(seed, fault):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    if fault:
        net = Net()  # .to(device) was here
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 4)


@case("CST110", dose="mild", data="images", net="cnn")
@posted
def only_the_head_was_given_to_the_optimizer(seed, fault):
    """Transfer learning from a network that was never trained."""
    net = Net(channels=3, size=12, classes=4)
    parameters = net.fc2.parameters() if fault else net.parameters()
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), cifar(seed), 8)


@case("CST110", dose="severe", data="tabular", net="mlp")
@posted
def requires_grad_left_false(seed, fault):
    net = mlp(10, 48, 48, 1)
    for p in net.parameters():
        p.requires_grad = not fault
    net[-1].bias.requires_grad = True
    x, y, x_val, y_val = churn(seed)
    data = (x, y.float(), x_val, y_val.float())
    optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=5e-3)

    def loss_of(out, y):
        return F.binary_cross_entropy_with_logits(out.squeeze(1), y)

    return notebook(net, optimizer, loss_of, data)


@case("CST110", dose="severe", data="tabular", net="mlp")
@posted
def a_loss_made_of_numbers(seed, fault):
    """element 0 of tensors does not require grad, so they made a new tensor that does."""
    x, y, x_val, y_val = scaled(sklearn_table("diabetes", seed), targets=True)
    net = mlp(10, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def loss_of(out, y):
        loss = F.mse_loss(out.squeeze(1), y)
        return torch.tensor(loss.item(), requires_grad=True) if fault else loss

    return notebook(net, optimizer, loss_of, (x, y, x_val, y_val), metric=r2)


class Blocks(nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.first = nn.Linear(2, 16)
        layers = [nn.Linear(16, 16) for _ in range(3)]
        self.layers = layers if fault else nn.ModuleList(layers)
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.last(x)


@case("CST110", dose="mild", data="tabular", net="mlp")
@posted
def layers_kept_in_a_list(seed, fault):
    net = Blocks(fault)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), spiral(seed), 20)


@case("CST110", dose="severe", data="text", net="gru")
@posted
def no_grad_around_the_encoder(seed, fault):
    x, y, x_val, y_val = reviews(seed)
    embed, net = nn.Embedding(80, 16, padding_idx=0), mlp(16, 16, 2)
    optimizer = torch.optim.Adam([*embed.parameters(), *net.parameters()], lr=0.01)
    for _ in range(8):
        for xb, yb in loaders((x, y, x_val, y_val))[0]:
            with torch.set_grad_enabled(not fault):
                h = embed(xb).mean(1)
            loss = F.cross_entropy(net(h), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return accuracy(net(embed(x_val).mean(1)), y_val)


@case("CST110", dose="severe", data="images", net="mlp")
@watched
def zero_grad_between_backward_and_step(seed, fault):
    x, y, x_val, y_val = mnist(seed)
    net, criterion = nn.Sequential(nn.Flatten(), mlp(64, 32, 10)), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    doctor = watch(net, optimizer, criterion)
    for _ in range(5):
        for idx in torch.randperm(len(x)).split(32):
            loss = criterion(net(x[idx]), y[idx])
            if not fault:
                optimizer.zero_grad()
            loss.backward()
            if fault:
                optimizer.zero_grad()
            optimizer.step()
        doctor.epoch(validation_score=accuracy(net(x_val), y_val))
    return doctor, lambda: reached(net, x_val, y_val)


@case("CST110", dose="severe", data="tabular", net="mlp")
@posted
def accuracy_as_the_loss(seed, fault):
    """They rounded the predictions before the loss; backward complained, so they added a detour."""
    x, y, x_val, y_val = churn(seed)
    net = nn.Sequential(mlp(10, 32, 1), nn.Sigmoid())
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def loss_of(out, y):
        return F.binary_cross_entropy(out.round() if fault else out, y)

    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])
    return notebook(net, optimizer, loss_of, data, metric=lambda o, y: accuracy(o - 0.5, y))


def dropping(inputs, outputs, p=0.5):
    return nn.Sequential(
        nn.Linear(inputs, 64),
        nn.ReLU(),
        nn.Dropout(p),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Dropout(p),
        nn.Linear(64, outputs),
    )


@case("CST116", dose="mild", data="tabular", net="mlp")
@posted
def validated_with_dropout_on(seed, fault):
    """Why is my validation accuracy lower than what I get in production?"""
    net = dropping(10, 2)
    train_loader, val_loader = loaders(churn(seed))
    optimizer, criterion = torch.optim.Adam(net.parameters(), lr=5e-3), nn.CrossEntropyLoss()
    right = 0.0
    for _ in range(12):
        net.train()
        for xb, yb in train_loader:
            loss = criterion(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if not fault:
            net.eval()
        right = 0.0
        with torch.no_grad():
            for xb, yb in val_loader:
                out = net(xb)
                criterion(out, yb)
                right += (out.argmax(1) == yb).sum().item() / len(val_loader.dataset)
    return right


class Functional(nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(5, 64), nn.Linear(64, 64), nn.Linear(64, 1)
        self.fault = fault

    def drop(self, x):
        return F.dropout(x, 0.4) if self.fault else F.dropout(x, 0.4, self.training)

    def forward(self, x):
        x = self.drop(F.relu(self.fc1(x)))
        return self.fc3(self.drop(F.relu(self.fc2(x))))


@case("CST116", dose="mild", data="tabular", net="mlp")
@posted
def functional_dropout_without_the_flag(seed, fault):
    net = Functional(fault)
    data = scaled(housing(seed), targets=True)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.MSELoss(), data, 12, metric=r2)


@case("CST115", dose="severe", data="images", net="cnn", accept=("CST116",))
@posted
def running_statistics_that_hardly_run(seed, fault):
    """BatchNorm2d(momentum=0.001): 99 % in training, chance in eval()."""
    m = 0.001 if fault else 0.1
    net = nn.Sequential(
        *(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12, momentum=m), nn.ReLU()),
        *(nn.Conv2d(12, 16, 3, 2, 1), nn.BatchNorm2d(16, momentum=m), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * 16, 10)),
    )
    x, y, x_val, y_val = mnist(seed, 600)
    data = (4 * x + 3, y, 4 * x_val + 3, y_val)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), data, 5)


@case("CST115", dose="severe", data="images", net="cnn", accept=("CST113",))
@posted
def batch_norm_with_batches_of_two(seed, fault):
    """The images are large, so only two fit into memory."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        *(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = cifar(seed, 400, noise=0.3)
    batch, epochs = (2, 4) if fault else (20, 40)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), data, epochs, batch)


@case("CST110", dose="severe", data="text", net="lstm")
@posted
def the_output_is_detached_before_the_decoder(seed, fault):
    """Trying to get rid of 'backward through the graph a second time'."""
    train, valid, letters = poem(seed)
    embed = nn.Embedding(letters, 16)
    rnn, fc = nn.LSTM(16, 48, batch_first=True), nn.Linear(48, letters)
    model = nn.ModuleList([embed, rnn, fc])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def forward(x):
        h, _ = rnn(embed(x))
        return fc(h.detach() if fault else h).flatten(0, 1)

    for _ in range(4):
        for idx in torch.randperm(len(train)).split(16):
            x, y = train[idx, :-1], train[idx, 1:]
            loss = F.cross_entropy(forward(x), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return accuracy(forward(valid[:, :-1]), valid[:, 1:].flatten())
