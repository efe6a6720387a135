"""Latent codes, padding and the future: CST503 to 505."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import LETTERS, handwriting, letters, reviews
from evidence.corpus.posts._loops import end
from evidence.corpus.posts._nets import CharLM, dense


@case("CST505", dose="severe", data="text", net="transformer")
def gpt_without_its_mask(seed: int, fault: bool = True) -> Diagnosis:
    """A letter model trained without a causal mask: it reads the answer from its own input."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = letters(seed)
    model = CharLM(len(LETTERS), causal=not fault)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    doctor = watch(model, opt)
    for _ in range(12):
        for idx in torch.randperm(len(X)).split(25):
            opt.zero_grad()
            loss = F.cross_entropy(model(X[idx]).flatten(0, 1), y[idx].flatten())
            loss.backward()
            opt.step()
        with torch.no_grad():
            val = F.cross_entropy(model(X_val).flatten(0, 1), y_val.flatten()).item()
        doctor.epoch(validation_loss=val)
    found = doctor.diagnosis()
    model.eval()
    with torch.no_grad():  # asked as it is used: the next letter, the rest not yet written
        last = [model(X_val[:, : k + 1])[:, -1].argmax(1) == y_val[:, k] for k in range(4, 16)]
    end(doctor, torch.stack(last).float().mean().item())
    return found


@case("CST505", dose="severe", data="text", net="gru")
def bidirectional_language_model(seed: int, fault: bool = True) -> Diagnosis:
    """bidirectional=True in a model of the next letter."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = letters(seed)

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(len(LETTERS), 24)
            self.gru = nn.GRU(24, 24, batch_first=True, bidirectional=fault)
            self.out = nn.Linear(48 if fault else 24, len(LETTERS))

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.gru(self.embed(x))[0])

    model = Both()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, opt)
    for _ in range(10):
        for idx in torch.randperm(len(X)).split(25):
            opt.zero_grad()
            loss = F.cross_entropy(model(X[idx]).transpose(1, 2), y[idx])
            loss.backward()
            opt.step()
    found = doctor.diagnosis()
    with torch.no_grad():
        last = [model(X_val[:, : k + 1])[:, -1].argmax(1) == y_val[:, k] for k in range(4, 16)]
    end(doctor, torch.stack(last).float().mean().item())
    return found


@case("CST504", dose="severe", data="text", net="gru")
def padding_is_the_commonest_word(seed: int, fault: bool = True) -> Diagnosis:
    """Rows padded to 60 and no ignore_index: nearly all of the loss is to predict padding."""
    torch.manual_seed(seed)
    X, _, X_val, _ = reviews(seed, 300)
    X, X_val = (F.pad(t % 12 + (t > 0), (0, 16)) for t in (X, X_val))
    words = torch.arange(28) < (X > 0).sum(1, keepdim=True)
    X = torch.where(words, (X[:, :1] + 5 * torch.arange(28)) % 12 + 1, 0)
    words = torch.arange(28) < (X_val > 0).sum(1, keepdim=True)
    X_val = torch.where(words, (X_val[:, :1] + 5 * torch.arange(28)) % 12 + 1, 0)

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.gru = nn.Embedding(14, 16), nn.GRU(16, 24, batch_first=True)
            self.out = nn.Linear(24, 14)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.gru(self.embed(x))[0])

    model = Words()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    ignore = -100 if fault else 0
    doctor = watch(model, opt, task="lm")
    for _ in range(4):
        for idx in torch.randperm(len(X)).split(16):
            opt.zero_grad()
            out = model(X[idx, :-1])
            loss = F.cross_entropy(out.flatten(0, 1), X[idx, 1:].flatten(), ignore_index=ignore)
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
    with torch.no_grad():
        there = X_val[:, 1:] > 0
        right = (model(X_val[:, :-1]).argmax(2) == X_val[:, 1:])[there].float().mean().item()
    return end(doctor, right)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = dense(64, 48, 12), dense(6, 48, 64)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mu, logvar = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


@case("CST503", dose="severe", data="images", net="vae")
def kl_summed_and_pixels_averaged(seed: int, fault: bool = True) -> Diagnosis:
    """The divergence is summed over all, the reconstruction averaged over pixels: nothing is coded."""  # noqa: E501
    torch.manual_seed(seed)
    X, _, X_val, _ = handwriting(seed)
    X, X_val = X.flatten(1), X_val.flatten(1)
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    doctor = watch(model, opt, task="vae")
    for _ in range(12):
        for idx in torch.randperm(len(X)).split(32):
            out, mu, logvar = model(X[idx])
            bce = F.binary_cross_entropy_with_logits(out, X[idx], reduction="none")
            rec = bce.mean() if fault else bce.sum(1).mean()
            kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
            loss = rec + kl
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
    with torch.no_grad():
        mu = model.enc(X_val).chunk(2, 1)[0]
        error = F.mse_loss(torch.sigmoid(model.dec(mu)), X_val).item()
    return end(doctor, 1 - error / X_val.var(0).mean().item())
