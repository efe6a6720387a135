"""Sequences of steps: signals, logs, event streams, series; of equal or different lengths."""

from castalia.data.sequences.long_frames import read_sequences, season_of
from castalia.data.sequences.sequence_adapter import SequenceAdapter
from castalia.data.sequences.sequence_rows import SequenceRows
from castalia.data.sequences.sequence_set import Sequences, as_sequences
from castalia.data.sequences.series_adapter import SeriesAdapter, SeriesWindows
from castalia.data.sequences.wav_files import band_energies, holds_signals, read_signals
from castalia.data.sequences.window_pairs import Windows, windows

__all__ = [
    "SequenceAdapter",
    "SequenceRows",
    "Sequences",
    "SeriesAdapter",
    "SeriesWindows",
    "Windows",
    "as_sequences",
    "band_energies",
    "holds_signals",
    "read_sequences",
    "read_signals",
    "season_of",
    "windows",
]
