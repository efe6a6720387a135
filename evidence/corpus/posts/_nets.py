"""Networks that several of the trainings share. N rows, T time, C channels, H and W of images."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def dense(*sizes: int, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


def begin(model: nn.Module) -> nn.Module:
    """Kaiming's initialisation of every dense layer and convolution."""
    for m in model.modules():
        if isinstance(m, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(m.weight)
            nn.init.zeros_(m.bias)
    return model


class LastStep(nn.Module):
    """Recurrent over (N, T, C), a head on the last step."""

    def __init__(
        self, inputs: int, hidden: int, outputs: int, cell: type = nn.GRU, layers: int = 1
    ):
        super().__init__()
        self.rnn = cell(inputs, hidden, num_layers=layers, batch_first=True)
        self.out = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0][:, -1])


class Reader(nn.Module):
    """Tokens embedded, read by a GRU, the mean over words that are there."""

    def __init__(self, words: int = 60, dim: int = 16, hidden: int = 16, outputs: int = 2):
        super().__init__()
        self.embed = nn.Embedding(words, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(hidden, outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        there = (tokens > 0).unsqueeze(-1).float()
        h = self.gru(self.embed(tokens))[0] * there
        return self.fc(self.drop(h.sum(1) / there.sum(1)))


class Encoder(nn.Module):
    """A small transformer with learnt positions; the mean over time is classified."""

    def __init__(self, words: int = 60, dim: int = 24, outputs: int = 2, length: int = 16,
                 layers: int = 1, dropout: float = 0.1):  # fmt: skip
        super().__init__()
        self.tok, self.pos = nn.Embedding(words, dim), nn.Embedding(length, dim)
        block = nn.TransformerEncoderLayer(dim, 2, 2 * dim, dropout, batch_first=True)
        self.body = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, outputs)

    def forward(self, x: Tensor) -> Tensor:
        h = self.tok(x) + self.pos.weight[: x.shape[1]]
        return self.head(self.body(h, src_key_padding_mask=x == 0).mean(1))


class SmallCNN(nn.Module):
    def __init__(self, classes: int = 10, width: int = 8, act: type[nn.Module] = nn.ReLU):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.act = act()
        self.fc = nn.Linear(2 * width * 4, classes)

    def forward(self, x: Tensor) -> Tensor:  # (N, 1, 8, 8)
        x = F.max_pool2d(self.act(self.conv1(x)), 2)
        x = F.max_pool2d(self.act(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


class Block(nn.Module):
    def __init__(self, width: int, norm=nn.BatchNorm2d):
        super().__init__()
        self.a, self.b = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.na, self.nb = norm(width), norm(width)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.nb(self.b(F.relu(self.na(self.a(x))))))


class ResNet(nn.Module):
    def __init__(self, classes: int = 10, width: int = 8, blocks: int = 2, norm=nn.BatchNorm2d):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), norm(width), nn.ReLU())
        self.layers = nn.Sequential(*(Block(width, norm) for _ in range(blocks)))
        self.fc = nn.Linear(width * 4, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(F.adaptive_avg_pool2d(self.layers(self.stem(x)), 2).flatten(1))


class UNet(nn.Module):
    """One step down, one up, and a bridge."""

    def __init__(self, width: int = 6, outputs: int = 1):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU())
        self.deep = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last = nn.Conv2d(2 * width, outputs, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        d = self.down(x)
        u = F.relu(self.up(self.deep(F.max_pool2d(d, 2))))
        return self.last(torch.cat([d, u], 1))


class CharLM(nn.Module):
    """A causal transformer over letters, or not causal."""

    def __init__(self, letters: int, dim: int = 32, length: int = 16, causal: bool = True):
        super().__init__()
        self.embed, self.pos = nn.Embedding(letters, dim), nn.Parameter(torch.zeros(length, dim))
        self.block = nn.TransformerEncoderLayer(dim, 2, 2 * dim, 0.0, batch_first=True)
        self.head = nn.Linear(dim, letters)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:  # (N, T) -> (N, T, letters)
        T = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(T) if self.causal else None
        return self.head(self.block(self.embed(x) + self.pos[:T], src_mask=mask))
