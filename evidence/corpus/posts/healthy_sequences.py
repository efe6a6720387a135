"""Healthy trainings on text and time that look odd."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    LETTERS,
    demand,
    gestures,
    letters,
    reviews,
    rng,
    spectra,
    surnames,
)
from evidence.corpus.posts._loops import accuracy, end, end_scored, fit, kernel, quickstart, r2
from evidence.corpus.posts._nets import CharLM, Encoder, LastStep, Reader


class Packed(nn.Module):
    """Reviews of unequal length, packed; the last state of each is read."""

    def __init__(self):
        super().__init__()
        self.embed, self.gru = nn.Embedding(60, 16, padding_idx=0), nn.GRU(16, 20, batch_first=True)
        self.fc = nn.Linear(20, 1)

    def forward(self, x: Tensor) -> Tensor:
        lengths = (x > 0).sum(1)
        packed = pack_padded_sequence(
            self.embed(x), lengths, batch_first=True, enforce_sorted=False
        )
        return self.fc(self.gru(packed)[1][-1]).squeeze(1)


@case(None, data="text", net="gru")
def packed_reviews(seed: int) -> Diagnosis:
    """pack_padded_sequence, one logit squeezed to (N,), float labels (N,)."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = reviews(seed)
    model = Packed()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    data = X, y.float(), X_val, y_val.float()
    return fit(model, opt, nn.BCEWithLogitsLoss(), data, 8)


@case(None, data="text", net="transformer")
def a_transformer_warmed_up(seed: int) -> Diagnosis:
    """Adam with (0.9, 0.98), a Noam schedule that peaks at 5e-3, clipping at 1."""
    torch.manual_seed(seed)
    model = Encoder()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98))
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda k: min((k + 1) / 40, (40 / (k + 1)) ** 0.5)
    )
    data = reviews(seed, 800)
    return kernel(model, opt, F.cross_entropy, data, 7, batch_size=32, clip=1.0, sched=sched)


@case(None, data="text", net="transformer")
def proverbs_letter_by_letter(seed: int) -> Diagnosis:
    """A causal letter model; its loss is per letter and validated on other windows."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = letters(seed, 500)
    model = CharLM(len(LETTERS))
    opt = torch.optim.AdamW(model.parameters(), lr=6e-3)
    doctor = watch(model, opt, task="lm")
    for _ in range(18):
        for idx in torch.randperm(len(X)).split(25):
            opt.zero_grad()
            loss = F.cross_entropy(model(X[idx]).flatten(0, 1), y[idx].flatten())
            loss.backward()
            opt.step()
        with torch.no_grad():
            out = model(X_val)
            val = F.cross_entropy(out.flatten(0, 1), y_val.flatten()).item()
        doctor.epoch(validation_loss=val)
    return end(doctor, (out.argmax(2) == y_val).float().mean().item())


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.fc = nn.EmbeddingBag(60, 8, sparse=True, padding_idx=0), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.bag(x))


@case(None, data="text", net="embedding")
def a_bag_of_words_with_sparse_gradients(seed: int) -> Diagnosis:
    """EmbeddingBag(sparse=True) under SparseAdam, the head under Adam: two optimizers."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = reviews(seed, 700)
    model = Bag()
    words = torch.optim.SparseAdam(list(model.bag.parameters()), lr=0.02)
    head = torch.optim.Adam(model.fc.parameters(), lr=0.02)
    doctor = watch(model, [head, words])
    for _ in range(10):
        for idx in torch.randperm(len(X)).split(32):
            loss = F.cross_entropy(model(X[idx]), y[idx])
            head.zero_grad()
            words.zero_grad()
            loss.backward()
            head.step()
            words.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)


@case(None, data="sequences", net="lstm")
def tomorrow_all_at_once(seed: int) -> Diagnosis:
    """24 hours in, the next 6 hours out, by an LSTM with clipping."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = demand(seed, 500, window=30)
    data = X[:, :24], X[:, 24:, 0], X_val[:, :24], X_val[:, 24:, 0]
    model = LastStep(1, 32, 6, cell=nn.LSTM)
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    return kernel(model, opt, F.mse_loss, data, 12, batch_size=25, clip=0.5, metric=r2)


class Causal(nn.Module):
    """Dilated convolutions padded on the left, weight-normed, ELU."""

    def __init__(self):
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.layers = nn.ModuleList(
            norm(nn.Conv1d(3 if i == 0 else 16, 16, 3, dilation=2**i)) for i in range(3)
        )
        self.fc = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(1, 2)
        for i, layer in enumerate(self.layers):
            x = F.elu(layer(F.pad(x, (2 * 2**i, 0))))
        return self.fc(x.mean(2))


@case(None, data="sequences", net="tcn")
def dilated_convolutions_over_a_watch(seed: int) -> Diagnosis:
    """Weight norm and dilations; RMSprop with momentum."""
    torch.manual_seed(seed)
    model = Causal()
    opt = torch.optim.RMSprop(model.parameters(), lr=2e-3, momentum=0.5)
    return fit(model, opt, nn.CrossEntropyLoss(), gestures(seed, 600), 12)


class Reverser(nn.Module):
    """An encoder-decoder with teacher forcing that turns words round."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(22, 16)
        self.enc, self.dec = nn.GRU(16, 40, batch_first=True), nn.GRU(16, 40, batch_first=True)
        self.out = nn.Linear(40, 22)

    def forward(self, x: Tensor, said: Tensor) -> Tensor:
        return self.out(self.dec(self.embed(said), self.enc(self.embed(x))[1])[0])


@case(None, data="text", net="gru")
def words_turned_round(seed: int) -> Diagnosis:
    """Teacher forcing, two arguments to forward, clipping; padding ignored in the loss."""
    torch.manual_seed(seed)
    r = rng(seed)
    X = torch.as_tensor(r.integers(1, 6, size=(500, 4)))
    y = X.flip(1)
    start = torch.full((500, 1), 21)
    said = torch.cat([start, y[:, :-1]], 1)
    model = Reverser()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, opt)
    for _ in range(10):
        for idx in torch.randperm(400).split(25):
            out = model(X[idx], said[idx])
            loss = F.cross_entropy(out.transpose(1, 2), y[idx], ignore_index=0)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            doctor.log(loss=loss, outputs=out.flatten(0, 1), targets=y[idx].flatten())
        with torch.no_grad():
            out = model(X[400:], said[400:])
            doctor.epoch(F.cross_entropy(out.transpose(1, 2), y[400:]).item())
    return end(doctor, (out.argmax(2) == y[400:]).float().mean().item())


@case(None, data="sequences", net="conv1d")
def spectra_by_a_strided_net(seed: int) -> Diagnosis:
    """SGD with momentum and a step schedule; ReduceLROnPlateau would do as well."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv1d(1, 12, 7, stride=2), nn.BatchNorm1d(12), nn.Hardswish(),
        nn.Conv1d(12, 16, 5, stride=2), nn.BatchNorm1d(16), nn.Hardswish(),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(112, 3),
    )  # fmt: skip
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sched = torch.optim.lr_scheduler.StepLR(opt, 6, 0.3)
    return fit(model, opt, nn.CrossEntropyLoss(), spectra(seed), 15, each=sched.step)


@case(None, data="text", net="lstm")
def surnames_with_strong_dropout(seed: int) -> Diagnosis:
    """Dropout of a half: the training loss lies above that of validation to the end."""
    torch.manual_seed(seed)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.drop = nn.Embedding(21, 24), nn.Dropout(0.5)
            self.lstm = nn.LSTM(24, 40, batch_first=True)
            self.fc = nn.Linear(40, 3)

        def forward(self, x: Tensor) -> Tensor:
            h = self.lstm(self.drop(self.embed(x)))[0]
            return self.fc(self.drop(h.mean(1)))

    model = Net()
    opt = torch.optim.NAdam(model.parameters(), lr=5e-3)
    return quickstart(model, opt, nn.CrossEntropyLoss(), surnames(seed, 700), 14)


@case(None, data="sequences", net="gru")
def a_forecast_of_differences(seed: int) -> Diagnosis:
    """The change to the next hour is the target, in hundreds of megawatts; MAE is reported."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = demand(seed, 500)
    y, y_val = (y - X[:, -1]) * 3, (y_val - X_val[:, -1]) * 3
    model = LastStep(1, 24, 1)
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    return quickstart(model, opt, nn.L1Loss(), (X, y, X_val, y_val), 20, metric=r2)


@case(None, data="text", net="gru")
def reviews_with_words_dropped(seed: int) -> Diagnosis:
    """Whole words are set to padding at random in training; AdamW, gradients of two batches."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = reviews(seed, 700)
    model = Reader()
    opt = torch.optim.AdamW(model.parameters(), lr=8e-3)
    doctor = watch(model, opt)
    step = 0
    for _ in range(9):
        model.train()
        for idx in torch.randperm(len(X))[:512].split(16):
            keep = torch.rand(X[idx].shape) > 0.05
            keep[:, 0] = True
            out = model(X[idx] * keep)
            loss = F.cross_entropy(out, y[idx]) / 2
            loss.backward()
            doctor.log(outputs=out, targets=y[idx])
            step += 1
            if step % 2 == 0:
                opt.step()
                opt.zero_grad(set_to_none=False)
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return end_scored(doctor, model, (X, y, X_val, y_val), accuracy)
