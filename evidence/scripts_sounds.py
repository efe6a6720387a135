"""The little of torchaudio that the scripts use: tones for files, and mel spectrograms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from evidence.scripts_data import tones

RATE = 22050


def install(module: Callable[..., Any]) -> None:
    """Make the modules."""
    module("torchaudio", load=load)
    module("torchaudio.transforms", MelSpectrogram=MelSpectrogram, Resample=None)


def load(path: Any, **_: Any) -> tuple[torch.Tensor, int]:
    """Return the tone whose number is the name of the file."""
    return torch.from_numpy(_tones()[int(Path(path).stem)])[None], RATE


@cache
def _tones() -> Any:
    return tones()[0]


class MelSpectrogram(nn.Module):
    """Power in bands that are even on the mel scale."""

    def __init__(
        self, sample_rate: int = 16000, n_fft: int = 400, hop_length: int = 200, n_mels: int = 128
    ) -> None:
        super().__init__()
        self.n_fft, self.hop = n_fft, hop_length
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("bands", _bands(sample_rate, n_fft // 2 + 1, n_mels))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Return the spectrogram of each channel."""
        parts = torch.stft(signal, self.n_fft, self.hop, window=self.window, return_complex=True)
        return self.bands @ parts.abs().square()


def _bands(rate: int, frequencies: int, n: int) -> torch.Tensor:
    """Return triangles between neighbouring points of the mel scale."""
    mel = torch.linspace(0, 2595 * torch.log10(torch.tensor(1 + rate / 2 / 700)).item(), n + 2)
    points = 700 * (10 ** (mel / 2595) - 1)
    at = torch.linspace(0, rate / 2, frequencies)
    rise = (at - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
    fall = (points[2:, None] - at) / (points[2:] - points[1:-1])[:, None]
    return torch.minimum(rise, fall).clamp(min=0)
