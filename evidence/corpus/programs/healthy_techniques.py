"""Healthy: samplers, embeddings, two heads, averages of weights; written last of the programs."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from evidence.corpus.cases import case
from evidence.corpus.programs._data import (
    churn,
    cifar,
    housing,
    mnist,
    reviews,
    rng,
    scaled,
    sklearn_table,
    spiral,
)
from evidence.corpus.programs._loops import (
    Net,
    accuracy,
    loaders,
    mlp,
    posted,
    r2,
    reached,
    tutorial,
)


@case(None, data="sequence", net="gru")
@posted
def a_translator_with_two_optimizers(seed, fault):
    """Encoder and decoder of the well-known tutorial; what comes out is what went in, reversed."""
    x = torch.randint(1, 8, (500, 4), generator=rng(seed))
    y = x.flip(1)
    embed_in, encoder = nn.Embedding(8, 24), nn.GRU(24, 48, batch_first=True)
    decoder_in, decoder = nn.Embedding(8, 24), nn.GRU(24, 48, batch_first=True)
    out = nn.Linear(48, 8)
    first = nn.ModuleList([embed_in, encoder])
    second = nn.ModuleList([decoder_in, decoder, out])
    optimizers = [torch.optim.Adam(part.parameters(), lr=5e-3) for part in (first, second)]

    def forward(x, y):
        _, state = encoder(embed_in(x))
        shifted = torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1)
        return out(decoder(decoder_in(shifted), state)[0])

    for _ in range(25):
        for idx in torch.randperm(400).split(32):
            loss = F.cross_entropy(forward(x[idx], y[idx]).flatten(0, 1), y[idx].flatten())
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
    with torch.no_grad():
        return (forward(x[400:], y[400:]).argmax(-1) == y[400:]).float().mean().item()


@case(None, data="tabular", net="mlp")
@posted
def training_accuracy_printed_and_a_test_at_the_end(seed, fault):
    x, y, x_val, y_val = scaled(sklearn_table("breast_cancer", seed))
    net, criterion = mlp(30, 16, 2), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(25):
        net.train()
        for idx in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            criterion(net(x[idx]), y[idx]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(x)
            criterion(out, y)
            accuracy(out, y)
    return reached(net, x_val, y_val)


@case(None, data="tabular", net="mlp")
@posted
def rare_rows_drawn_more_often(seed, fault):
    x, y, x_val, y_val = churn(seed, 2400, rare=0.1, noise=0.2)
    weights = torch.where(y == 1, 9.0, 1.0)
    sampler = WeightedRandomSampler(weights.tolist(), len(y))
    loader = DataLoader(TensorDataset(x, y), batch_size=32, sampler=sampler)
    net, criterion = mlp(10, 48, 48, 2), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-4)
    for _ in range(12):
        net.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            criterion(net(xb), yb).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            criterion(net(x_val), y_val)
    return reached(net, x_val, y_val)


@case(None, data="images", net="cnn")
@posted
def noisy_shifted_images_in_training_only(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1347)
    net, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    train_loader, val_loader = loaders((x, y, x_val, y_val))
    for _ in range(14):
        net.train()
        for xb, yb in train_loader:
            shift = torch.randint(-1, 2, (2,)).tolist()
            xb = torch.roll(xb, shift, (2, 3)) + 0.1 * torch.randn_like(xb)
            optimizer.zero_grad()
            criterion(net(xb), yb).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for xb, yb in val_loader:
                criterion(net(xb), yb)
    return reached(net, x_val, y_val)


@case(None, data="tabular", net="mlp")
@posted
def categories_embedded_beside_numbers(seed, fault):
    g = rng(seed)
    shop, day = torch.randint(12, (1500,), generator=g), torch.randint(7, (1500,), generator=g)
    size, effect = torch.randn(12, generator=g), torch.randn(7, generator=g)
    price = torch.randn(1500, 1, generator=g)
    sales = size[shop] + effect[day] - 0.7 * price[:, 0] + 0.2 * torch.randn(1500, generator=g)

    class Sales(nn.Module):
        def __init__(self):
            super().__init__()
            self.shop, self.day = nn.Embedding(12, 4), nn.Embedding(7, 3)
            self.body = mlp(8, 32, 1)

        def forward(self, shop, day, price):
            return self.body(torch.cat([self.shop(shop), self.day(day), price], 1)).squeeze(1)

    net = Sales()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(15):
        for i in torch.randperm(1200).split(32):
            loss = F.l1_loss(net(shop[i], day[i], price[i]), sales[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return r2(net(shop[1200:], day[1200:], price[1200:]), sales[1200:])


@case(None, data="images", net="cnn")
@posted
def what_it_is_and_how_bright(seed, fault):
    """Two heads: ten classes, and the mean of the image."""
    x, y, x_val, y_val = mnist(seed, 1347)
    bright, trunk = x.mean((1, 2, 3)), nn.Sequential(nn.Flatten(), mlp(64, 64, 32), nn.ReLU())
    what, how = nn.Linear(32, 10), nn.Linear(32, 1)
    model = nn.ModuleDict({"trunk": trunk, "what": what, "how": how})
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(12):
        for idx in torch.randperm(len(x)).split(32):
            h = trunk(x[idx])
            loss = F.cross_entropy(what(h), y[idx])
            loss = loss + 5 * F.mse_loss(how(h).squeeze(1), bright[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return accuracy(what(trunk(x_val)), y_val)


@case(None, data="images", net="cnn")
@posted
def lower_rates_for_lower_layers(seed, fault):
    """Trained on some digits, then fine-tuned on the others with a rate for each group."""
    x, y, x_val, y_val = mnist(seed, 1347)
    net = Net()
    few, held = y < 5, y_val < 5
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    old = (x[few], y[few], x_val[held], y_val[held])
    tutorial(net, optimizer, nn.CrossEntropyLoss(), old, 8)
    lower = [*net.conv1.parameters(), *net.conv2.parameters()]
    upper = [*net.fc1.parameters(), *net.fc2.parameters()]
    groups = [{"params": lower, "lr": 3e-4}, {"params": upper, "lr": 4e-3}]
    data = (x, y, x_val, y_val)
    return tutorial(net, torch.optim.Adam(groups), nn.CrossEntropyLoss(), data, 10)


@case(None, data="tabular", net="mlp")
@posted
def a_running_mean_of_the_weights(seed, fault):
    data = scaled(housing(seed, 900), targets=True)
    x, y, x_val, y_val = data
    net = mlp(5, 48, 48, 1)
    slow = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(25):
        for idx in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            F.mse_loss(net(x[idx]), y[idx]).backward()
            optimizer.step()
            with torch.no_grad():
                for a, b in zip(slow.parameters(), net.parameters(), strict=True):
                    a.lerp_(b, 0.02)
        with torch.no_grad():
            F.mse_loss(slow(x_val), y_val)
    return reached(slow, x_val, y_val, r2)


@case(None, data="tabular", net="mlp")
@posted
def counts_by_a_poisson_loss(seed, fault):
    x = torch.randn(1500, 4, generator=rng(seed))
    rate = torch.exp(0.8 * x[:, 0] - 0.5 * x[:, 1] * x[:, 2] + 0.5)
    y = torch.poisson(rate.clamp(max=30), generator=rng(seed + 1))
    net, criterion = mlp(4, 32, 1), nn.PoissonNLLLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(12):
        for idx in torch.randperm(1200).split(32):
            optimizer.zero_grad()
            criterion(net(x[idx]).squeeze(1), y[idx]).backward()
            optimizer.step()
    with torch.no_grad():
        return r2(net(x[1200:]), rate[1200:].log())


@case(None, data="images", net="cnn")
@posted
def four_images_and_group_norm(seed, fault):
    net = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(144, 4)),
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), cifar(seed, 480, noise=0.3), 8, batch=4)


@case(None, data="control", net="mlp")
@posted
def deep_q_learning_on_a_corridor(seed, fault):
    """Seven rooms, a reward in the last; a target network copied now and then."""
    net = mlp(7, 32, 2)
    target = copy.deepcopy(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    rooms = torch.eye(7)
    for step in range(500):
        s, a = torch.randint(6, (32,)), torch.randint(2, (32,))
        s2 = (s + 2 * a - 1).clamp(0, 6)
        done = (s2 == 6).float()
        with torch.no_grad():
            goal = done + 0.9 * (1 - done) * target(rooms[s2]).max(1).values
        q = net(rooms[s]).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            target.load_state_dict(net.state_dict())
    with torch.no_grad():
        return (net(rooms[:6]).argmax(1) == 1).float().mean().item()


@case(None, data="tabular", net="mlp")
@posted
def double_precision_and_steps_by_hand(seed, fault):
    x, y, x_val, y_val = spiral(seed)
    x, x_val = x.double(), x_val.double()
    net = mlp(2, 64, 64, 3, act=nn.Tanh).double()
    for i in range(1500):
        idx = torch.randint(len(x), (32,))
        loss = F.cross_entropy(net(x[idx]), y[idx])
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= (0.3 if i < 1200 else 0.05) * p.grad
    return reached(net, x_val, y_val)


@case(None, data="text", net="cnn")
@posted
def words_by_convolutions(seed, fault):
    """Two widths of convolutions over embedded words, the largest of each kept."""
    x, y, x_val, y_val = reviews(seed, 2400)

    class TextCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(80, 16, padding_idx=0)
            self.convs = nn.ModuleList(nn.Conv1d(16, 24, k, padding=k // 2) for k in (1, 3))
            self.fc, self.drop = nn.Linear(48, 2), nn.Dropout(0.2)

        def forward(self, x):
            h = self.embed(x).transpose(1, 2)
            h = torch.cat([F.relu(conv(h)).sum(2) / 4 for conv in self.convs], 1)
            return self.fc(self.drop(h))

    net = TextCNN()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 8)
