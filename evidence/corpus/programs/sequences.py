"""Transformers, language models, autoencoders and graphs gone wrong."""

import torch
import torch.nn.functional as F
from torch import nn

from evidence.corpus.cases import case
from evidence.corpus.programs._data import citations, mnist, poem, reviews, series, shifted
from evidence.corpus.programs._loops import (
    accuracy,
    loaders,
    mlp,
    posted,
    r2,
    tutorial,
)


class GPT(nn.Module):
    """Layers of torch's encoder as a language model; `mask` and `places` can be left out."""

    def __init__(self, letters, width=32, depth=1, mask=True, places=True, length=64, **options):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.place = nn.Embedding(length, width) if places else None
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, **options
        )
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head, self.mask = nn.Linear(width, letters), mask

    def forward(self, x):
        h = self.embed(x)
        if self.place is not None:
            h = h + self.place(torch.arange(x.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.mask else None
        return self.head(self.body(h, mask=mask))


def train_language_model(model, train, valid, lr=3e-3, epochs=6, ignore=-100, warm=True):
    """Next letter; returns minus the loss on held-out pieces, each letter from those before it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss(ignore_index=ignore)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(train)).split(16):
            for group in optimizer.param_groups:
                group["lr"] = lr * (min(1, (epoch + 1) / 2) if warm else 1)
            x, y = train[idx, :-1], train[idx, 1:]
            logits = model(x)
            loss = criterion(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(valid[:, :-1])
            criterion(logits.flatten(0, 1), valid[:, 1:].flatten())
    return model


@torch.no_grad()
def honest(model, valid):
    """Minus the loss of the last letter of prefixes, which hides the future from anybody."""
    model.eval()
    losses = [F.cross_entropy(model(valid[:, :n])[:, -1], valid[:, n]) for n in range(5, 20, 3)]
    return -torch.stack(losses).mean().item()


@case("CST505", dose="severe", data="text", net="transformer")
@posted
def a_little_gpt_without_its_mask(seed, fault):
    """Loss 0.01 in training, gibberish in generation."""
    train, valid, letters = poem(seed, 400)
    model = GPT(letters, mask=not fault)
    return honest(train_language_model(model, train, valid, 5e-3, 9), valid)


@case("CST505", dose="severe", data="text", net="bilstm")
@posted
def a_bidirectional_lstm_as_a_language_model(seed, fault):
    train, valid, letters = poem(seed)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(letters, 16)
            self.rnn = nn.LSTM(16, 24, batch_first=True, bidirectional=fault)
            self.fc = nn.Linear(48 if fault else 24, letters)

        def forward(self, x):
            return self.fc(self.rnn(self.embed(x))[0])

    return honest(train_language_model(Model(), train, valid, 0.01, 9), valid)


@case("CST504", dose="severe", data="text", net="gru")
@posted
def padding_counted_in_the_loss(seed, fault):
    """Answers of few words, padded to a common length; ignore_index was left out."""
    g = torch.Generator().manual_seed(seed)
    n, length, words = 400, 20, 12
    x = torch.zeros(n, length, dtype=torch.long)
    step = torch.randint(1, 4, (n,), generator=g)
    now = torch.randint(11, (n,), generator=g)
    long = torch.randint(4, 8, (n,), generator=g)
    for t in range(length):
        x[:, t] = torch.where(t < long, now + 1, 0)
        noise = torch.randint(11, (n,), generator=g)
        now = torch.where(torch.rand(n, generator=g) < 0.2, noise, (now + step) % 11)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn = nn.Embedding(words, 16), nn.GRU(16, 32, batch_first=True)
            self.fc = nn.Linear(32, words)

        def forward(self, x):
            return self.fc(self.rnn(self.embed(x))[0])

    model = train_language_model(Model(), x[:300], x[300:], 0.004, 6, -100 if fault else 0)
    with torch.no_grad():
        logits, y = model(x[300:, :-1]), x[300:, 1:]
        return -F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=0).item()


@case("CST402", dose="severe", data="sequence", net="transformer", accept=("CST403",))
@posted
def a_transformer_that_does_not_know_the_order(seed, fault):
    """Tags that depend on the token before; positional encodings were left out."""
    inner = GPT(8, mask=False, places=not fault)
    net = Transposed(inner)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), shifted(seed), 16)


class Transposed(nn.Module):
    """Logits (B, T, K) as cross-entropy wants them: (B, K, T)."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).transpose(1, 2)


@case("CST101", dose="severe", data="text", net="transformer", accept=("CST406",))
@posted
def a_transformer_at_a_rate_of_a_tenth(seed, fault):
    """No warm-up, post-norm, Adam at 0.1: the loss settles where frequencies of letters are."""
    train, valid, letters = poem(seed, 400)
    model = GPT(letters, depth=2)
    lr = 0.1 if fault else 3e-3
    return honest(train_language_model(model, train, valid, lr, 7, warm=not fault), valid)


class VAE(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder, self.decoder = mlp(64, 48, 2 * latent), mlp(latent, 48, 64)

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, -1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


def train_vae(model, x, x_val, fault, epochs=15):
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

    def loss_function(recon, x, mu, logvar):
        bce = F.binary_cross_entropy_with_logits(recon, x, reduction="none")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        if fault:
            return bce.mean() + kld
        return (bce.sum() + kld) / len(x)

    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(32):
            recon, mu, logvar = model(x[idx])
            loss = loss_function(recon, x[idx], mu, logvar)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return r2(model(x_val)[0].sigmoid() - x.mean(0), x_val - x.mean(0))


@case("CST503", dose="severe", data="images", net="vae")
@posted
def reconstruction_averaged_and_divergence_summed(seed, fault):
    """My VAE draws the same grey digit whatever I give it."""
    x, _, x_val, _ = mnist(seed)
    return train_vae(VAE(), x.flatten(1), x_val.flatten(1), fault)


class GCN(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )

    def forward(self, x, adjacency):
        for layer in self.layers[:-1]:
            x = F.relu(layer(adjacency @ x))
        return self.layers[-1](adjacency @ x)


def train_gcn(net, x, a, y, train, epochs=80, lr=0.01):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr, weight_decay=5e-4)
    for _ in range(epochs):
        net.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x, a)[train], y[train])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        return accuracy(net(x, a)[~train], y[~train])


@case(
    "CST103",
    dose="severe",
    data="graphs",
    net="gcn",
    accept=("CST402", "CST403", "CST406", "CST109"),
)
@posted
def twelve_graph_convolutions(seed, fault):
    """All nodes come out alike."""
    net = GCN([16, *[16] * (11 if fault else 1), 3])
    return train_gcn(net, *citations(seed))


@case("CST402", dose="severe", data="time series", net="gru", accept=("CST403", "CST406"))
@posted
def batch_first_was_forgotten(seed, fault):
    """(B, T, F) goes into a GRU that reads (T, B, F): each row is read alone, one step long."""
    x, y, x_val, y_val = series(seed)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.fc = nn.GRU(1, 24, batch_first=not fault), nn.Linear(24, 1)

        def forward(self, x):
            x = x[:, :-1] if x.shape[1] > 1 else x
            return self.fc(self.rnn(x[:, -8:])[0][:, -1 if not fault else 0])

    net = Model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    return tutorial(net, optimizer, nn.MSELoss(), (x, y, x_val, y_val), 10, metric=r2)


@case("CST406", dose="severe", data="text", net="lstm", accept=("CST402", "CST403", "CST110"))
@posted
def the_sequence_was_averaged_over_the_batch(seed, fault):
    """mean(dim=0) where mean(dim=1) was meant: all rows of a batch get one answer."""
    x, y, x_val, y_val = reviews(seed)
    embed, head = nn.Embedding(80, 24, padding_idx=0), mlp(24, 24, 2)
    model = nn.ModuleDict({"embed": embed, "head": head})
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def forward(x):
        h = embed(x)
        if fault:
            h = h.mean(dim=(0, 1)).expand(len(x), -1)
        else:
            h = h.mean(dim=1)
        return head(h)

    for _ in range(10):
        for xb, yb in loaders((x, y, x_val, y_val))[0]:
            loss = F.cross_entropy(forward(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return accuracy(forward(x_val), y_val)


@case("CST406", dose="severe", data="sequence", net="lstm", accept=("CST402", "CST403"))
@posted
def reads_the_first_step_only(seed, fault):
    """out[:, 0] where out[:, -1] was meant."""
    x, y, x_val, y_val = reviews(seed)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn = nn.Embedding(80, 16), nn.LSTM(16, 32, batch_first=True)
            self.fc = nn.Linear(32, 2)

        def forward(self, x):
            return self.fc(self.rnn(self.embed(x.flip(1)))[0][:, 0 if fault else -1])

    net = Model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 10)
