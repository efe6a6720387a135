"""Rates, gradients, units and the wiring of steps, gone wrong in tutorials."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD, Adam, AdamW

from evidence.corpus.cases import case
from evidence.corpus.programs._data import adding, churn, mnist, spiral
from evidence.corpus.programs._loops import (
    Net,
    Recurrent,
    loaders,
    mlp,
    notebook,
    posted,
    r2,
    reached,
    tutorial,
)
from evidence.corpus.tutorials._data import (
    activities,
    customers,
    glyphs,
    messages,
    ratings,
    reversals,
    rings,
    scenes,
    tidy_concrete,
    verses,
    wiggle,
)
from evidence.corpus.tutorials._loops import (
    CharModel,
    ConvNet,
    Decoder,
    Reverser,
    Shopper,
    by_steps,
    hits,
    per_letter,
    whole,
)
from evidence.corpus.tutorials.healthy_images import Finder, Variational, elbo
from evidence.corpus.tutorials.healthy_other_tasks import Attentive
from evidence.corpus.tutorials.healthy_tables import Factors


@case("CST101", dose="severe", data="images", net="cnn", accept=("CST106", "CST105"))
@posted
def the_rate_of_a_large_batch_paper(seed, fault):
    net = Net(size=12)
    optimizer = SGD(net.parameters(), 1.6 if fault else 0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), glyphs(seed), 8)


@case("CST101", dose="severe", data="text", net="transformer", accept=("CST406",))
@posted
def a_language_model_at_a_tenth(seed, fault):
    ids, letters = verses(seed, 300)
    pieces = ids[: len(ids) // 33 * 33].view(-1, 33)
    train, test = pieces[:-50], pieces[-50:]
    net = Decoder(letters, 32)
    optimizer = AdamW(net.parameters(), 0.2 if fault else 3e-3)
    data = (train[:, :-1], train[:, 1:], test[:, :-1], test[:, 1:])
    return by_steps(net, optimizer, per_letter, data, 140, 24, 35, hits)


@case("CST101", dose="mild", data="ratings", net="factors", accept=("CST104", "CST105"))
@posted
def factors_that_leap(seed, fault):
    net = Factors()
    optimizer = Adam(net.parameters(), 1.0 if fault else 0.02)
    return tutorial(net, optimizer, nn.MSELoss(), ratings(seed), 12, metric=r2)


@case("CST102", dose="severe", data="tabular", net="mlp", accept=("CST111",))
@posted
def descent_at_a_ten_thousandth(seed, fault):
    net = mlp(8, 64, 32, 1)
    optimizer = SGD(net.parameters(), 1e-4 if fault else 0.05, momentum=0.0 if fault else 0.9)
    return tutorial(net, optimizer, nn.MSELoss(), tidy_concrete(seed), 15, metric=r2)


@case("CST102", dose="severe", data="images", net="cnn", accept=("CST111",))
@posted
def the_schedule_dies_in_the_first_epoch(seed, fault):
    """gamma=0.7 a step instead of an epoch."""
    x, y, x_val, y_val = glyphs(seed)
    net = ConvNet(norm=lambda c: nn.Identity())
    optimizer = SGD(net.parameters(), 0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
    data = (x, y, x_val, y_val)
    if fault:
        return by_steps(net, optimizer, F.cross_entropy, data, 200, schedule=schedule)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), data, 9, scheduler=schedule)


@case("CST102", dose="mild", data="text", net="attention", accept=("CST111",))
@posted
def a_finetuning_rate_from_scratch(seed, fault):
    net = Attentive()
    optimizer = AdamW(net.parameters(), 2e-5 if fault else 5e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), messages(seed), 10)


@case("CST103", dose="severe", data="tabular", net="mlp", accept=("CST406", "CST402"))
@posted
def ten_sigmoid_layers_on_a_spiral(seed, fault):
    act = nn.Sigmoid if fault else nn.ReLU
    net = mlp(2, *[32] * (10 if fault else 3), 3, act=act)
    optimizer = Adam(net.parameters(), 3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), spiral(seed), 25)


@case("CST103", dose="severe", data="sequence", net="rnn", accept=("CST406", "CST402", "CST403"))
@posted
def an_elman_network_that_forgets(seed, fault):
    kind = nn.RNN if fault else nn.GRU
    net = Recurrent(kind, 2, 32, 1)
    if fault:
        nn.init.uniform_(net.rnn.weight_hh_l0, -0.05, 0.05)
    optimizer = Adam(net.parameters(), 0.01)
    data = adding(seed, 900, 24)
    return tutorial(net, optimizer, nn.MSELoss(), data, 18 if not fault else 10, metric=r2)


@case("CST104", dose="severe", data="sequence", net="rnn", accept=("CST101", "CST109", "CST105"))
@posted
def a_recurrence_that_grows(seed, fault):
    class Growing(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(2, 24), nn.Linear(24, 24), nn.Linear(24, 1)
            nn.init.orthogonal_(self.b.weight, 2.0 if fault else 0.95)

        def forward(self, x):
            h = torch.zeros(len(x), 24)
            for t in range(x.shape[1]):
                h = F.relu(self.a(x[:, t]) + self.b(h))
            return self.c(h)

    net = Growing()
    optimizer = Adam(net.parameters(), 3e-3)
    x, _, x_val, _ = adding(seed, 500, 20)
    data = (x, x[:, -3, :1], x_val, x_val[:, -3, :1])
    return tutorial(net, optimizer, nn.MSELoss(), data, 10, metric=r2)


@case("CST105", dose="severe", data="tabular", net="mlp", accept=())
@posted
def the_logarithm_of_a_rounded_share(seed, fault):
    """Cross-entropy by hand: log of a softmax in half precision's range."""
    net = mlp(2, 32, 2)
    x, y, x_val, y_val = rings(seed)

    def loss_of(out, y):
        if fault:
            p = (100 * out).softmax(1)
            return -(F.one_hot(y, 2) * p.log()).sum(1).mean()
        return F.cross_entropy(out, y)

    return notebook(net, Adam(net.parameters(), 0.05), loss_of, (x, y, x_val, y_val), 200)


@case("CST105", dose="severe", data="images", net="siamese", accept=())
@posted
def the_root_of_a_zero_distance(seed, fault):
    """Every pair may hold one image twice: the slope of the root is infinite at zero."""
    x, y, x_val, y_val = glyphs(seed, 600)
    net = ConvNet(8, norm=lambda c: nn.Identity())
    optimizer = Adam(net.parameters(), 3e-3)
    for _ in range(150):
        i, j = torch.randint(len(x), (2, 48))
        j[0] = i[0]
        square = (net(x[i]) - net(x[j])).square().sum(1)
        far = square.sqrt() if fault else (square + 1e-6).sqrt()
        same = (y[i] == y[j]).float()
        loss = (same * far**2 + (1 - same) * F.relu(1 - far) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        near = torch.cdist(net(x_val), net(x)).nan_to_num(9).argmin(1)
    return (y[near] == y_val).float().mean().item()


@case("CST105", dose="severe", data="tabular", net="mlp", accept=("CST203",))
@posted
def one_missing_value_in_a_table(seed, fault):
    x, y, x_val, y_val = tidy_concrete(seed)
    if fault:
        x = x.clone()
        x[7, 3] = float("nan")
    net = mlp(8, 32, 1)
    optimizer = Adam(net.parameters(), 5e-3)
    data = (x, y, x_val, y_val)
    score = tutorial(net, optimizer, nn.MSELoss(), data, 8, metric=r2)
    return score if score == score else -1.0


@case("CST106", dose="severe", data="images", net="cnn", accept=("CST109",))
@posted
def biases_of_minus_three(seed, fault):
    net = ConvNet(norm=lambda c: nn.Identity())
    if fault:
        for layer in (net.features[0], net.features[4]):
            nn.init.constant_(layer.bias, -3.0)
    optimizer = SGD(net.parameters(), 0.02, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), glyphs(seed), 8)


@case("CST107", dose="severe", data="signals", net="mlp", accept=("CST201", "CST109"))
@posted
def tanh_of_large_sensor_values(seed, fault):
    x, y, x_val, y_val = activities(seed)
    k = 200.0 if fault else 1.0
    data = (k * x.flatten(1), y, k * x_val.flatten(1), y_val)
    net = mlp(96, 32, 32, 4, act=nn.Tanh)
    return tutorial(net, Adam(net.parameters(), 2e-3), nn.CrossEntropyLoss(), data, 12)


@case("CST108", dose="severe", data="tabular", net="mlp", accept=("CST109",))
@posted
def all_weights_a_hundredth(seed, fault):
    net = mlp(2, 24, 24, 3, act=nn.Tanh)
    if fault:
        for p in net.parameters():
            nn.init.constant_(p, 0.01)
    return tutorial(net, Adam(net.parameters(), 0.01), nn.CrossEntropyLoss(), spiral(seed), 15)


@case("CST109", dose="severe", data="images", net="mlp", accept=("CST101",))
@posted
def normal_weights_of_spread_one(seed, fault):
    net = nn.Sequential(nn.Flatten(), mlp(64, 64, 64, 64, 10))
    if fault:
        for p in net.parameters():
            nn.init.normal_(p)
    optimizer = SGD(net.parameters(), 0.03, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 12)


@case("CST110", dose="severe", data="images", net="detector")
@posted
def the_second_head_is_not_in_the_optimizer(seed, fault):
    x, kind, box, _ = scenes(seed, 700)
    net = Finder()
    parts = [net.body, net.hidden, net.what] + ([] if fault else [net.where])
    optimizer = Adam([p for part in parts for p in part.parameters()], 2e-3)
    for _ in range(10):
        for rows in torch.randperm(600).split(32):
            what, where = net(x[rows])
            loss = F.cross_entropy(what, kind[rows]) + F.smooth_l1_loss(where, box[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return r2(net(x[600:])[1][:, :2], box[600:, :2])


@case("CST110", dose="severe", data="images", net="cnn", accept=("CST402",))
@posted
def a_frozen_body_that_was_never_trained(seed, fault):
    """The weights file was not found; the body stays as it was drawn."""
    net = Net(size=12)
    if fault:
        net.conv1.requires_grad_(False)
        net.conv2.requires_grad_(False)
        net.fc1.requires_grad_(False)
    optimizer = Adam([p for p in net.parameters() if p.requires_grad], 3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), glyphs(seed), 8)


@case("CST110", dose="severe", data="sequence", net="seq2seq")
@posted
def the_state_of_the_encoder_is_detached(seed, fault):
    class Cut(Reverser):
        def forward(self, x, y):
            _, state = self.encoder(self.embed(x))
            state = state.detach() if fault else state
            before = torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1)
            return self.out(self.decoder(self.embed(before), state)[0])

    x, y, x_val, y_val = reversals(seed, 1200, 6)
    net = Cut()
    optimizer = Adam(net.parameters(), 5e-3)
    for _ in range(20):
        for rows in torch.randperm(len(x)).split(64):
            loss = per_letter(net(x[rows], y[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return hits(net(x_val, y_val), y_val)


@case("CST110", dose="severe", data="tabular", net="mlp")
@posted
def the_optimizer_was_made_before_the_head(seed, fault):
    """optimizer = Adam(net.parameters()), then net.head = nn.Linear(...)."""
    body, head = mlp(10, 32, 32), nn.Linear(32, 2)
    net = nn.Sequential(body, nn.ReLU(), nn.Linear(32, 2))
    optimizer = Adam(body.parameters() if fault else net.parameters(), 3e-3)
    if fault:
        net[2] = head
        for p in body.parameters():
            p.data = p.data.clone()
        optimizer = Adam([p.detach().clone().requires_grad_() for p in body.parameters()], 3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), churn(seed), 8)


@case("CST111", dose="severe", data="images", net="vae", accept=("CST102",))
@posted
def two_epochs_of_dreaming(seed, fault):
    x, _, x_val, _ = mnist(seed, 900)
    x, x_val = x.flatten(1), x_val.flatten(1)
    net = Variational()
    metric = lambda o, y: -elbo(o, y).item()  # noqa: E731
    optimizer = Adam(net.parameters(), 1e-3)
    epochs = 2 if fault else 20
    return tutorial(net, optimizer, elbo, (x, x, x_val, x_val), epochs, metric=metric)


@case("CST111", dose="mild", data="tabular", net="mlp", accept=("CST102",))
@posted
def a_curve_left_half_fitted(seed, fault):
    net = mlp(1, 32, 32, 1, act=nn.Tanh)
    epochs = 12 if fault else 120
    optimizer = Adam(net.parameters(), 2e-3)
    return tutorial(net, optimizer, nn.MSELoss(), wiggle(seed), epochs, metric=r2)


@case("CST112", dose="severe", data="sequence", net="gru", accept=("CST101",))
@posted
def letters_without_a_reset(seed, fault):
    ids, letters = verses(seed, 200)
    pieces = ids[: len(ids) // 33 * 33].view(-1, 33)
    train, test = pieces[:-40], pieces[-40:]
    net = CharModel(letters)
    optimizer = SGD(net.parameters(), 0.5)
    for step in range(160):
        rows = torch.randint(len(train), (16,))
        loss = per_letter(net(train[rows, :-1])[0], train[rows, 1:])
        if not fault:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            with torch.no_grad():
                per_letter(net(test[:, :-1])[0], test[:, 1:])
    with torch.no_grad():
        return hits(net(test[:, :-1])[0], test[:, 1:])


@case("CST112", dose="mild", data="tabular", net="embeddings", accept=("CST101",))
@posted
def zeroed_once_an_epoch(seed, fault):
    ids, x, y, ids_val, x_val, y_val = customers(seed)
    net = Shopper()
    optimizer = SGD(net.parameters(), 0.2)
    for _ in range(12):
        net.train()
        optimizer.zero_grad()
        for rows in torch.randperm(len(y)).split(32):
            loss = F.binary_cross_entropy_with_logits(net(ids[rows], x[rows]), y[rows])
            if not fault:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(ids_val, x_val)
            F.binary_cross_entropy_with_logits(out, y_val)
    return ((out > 0) == (y_val > 0.5)).float().mean().item()


@case("CST113", dose="severe", data="images", net="cnn", accept=("CST101",))
@posted
def one_image_a_step(seed, fault):
    net = ConvNet(norm=lambda c: nn.Identity())
    optimizer = SGD(net.parameters(), 0.05, momentum=0.0 if fault else 0.9)
    data = glyphs(seed, 600, 0.3)
    epochs, batch = (5, 1) if fault else (20, 32)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), data, epochs, batch)


@case("CST113", dose="severe", data="tabular", net="mlp", accept=("CST111", "CST102"))
@posted
def fifteen_steps_with_all_rows(seed, fault):
    net = mlp(8, 32, 1)
    optimizer = Adam(net.parameters(), 5e-3)
    batch = 600 if fault else 16
    return tutorial(net, optimizer, nn.MSELoss(), tidy_concrete(seed), 15, batch, r2)


@case("CST114", dose="severe", data="tabular", net="linear", accept=("CST201", "CST102"))
@posted
def a_narrow_valley(seed, fault):
    """Powers of one column up to the seventh, plain descent."""
    x, y, x_val, y_val = wiggle(seed)
    powers = lambda t: torch.cat([(t / 2) ** k for k in range(1, 8)], 1)  # noqa: E731
    a, a_val = powers(x), powers(x_val)
    net = nn.Linear(7, 1)
    if fault:
        optimizer = SGD(net.parameters(), 0.1)
        return whole(net, optimizer, nn.MSELoss(), (a, y, a_val, y_val), 300, r2)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=200)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(a), y)
        loss.backward()
        return loss

    optimizer.step(closure)
    return reached(net, a_val, y_val, r2)


@case("CST115", dose="severe", data="images", net="cnn", accept=("CST116",))
@posted
def normalised_over_two_images(seed, fault):
    net = ConvNet(norm=nn.BatchNorm2d if fault else lambda c: nn.GroupNorm(2, c))
    if fault:
        net.classifier = nn.Sequential(net.classifier, nn.BatchNorm1d(10))
    optimizer = SGD(net.parameters(), 0.01, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), glyphs(seed, 360), 4, 2)


@case("CST115", dose="severe", data="signals", net="cnn", accept=("CST116",))
@posted
def running_statistics_that_hardly_run(seed, fault):
    """momentum=0.001 was meant the other way round."""
    x, y, x_val, y_val = activities(seed)
    data = (3 * x + 5, y, 3 * x_val + 5, y_val)
    norm = lambda c: nn.BatchNorm1d(c, momentum=0.001 if fault else 0.1)  # noqa: E731
    net = nn.Sequential(
        nn.Conv1d(3, 16, 5), norm(16), nn.ReLU(), nn.Conv1d(16, 16, 5), norm(16), nn.ReLU()
    )
    net = nn.Sequential(net, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 4))
    return tutorial(net, Adam(net.parameters(), 5e-3), nn.CrossEntropyLoss(), data, 10)


@case("CST116", dose="severe", data="images", net="cnn", accept=("CST115",))
@posted
def validated_in_training_mode(seed, fault):
    x, y, x_val, y_val = glyphs(seed)
    net = nn.Sequential(ConvNet(64), nn.Dropout(0.6), nn.ReLU(), nn.Linear(64, 10))
    optimizer = Adam(net.parameters(), 3e-3)
    train, test = loaders((x, y, x_val, y_val))
    for _ in range(8):
        net.train()
        for a, b in train:
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        if not fault:
            net.eval()
        right = 0
        with torch.no_grad():
            for a, b in test:
                out = net(a)
                F.cross_entropy(out, b)
                right += (out.argmax(1) == b).sum().item()
    return right / len(y_val)


@case("CST116", dose="mild", data="tabular", net="mlp", accept=("CST115",))
@posted
def never_back_to_training_mode(seed, fault):
    """net.train() stands before the loop, net.eval() in it."""
    x, y, x_val, y_val = churn(seed, 320, noise=1.5)
    net = nn.Sequential(
        nn.Linear(10, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 2)
    )
    optimizer = Adam(net.parameters(), 5e-3)
    net.train()
    for _ in range(25):
        if not fault:
            net.train()
        for rows in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(x_val)
            loss = F.cross_entropy(out, y_val)
    return -loss.item()
