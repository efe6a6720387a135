"""The small networks that several trainings share."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def mlp(*sizes: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with an activation between them: ``mlp(64, 32, 10)``."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(fan_in, fan_out), activation()]
    return nn.Sequential(*layers[:-1])


class SmallCNN(nn.Module):
    """Two convolutions and two linear layers for images of 8 by 8."""

    def __init__(self, classes: int = 10, width: int = 8) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(2 * width * 4, 32)
        self.fc2 = nn.Linear(32, classes)
        for layer in (self.conv1, self.conv2, self.fc1):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x))).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


class Recurrent(nn.Module):
    """A recurrent layer whose last state is classified."""

    def __init__(self, kind: type[nn.Module], inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.rnn = kind(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


class TextTransformer(nn.Module):
    """Tokens, one or two encoder layers, mean over the words that are no padding."""

    def __init__(self, words: int, classes: int, width: int = 32, depth: int = 1) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.encoder(self.embed(tokens), src_key_padding_mask=tokens == 0)
        real = (tokens != 0).unsqueeze(-1)
        return self.head((h * real).sum(1) / real.sum(1))


class LetterGRU(nn.Module):
    """A language model of letters."""

    def __init__(self, letters: int, hidden: int = 48) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 16)
        self.gru = nn.GRU(16, hidden, batch_first=True)
        self.head = nn.Linear(hidden, letters)

    def forward(self, letters: Tensor) -> Tensor:
        return self.head(self.gru(self.embed(letters))[0])
