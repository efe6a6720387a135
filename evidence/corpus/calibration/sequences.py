"""Faults of generative models and sequences: CST503 to CST505."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case


def pixels(seed):
    X = torch.tensor(load_digits().data / 16, dtype=torch.float32)
    return X[torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))]


def markov(seed, rows=400, length=12, tokens=8):
    """Sequences where each token has a usual successor, taken six times out of ten."""
    g = torch.Generator().manual_seed(seed)
    usual = torch.randperm(tokens, generator=g)
    x = torch.randint(tokens, (rows, length + 1), generator=g)
    for t in range(length):
        x[:, t + 1] = torch.where(torch.rand(rows, generator=g) < 0.6, usual[x[:, t]], x[:, t + 1])
    return x


def sentences(seed, rows=500, length=16, shortest=3, longest=7, tokens=15):
    """Padded rows (0 is padding) of tokens from 1, and their lengths."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(1, tokens, (rows, length), generator=g)
    lengths = torch.randint(shortest, longest + 1, (rows,), generator=g)
    return x * (torch.arange(length) < lengths[:, None]), lengths


# ------------------------------------------------------------------ CST503 posterior-collapse


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc21 = nn.Linear(64, latent)
        self.fc22 = nn.Linear(64, latent)
        self.fc3 = nn.Linear(latent, 64)
        self.fc4 = nn.Linear(64, 64)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


@case("CST503", dose="severe", data="image", net="vae")
def a_mean_error_beside_a_summed_divergence(seed: int) -> Diagnosis:
    """The error is averaged over rows and pixels, the divergence summed over both."""
    torch.manual_seed(seed)
    X = pixels(seed)
    model = VAE()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer, task="vae")
    for _ in range(20):
        for i in range(0, 1500, 100):
            x = X[i : i + 100]
            recon, mu, logvar = model(x)
            loss = F.mse_loss(recon, x) - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=(recon, mu, logvar), targets=x)
        with torch.no_grad():
            recon, mu, logvar = model(X[1500:])
        doctor.epoch(validation_score=-F.mse_loss(recon, X[1500:]).item())
    return doctor.diagnosis()


@case("CST503", dose="severe", data="image", net="vae")
def a_divergence_weighted_thirtyfold(seed: int) -> Diagnosis:
    def loss_function(recon_x, x, mu, logvar, beta=30.0):
        bce = F.binary_cross_entropy(recon_x, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (bce + beta * kld) / len(x)

    torch.manual_seed(seed)
    X = pixels(seed)
    model = VAE(latent=6)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer)
    for _ in range(15):
        model.train()
        for (x,) in DataLoader(TensorDataset(X[:1500]), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            recon, mu, logvar = model(x)
            loss = loss_function(recon, x, mu, logvar)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            recon, mu, logvar = model(X[1500:])
            val = loss_function(recon, X[1500:], mu, logvar).item()
        doctor.epoch(validation_loss=val)
    return doctor.diagnosis()


@case("CST503", dose="mild", data="image", net="vae")
def a_likelihood_wider_than_the_pixels(seed: int) -> Diagnosis:
    """Pixels spread by a third, yet are scored as if six tenths of noise lay on them."""

    class GaussianVAE(nn.Module):
        def __init__(self, latent=10):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2 * latent))
            self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.Tanh(), nn.Linear(64, 64))

        def forward(self, x):
            mu, log_sigma = self.encoder(x).chunk(2, dim=1)
            z = mu + log_sigma.exp() * torch.randn_like(mu)
            return self.decoder(z), mu, log_sigma

    torch.manual_seed(seed)
    X = pixels(seed)
    sigma = 0.6
    vae = GaussianVAE()
    optimizer = optim.Adam(vae.parameters(), lr=3e-3)
    with watch(vae, optimizer, task="vae") as doctor:
        for _ in range(20):
            for idx in torch.randperm(1500).split(75):
                mean, mu, log_sigma = vae(X[idx])
                nll = 0.5 * ((mean - X[idx]) ** 2).sum(1) / sigma**2
                kl = 0.5 * (mu**2 + torch.exp(2 * log_sigma) - 2 * log_sigma - 1).sum(1)
                loss = (nll + kl).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                doctor.log(loss=loss)
    return doctor.diagnosis()


@case("CST503", dose="severe", data="text", net="gru")
def a_decoder_too_strong_to_need_the_code(seed: int) -> Diagnosis:
    """Each sentence counts up from a random token: given the last token, the code says nothing."""

    class SentenceVAE(nn.Module):
        def __init__(self, vocab=12, dim=16, hidden=32, latent=4):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim)
            self.encoder = nn.GRU(dim, hidden, batch_first=True)
            self.to_mu = nn.Linear(hidden, latent)
            self.to_logvar = nn.Linear(hidden, latent)
            self.to_hidden = nn.Linear(latent, hidden)
            self.decoder = nn.GRU(dim, hidden, batch_first=True)
            self.out = nn.Linear(hidden, vocab)

        def forward(self, x):
            _, h = self.encoder(self.embed(x))
            mu, logvar = self.to_mu(h[-1]), self.to_logvar(h[-1])
            z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
            h0 = torch.tanh(self.to_hidden(z)).unsqueeze(0)
            out, _ = self.decoder(self.embed(x[:, :-1]), h0)  # teacher forcing
            return self.out(out), mu, logvar

    torch.manual_seed(seed)
    step = torch.randint(1, 4, (600, 1))
    x = (torch.randint(0, 12, (600, 1)) + step * torch.arange(9)) % 12
    model = SentenceVAE()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer, task="vae")
    for _ in range(12):
        for idx in torch.randperm(480).split(48):
            logits, mu, logvar = model(x[idx])
            nll = F.cross_entropy(logits.flatten(0, 1), x[idx, 1:].flatten())
            kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
            loss = nll + kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=(logits, mu, logvar), targets=x[idx])
        with torch.no_grad():
            logits, mu, logvar = model(x[480:])
            nll = F.cross_entropy(logits.flatten(0, 1), x[480:, 1:].flatten())
        doctor.epoch(validation_loss=nll.item())
    return doctor.diagnosis()


# --------------------------------------------------------------------- CST504 padding-learned


@case("CST504", dose="severe", data="sequence", net="lstm")
def a_tagger_that_is_paid_for_tagging_padding(seed: int) -> Diagnosis:
    """The tag of a token depends on the next one; three quarters of the positions are padding."""

    class Tagger(nn.Module):
        def __init__(self, vocab=15, tags=4):
            super().__init__()
            self.embed = nn.Embedding(vocab, 16, padding_idx=0)
            self.lstm = nn.LSTM(16, 16, batch_first=True, bidirectional=True)
            self.fc = nn.Linear(32, tags)

        def forward(self, x):
            out, _ = self.lstm(self.embed(x))
            return self.fc(out)

    torch.manual_seed(seed)
    x, _ = sentences(seed, length=20)
    after = F.pad(x[:, 1:], (0, 1))
    y = ((x + after) % 3 + 1) * (x > 0)  # 0 tags padding
    model = Tagger()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    doctor = watch(model, optimizer, criterion)
    for _ in range(10):
        for idx in torch.randperm(400).split(40):
            optimizer.zero_grad()
            out = model(x[idx])
            loss = criterion(out.view(-1, 4), y[idx].view(-1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        with torch.no_grad():
            out = model(x[400:])
        score = (out.argmax(-1) == y[400:]).float().mean().item()
        doctor.epoch(criterion(out.view(-1, 4), y[400:].view(-1)).item(), score)
    return doctor.diagnosis()


@case("CST504", dose="severe", data="text", net="gru")
def a_language_model_of_padding(seed: int) -> Diagnosis:
    class LanguageModel(nn.Module):
        def __init__(self, vocab):
            super().__init__()
            self.embedding = nn.Embedding(vocab, 16)
            self.gru = nn.GRU(16, 32, batch_first=True)
            self.linear = nn.Linear(32, vocab)

        def forward(self, x):
            out, _ = self.gru(self.embedding(x))
            return self.linear(out).transpose(1, 2)  # (N, V, T)

    torch.manual_seed(seed)
    chain = markov(seed, rows=500, length=15) + 1
    lengths = torch.randint(3, 7, (500, 1))
    text = chain * (torch.arange(16) < lengths)  # 0 pads
    x, y = text[:, :-1], text[:, 1:]
    model = LanguageModel(9)
    optimizer = optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    doctor = watch(model, optimizer, task="lm")
    for _ in range(10):
        for xb, yb in DataLoader(TensorDataset(x[:400], y[:400]), batch_size=40, shuffle=True):
            optimizer.zero_grad()
            out = model(xb)
            loss = F.cross_entropy(out, yb)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=yb)
        with torch.no_grad():
            doctor.epoch(validation_loss=F.cross_entropy(model(x[400:]), y[400:]).item())
    return doctor.diagnosis()


@case("CST504", dose="mild", data="sequence", net="transformer")
def padding_hidden_from_attention_but_not_from_the_loss(seed: int) -> Diagnosis:
    """Each token is tagged by whether it lies above the mean of its sentence."""

    class Encoder(nn.Module):
        def __init__(self, vocab=15, dim=32):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim, padding_idx=0)
            layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.head = nn.Linear(dim, 3)

        def forward(self, x):
            h = self.encoder(self.embed(x), src_key_padding_mask=(x == 0))
            return self.head(h)

    torch.manual_seed(seed)
    x, lengths = sentences(seed, rows=600, length=16, shortest=4, longest=10)
    above = x > x.sum(1, keepdim=True) / lengths[:, None]
    y = torch.where(x > 0, 1 + above.long(), 0)
    model = Encoder()
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    doctor = watch(model, optimizer)
    for _ in range(10):
        for idx in torch.randperm(500).split(50):
            logits = model(x[idx])
            loss = F.cross_entropy(logits.reshape(-1, 3), y[idx].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            logits = model(x[500:])
        doctor.epoch(validation_score=(logits.argmax(-1) == y[500:]).float().mean().item())
    return doctor.diagnosis()


@case("CST504", dose="severe", data="sequence", net="gru")
def an_error_averaged_over_padded_steps(seed: int) -> Diagnosis:
    """Running sums of short series, padded with zeros to twenty-four steps."""

    class Integrator(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(1, 16, batch_first=True)
            self.head = nn.Linear(16, 1)

        def forward(self, x):
            h, _ = self.gru(x)
            return self.head(h)

    torch.manual_seed(seed)
    lengths = torch.randint(4, 9, (400, 1))
    mask = (torch.arange(24) < lengths).float().unsqueeze(-1)
    x = torch.randn(400, 24, 1) * mask
    y = 0.5 * x.cumsum(1) * mask
    model = Integrator()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer)
    for _ in range(12):
        for idx in torch.randperm(320).split(40):
            pred = model(x[idx])
            loss = ((pred - y[idx]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=pred, targets=y[idx], inputs=x[idx])
        with torch.no_grad():
            doctor.epoch(validation_loss=((model(x[320:]) - y[320:]) ** 2).mean().item())
    return doctor.diagnosis()


# ------------------------------------------------------------------------- CST505 future-leak


def next_token_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@case("CST505", dose="severe", data="text", net="transformer")
def a_language_model_without_a_mask(seed: int) -> Diagnosis:
    from castalia.diagnose import examine

    class TransformerLM(nn.Module):
        def __init__(self, vocab=8, dim=32, length=12):
            super().__init__()
            self.tokens = nn.Embedding(vocab, dim)
            self.positions = nn.Embedding(length, dim)
            layer = nn.TransformerEncoderLayer(dim, 2, 64, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2)
            self.head = nn.Linear(dim, vocab)

        def forward(self, x):
            h = self.tokens(x) + self.positions(torch.arange(x.size(1)))
            return self.head(self.encoder(h))

    torch.manual_seed(seed)
    text = markov(seed)
    x, y = text[:, :-1], text[:, 1:]
    model = TransformerLM()
    optimizer = optim.Adam(model.parameters(), lr=0.003)
    for _ in range(12):
        for idx in torch.randperm(320).split(40):
            optimizer.zero_grad()
            next_token_loss(model(x[idx]), y[idx]).backward()
            optimizer.step()
    return examine(
        model,
        next_token_loss,
        (x[:320], y[:320]),
        (x[320:], y[320:]),
        optimizer=optimizer,
        task="lm",
        seconds=5,
    )


@case("CST505", dose="severe", data="text", net="lstm")
def a_language_model_that_reads_both_ways(seed: int) -> Diagnosis:
    from castalia.diagnose import examine

    class CharLSTM(nn.Module):
        def __init__(self, vocab=8):
            super().__init__()
            self.embed = nn.Embedding(vocab, 12)
            self.lstm = nn.LSTM(12, 24, batch_first=True, bidirectional=True)
            self.fc = nn.Linear(48, vocab)

        def forward(self, x):
            out, _ = self.lstm(self.embed(x))
            return self.fc(out)

    torch.manual_seed(seed)
    text = markov(seed, length=10)
    train = TensorDataset(text[:320, :-1], text[:320, 1:])
    valid = TensorDataset(text[320:, :-1], text[320:, 1:])
    model = CharLSTM()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    for _ in range(10):
        for xb, yb in DataLoader(train, batch_size=40, shuffle=True):
            loss = next_token_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return examine(model, next_token_loss, train, valid, optimizer=optimizer, task="lm", seconds=5)


@case("CST505", dose="severe", data="text", net="cnn")
def convolutions_padded_on_both_sides(seed: int) -> Diagnosis:
    class ConvLM(nn.Module):
        def __init__(self, vocab=8, dim=32):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim)
            self.conv1 = nn.Conv1d(dim, dim, 3, padding=1)
            self.conv2 = nn.Conv1d(dim, dim, 3, padding=1)
            self.out = nn.Conv1d(dim, vocab, 1)

        def forward(self, x):
            h = self.embed(x).transpose(1, 2)
            h = F.relu(self.conv1(h))
            h = F.relu(self.conv2(h))
            return self.out(h)  # (N, V, T)

    torch.manual_seed(seed)
    text = markov(seed)
    x, y = text[:, :-1], text[:, 1:]
    model = ConvLM()
    optimizer = optim.AdamW(model.parameters(), lr=0.003)
    doctor = watch(model, optimizer, task="lm")
    for _ in range(15):
        model.train()
        for idx in torch.randperm(320).split(32):
            out = model(x[idx])
            loss = F.cross_entropy(out, y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=y[idx], inputs=x[idx])
        model.eval()
        with torch.no_grad():
            out = model(x[320:])
        score = (out.argmax(1) == y[320:]).float().mean().item()
        doctor.epoch(F.cross_entropy(out, y[320:]).item(), score)
    return doctor.diagnosis()


@case("CST505", dose="severe", data="text", net="transformer")
def a_causal_mask_off_by_one(seed: int) -> Diagnosis:
    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.qkv = nn.Linear(dim, 3 * dim)
            self.proj = nn.Linear(dim, dim)
            self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

        def forward(self, x):
            q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
            T = x.shape[1]
            scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
            mask = torch.tril(torch.ones(T, T), diagonal=1)
            scores = scores.masked_fill(mask == 0, float("-inf"))
            x = x + self.proj(scores.softmax(dim=-1) @ v)
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self, vocab=8, dim=32, length=12):
            super().__init__()
            self.wte = nn.Embedding(vocab, dim)
            self.wpe = nn.Embedding(length, dim)
            self.blocks = nn.Sequential(Block(dim), Block(dim))
            self.ln_f = nn.LayerNorm(dim)
            self.lm_head = nn.Linear(dim, vocab, bias=False)

        def forward(self, idx):
            x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
            return self.lm_head(self.ln_f(self.blocks(x)))

    torch.manual_seed(seed)
    text = markov(seed)
    x, y = text[:, :-1], text[:, 1:]
    model = GPT()
    optimizer = optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.01)
    doctor = watch(model, optimizer, task="lm")
    for _ in range(12):
        for idx in torch.randperm(320).split(40):
            logits = model(x[idx])
            loss = F.cross_entropy(logits.view(-1, 8), y[idx].view(-1))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=next_token_loss(model(x[320:]), y[320:]).item())
    return doctor.diagnosis()
