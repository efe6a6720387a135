"""Sequences, graphs, policies, equations, and odd ways to write a training: all of them fine."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import LambdaLR

from evidence.corpus.cases import case
from evidence.corpus.programs._data import mnist, reviews, rng, series, spiral
from evidence.corpus.programs._loops import accuracy, mlp, posted, r2, tutorial
from evidence.corpus.tutorials._data import activities, clubs, messages, reversals, rings, verses
from evidence.corpus.tutorials._loops import (
    CharModel,
    Decoder,
    Reverser,
    by_steps,
    hits,
    per_letter,
)


@case(None, data="text", net="gru")
@posted
def letters_with_a_state_handed_on(seed, fault):
    """Truncated backpropagation: the state goes on, its graph does not."""
    ids, letters = verses(seed, 300)
    rows = ids[: len(ids) // 16 * 16].view(16, -1)
    train, test = rows[:14], rows[14:]
    net = CharModel(letters)
    optimizer = Adam(net.parameters(), 1e-2)
    for _ in range(4):
        net.train()
        state = None
        for at in range(0, train.shape[1] - 25, 24):
            out, state = net(train[:, at : at + 24], state)
            state = state.detach()
            loss = per_letter(out, train[:, at + 1 : at + 25])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(test[:, :-1])[0]
            per_letter(out, test[:, 1:])
    return hits(out, test[:, 1:])


@case(None, data="sequence", net="seq2seq")
@posted
def digits_turned_round(seed, fault):
    x, y, x_val, y_val = reversals(seed, 1600)
    net = Reverser()
    optimizer = Adam(net.parameters(), 5e-3)
    for _ in range(18):
        net.train()
        for rows in torch.randperm(len(x)).split(64):
            loss = per_letter(net(x[rows], y[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(x_val, y_val)
            per_letter(out, y_val)
    return hits(out, y_val)


@case(None, data="text", net="transformer")
@posted
def a_language_model_with_warmup(seed, fault):
    ids, letters = verses(seed, 400)
    pieces = ids[: len(ids) // 33 * 33].view(-1, 33)
    train, test = pieces[:-60], pieces[-60:]
    net = Decoder(letters, 32)
    optimizer = AdamW(net.parameters(), 4e-3, weight_decay=0.01)
    up_and_down = lambda s: min((s + 1) / 30, 0.5 + 0.5 * math.cos(math.pi * s / 300))  # noqa: E731
    schedule = LambdaLR(optimizer, up_and_down)
    data = (train[:, :-1], train[:, 1:], test[:, :-1], test[:, 1:])
    return by_steps(net, optimizer, per_letter, data, 300, 24, 60, hits, schedule)


@case(None, data="text", net="word vectors")
@posted
def words_and_their_company(seed, fault):
    """Skip-gram with negative samples; words of one topic should come out alike."""
    x, y, *_ = messages(seed, 900)
    inside, outside = nn.Embedding(60, 8), nn.Embedding(60, 8)
    nn.init.normal_(inside.weight, std=0.1)
    nn.init.zeros_(outside.weight)
    optimizer = Adam([*inside.parameters(), *outside.parameters()], 0.02)
    for _ in range(400):
        rows = torch.randint(len(x), (128,))
        a, b = x[rows, torch.randint(14, (128,))], x[rows, torch.randint(14, (128,))]
        wrong = x.flatten()[torch.randint(x.numel(), (128, 4))]
        v = inside(a)
        good = F.logsigmoid((v * outside(b)).sum(1))
        bad = F.logsigmoid(-(v[:, None] * outside(wrong)).sum(2)).sum(1)
        loss = -(good + bad).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        v = F.normalize(inside.weight[20:])
        like = (v @ v.T).fill_diagonal_(-1)
    topic = torch.arange(40) // 10
    return (topic[like.argmax(1)] == topic).float().mean().item()


class Packed(nn.Module):
    """Reads every sentence as far as it goes."""

    def __init__(self, words=80):
        super().__init__()
        self.embed = nn.Embedding(words, 16, padding_idx=0)
        self.rnn = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(48, 2)

    def forward(self, x):
        long = (x > 0).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embed(x), long, batch_first=True, enforce_sorted=False
        )
        _, (h, _) = self.rnn(packed)
        return self.fc(torch.cat([h[0], h[1]], 1))


@case(None, data="text", net="lstm")
@posted
def moods_of_packed_sentences(seed, fault):
    net = Packed()
    optimizer = Adam(net.parameters(), 5e-3, weight_decay=1e-4)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), reviews(seed, 1600), 8, 64)


@case(None, data="signals", net="cnn")
@posted
def what_the_wearer_does(seed, fault):
    net = nn.Sequential(
        nn.Conv1d(3, 16, 5, padding=2),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(16, 32, 5, padding=2),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32, 4),
    )
    return tutorial(net, Adam(net.parameters(), 3e-3), nn.CrossEntropyLoss(), activities(seed), 20)


@case(None, data="time series", net="tcn")
@posted
def a_forecast_by_dilated_convolutions(seed, fault):
    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv1d(1 if i == 0 else 16, 16, 2) for i in range(4))
            for i, conv in enumerate(self.convs):
                conv.dilation = (2**i,)
            self.head = nn.Linear(16, 1)

        def forward(self, x):
            h = x.transpose(1, 2)
            for conv in self.convs:
                h = F.gelu(conv(h))
            return self.head(h[:, :, -1])

    net = Forecast()
    optimizer = AdamW(net.parameters(), 3e-3)
    return tutorial(net, optimizer, nn.MSELoss(), series(seed, 700), 12, metric=r2)


class Attentive(nn.Module):
    def __init__(self, words=60, dim=24):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.score, self.fc = nn.Linear(dim, 1), nn.Linear(dim, 4)

    def forward(self, x):
        h = self.embed(x)
        return self.fc((self.score(h).softmax(1) * h).sum(1))


@case(None, data="text", net="attention")
@posted
def topics_by_weighted_words(seed, fault):
    net = Attentive()
    optimizer = AdamW(net.parameters(), 5e-3, weight_decay=0.1)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), messages(seed, 1200), 18)


@case(None, data="graphs", net="gcn")
@posted
def clubs_by_their_friendships(seed, fault):
    x, a, y, known = clubs(seed)
    w1, w2 = nn.Linear(12, 24), nn.Linear(24, 4)
    optimizer = Adam([*w1.parameters(), *w2.parameters()], 0.01, weight_decay=5e-3)

    def forward(training):
        h = F.relu(w1(a @ x))
        return w2(a @ F.dropout(h, 0.4, training))

    for epoch in range(120):
        loss = F.cross_entropy(forward(True)[known], y[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            with torch.no_grad():
                F.cross_entropy(forward(False)[~known], y[~known])
    with torch.no_grad():
        return accuracy(forward(False)[~known], y[~known])


@case(None, data="control", net="policy")
@posted
def the_best_of_five_arms(seed, fault):
    """REINFORCE with a running baseline; the score is the mean reward."""
    means = torch.tensor([0.1, 0.3, 0.2, 0.9, 0.5])
    policy = mlp(1, 16, 5)
    optimizer = Adam(policy.parameters(), 0.01)
    baseline = 0.0
    for _ in range(300):
        choice = torch.distributions.Categorical(logits=policy(torch.ones(16, 1)))
        action = choice.sample()
        reward = means[action] + 0.3 * torch.randn(16)
        loss = -(choice.log_prob(action) * (reward - baseline)).mean()
        baseline = 0.9 * baseline + 0.1 * reward.mean().item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return (policy(torch.ones(1, 1)).softmax(1) @ means).item()


@case(None, data="control", net="q-network")
@posted
def values_of_a_corridor(seed, fault):
    """Temporal differences with a target network; the right end pays one."""
    q, target = mlp(8, 32, 2), mlp(8, 32, 2)
    target.load_state_dict(q.state_dict())
    optimizer = Adam(q.parameters(), 5e-3)
    state = torch.randint(8, (2000,), generator=rng(seed))
    action = torch.randint(2, (2000,), generator=rng(seed + 1))
    after = (state + 2 * action - 1).clamp(0, 7)
    eye = torch.eye(8)
    for step in range(500):
        i = torch.randint(2000, (64,))
        done = (after[i] == 7).float()
        with torch.no_grad():
            aim = done + 0.9 * (1 - done) * target(eye[after[i]]).max(1).values
        value = q(eye[state[i]]).gather(1, action[i, None])[:, 0]
        loss = F.smooth_l1_loss(value, aim)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            target.load_state_dict(q.state_dict())
    with torch.no_grad():
        return (q(eye[:7]).argmax(1) == 1).float().mean().item()


@case(None, data="equation", net="pinn")
@posted
def decay_from_its_equation(seed, fault):
    """u' = -2u, u(0) = 1 on [0, 2]; the score is one less the largest error."""
    net = mlp(1, 24, 24, 1, act=nn.Tanh)
    optimizer = Adam(net.parameters(), 5e-3)
    for _ in range(500):
        t = (2 * torch.rand(64, 1)).requires_grad_()
        u = net(t)
        du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
        start = (net(torch.zeros(1, 1)) - 1).square().mean()
        loss = (du + 2 * u).square().mean() + start
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    t = torch.linspace(0, 2, 50)[:, None]
    with torch.no_grad():
        return 1 - (net(t) - torch.exp(-2 * t)).abs().max().item()


@case(None, data="tabular", net="mlp")
@posted
def gradients_row_by_row(seed, fault):
    """torch.func: the mean of clipped gradients of single rows, handed to an optimizer."""
    x, y, x_val, y_val = rings(seed)
    net = mlp(2, 24, 24, 2)
    optimizer = SGD(net.parameters(), 0.2, momentum=0.9)

    def loss_of(weights, a, b):
        out = functional_call(net, weights, (a[None],))
        return F.cross_entropy(out, b[None])

    each = vmap(grad(loss_of), in_dims=(None, 0, 0))
    for _ in range(200):
        rows = torch.randint(len(x), (64,))
        weights = {k: p.detach() for k, p in net.named_parameters()}
        found = each(weights, x[rows], y[rows])
        norm = sum(g.flatten(1).square().sum(1) for g in found.values()).sqrt()
        shrink = (1.0 / norm).clamp(max=1)
        for k, p in net.named_parameters():
            p.grad = torch.einsum("n,n...->...", shrink, found[k]) / len(rows)
        optimizer.step()
    with torch.no_grad():
        return accuracy(net(x_val), y_val)


class Round(torch.autograd.Function):
    """Signs forward, straight through backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() < 1)


@case(None, data="images", net="binary")
@posted
def hidden_units_of_plus_and_minus_one(seed, fault):
    class Binary(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.norm, self.b = nn.Linear(64, 96), nn.BatchNorm1d(96), nn.Linear(96, 10)

        def forward(self, x):
            return self.b(Round.apply(self.norm(self.a(x.flatten(1)))))

    net = Binary()
    return tutorial(net, Adam(net.parameters(), 3e-3), nn.CrossEntropyLoss(), mnist(seed, 1347), 10)


@case(None, data="signals", net="complex")
@posted
def a_filter_with_complex_weights(seed, fault):
    """The spectrum times complex weights should undo a known smoothing."""
    g = rng(seed)
    clean = torch.randn(400, 32, generator=g)
    kernel = torch.fft.rfft(torch.tensor([0.6, 0.25, 0.1, 0.05] + [0.0] * 28))
    blurred = torch.fft.irfft(torch.fft.rfft(clean) * kernel, n=32)
    w = nn.Parameter(torch.ones(17, dtype=torch.cfloat))
    optimizer = Adam([w], 0.05)
    for _ in range(250):
        rows = torch.randint(300, (32,))
        out = torch.fft.irfft(torch.fft.rfft(blurred[rows]) * w, n=32)
        loss = F.mse_loss(out, clean[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        out = torch.fft.irfft(torch.fft.rfft(blurred[300:]) * w, n=32)
    return r2(out, clean[300:])


@case(None, data="trajectories", net="ode")
@posted
def a_spiral_followed_by_euler(seed, fault):
    """A network gives the speed; ten Euler steps should end where the true path ends."""
    g = rng(seed)
    start = 2 * torch.rand(400, 2, generator=g) - 1
    turn = torch.tensor([[-0.2, 2.0], [-2.0, -0.2]])
    end = start @ torch.matrix_exp(turn).T
    speed = mlp(2, 32, 2, act=nn.Tanh)

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.speed = speed

        def forward(self, z):
            for _ in range(10):
                z = z + 0.1 * self.speed(z)
            return z

    data = (start[:300], end[:300], start[300:], end[300:])
    net = Flow()
    return by_steps(net, Adam(net.parameters(), 0.01), nn.MSELoss(), data, 300, metric=r2)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.net, self.flip = mlp(1, 32, 2), flip

    def forward(self, x):
        a, b = (x[:, 1:], x[:, :1]) if self.flip else (x[:, :1], x[:, 1:])
        scale, shift = self.net(a).chunk(2, 1)
        scale = scale.tanh()
        b = b * scale.exp() + shift
        return torch.cat([b, a] if self.flip else [a, b], 1), scale[:, 0]


@case(None, data="tabular", net="flow")
@posted
def the_density_of_a_banana(seed, fault):
    """A flow of six couplings; the score is the mean log-density of rows held out."""
    g = rng(seed)
    z = torch.randn(1200, 2, generator=g)
    x = torch.stack([z[:, 0], 0.5 * z[:, 1] + z[:, 0] ** 2 - 1], 1)
    layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(6))
    optimizer = Adam(layers.parameters(), 3e-3)

    def loss_of(x):
        total = 0.0
        for layer in layers:
            x, log_det = layer(x)
            total = total + log_det
        return -(total - 0.5 * x.square().sum(1) - math.log(2 * math.pi)).mean()

    for step in range(350):
        loss = loss_of(x[torch.randint(900, (64,))])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            with torch.no_grad():
                loss_of(x[900:])
    with torch.no_grad():
        return -loss_of(x[900:]).item()


@case(None, data="sets", net="deep sets")
@posted
def the_largest_of_a_set(seed, fault):
    class Sets(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = mlp(1, 32, 32), mlp(32, 32, 1)

        def forward(self, x):
            return self.outer(F.relu(self.inner(x)).amax(1))

    x = torch.randn(900, 8, 1, generator=rng(seed))
    y = x.amax(1)
    net = Sets()
    data = (x[:700], y[:700], x[700:], y[700:])
    return tutorial(net, Adam(net.parameters(), 3e-3), nn.MSELoss(), data, 12, metric=r2)


@case(None, data="tabular", net="mlp")
@posted
def a_rate_halved_on_a_plateau(seed, fault):
    x, y, x_val, y_val = spiral(seed, 900)
    net = mlp(2, 64, 64, 3, act=nn.ELU)
    optimizer = Adam(net.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
    for _ in range(30):
        net.train()
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(x_val)
            schedule.step(F.cross_entropy(out, y_val))
    return accuracy(out, y_val)


@case(None, data="tabular", net="mlp")
@posted
def few_validation_rows_and_a_test_at_the_end(seed, fault):
    """Forty rows to validate on every epoch, two hundred for one test at the end."""
    x, y, x_test, y_test = rings(seed, 900)
    x, y, x_val, y_val = x[:-40], y[:-40], x[-40:], y[-40:]
    net = mlp(2, 32, 32, 2)
    tutorial(net, Adam(net.parameters(), 5e-3), nn.CrossEntropyLoss(), (x, y, x_val, y_val), 15)
    net.eval()
    with torch.no_grad():
        out = net(x_test)
        F.cross_entropy(out, y_test)
    return accuracy(out, y_test)
