"""Signals from a folder of WAV files: each becomes the loudness of bands of frequency over time.

A frame of 25 ms begins every 10 ms; its power spectrum is summed in bands that are equally wide to
the ear (mel scale), and the logarithm taken. So files of different rates and lengths compare.
Shapes: S samples, T frames, C bands.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import wavfile

from castalia.data.sequences.sequence_set import Sequences
from castalia.errors import InvalidData
from castalia.utils.text import plural

__all__ = ["band_energies", "holds_signals", "read_signals"]

BANDS, LOWEST, HIGHEST = 32, 50.0, 8000.0  # number, and Hz
FRAME, HOP = 0.025, 0.010  # seconds
FLOOR = 1e-10  # of power, so that silence has a logarithm
NAMED = 3  # files that a note names


def holds_signals(data: Any) -> bool:
    """Whether data is the path of a WAV file, or of a folder with some in it or in its folders."""
    if not isinstance(data, str | os.PathLike) or not os.path.exists(data):
        return False
    return next(_files(Path(data)), None) is not None


def _files(folder: Path) -> Iterator[Path]:
    """Yield the WAV files in a folder and in the folders in it, or the one file."""
    found = (
        [folder] if folder.is_file() else (p for each in ("*", "*/*") for p in folder.glob(each))
    )
    yield from (path for path in found if path.suffix.lower() == ".wav")


def read_signals(folder: Any) -> Sequences:
    """Read the WAV files of a folder; those in folders of their own have these as classes.

    Files that cannot be read are left out and named in the notes.

    Parameters
    ----------
    folder
        Path of a WAV file, of a folder of them, or of one folder for each class.

    Returns
    -------
    Sequences
        Frames of each file, (T, 32); ``ids`` are the paths, ``target`` the classes or None.
    """
    home = Path(folder)
    paths = sorted(_files(home))
    home = home.parent if home.is_file() else home
    steps, kept, bad = [], [], []
    for path in paths:
        try:
            steps.append(band_energies(*_samples(path)))
            kept.append(path)
        except Exception as error:  # readers raise whatever they like on damaged files
            bad.append(f"{path.relative_to(home)} ({str(error).rstrip('.')})")
    if not steps:
        raise InvalidData(
            f"read_signals: `{folder}` must hold WAV files; got "
            f"{plural(len(bad), 'file')} that cannot be read: {_named(bad)}."
        )
    notes = []
    if bad:
        notes = [f"{plural(len(bad), 'file')} left out: {_named(bad)}."]
    inside = [path.relative_to(home) for path in kept]
    classes = [path.parts[0] if len(path.parts) > 1 else None for path in inside]
    if any(name is not None for name in classes) and None in classes:
        raise InvalidData(
            f"read_signals: all WAV files of `{folder}` must be in folders of their classes, or "
            f"none; got {inside[classes.index(None)]} beside folders."
        )
    target = None if None in classes else np.array(classes)
    names = [f"band_{i}" for i in range(BANDS)]
    ids = np.array([str(path) for path in inside])
    return Sequences(steps, channels=names, ids=ids, target=target, notes=notes)


def _named(bad: list[str]) -> str:
    """Name the first files and count the others."""
    more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
    return "; ".join(bad[:NAMED]) + more


def _samples(path: Path) -> tuple[np.ndarray, int]:
    """Return samples between -1 and 1, (S,), the mean of all channels, and their rate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wavfile.WavFileWarning)  # chunks that are not sound
        rate, data = wavfile.read(path)
    if not data.size or rate < 1:
        raise InvalidData("no samples")
    if data.dtype.kind == "f":
        values = data.astype(np.float64)
    else:
        half = 128.0 if data.dtype == np.uint8 else float(-np.iinfo(data.dtype).min)
        values = (data.astype(np.float64) - (half if data.dtype == np.uint8 else 0.0)) / half
    if not np.isfinite(values).all():
        raise InvalidData("NaN or infinity among the samples")
    return (values.mean(axis=1) if values.ndim == 2 else values), int(rate)


def band_energies(samples: np.ndarray, rate: int) -> np.ndarray:
    """Return the logarithm of the power in each band and frame, (T, 32).

    Parameters
    ----------
    samples
        Of the signal, (S,).
    rate
        Samples a second.

    Examples
    --------
    >>> tone = np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000)
    >>> found = band_energies(tone, 16000)
    >>> found.shape, int(found.mean(axis=0).argmax())
    ((98, 32), 10)
    """
    length, hop = max(2, round(FRAME * rate)), max(1, round(HOP * rate))
    padded = np.pad(samples, (0, max(0, length - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, length)[::hop]  # (T, length)
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(length), axis=1))) / length
    return np.log(power @ _bands(length, rate) + FLOOR)


def _bands(length: int, rate: int) -> np.ndarray:
    """Return triangles over the frequencies of a spectrum, (F, C), equally wide in mel."""
    low, high = (1127 * np.log1p(edge / 700) for edge in (LOWEST, HIGHEST))  # mel
    edges = 700 * np.expm1(np.linspace(low, high, BANDS + 2) / 1127)  # Hz
    at = np.fft.rfftfreq(length, 1 / rate)[:, None]
    rise = (at - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - at) / (edges[2:] - edges[1:-1])
    return np.clip(np.minimum(rise, fall), 0, None)
