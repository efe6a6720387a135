"""A folder of WAV files as sequences: frames of bands, classes, and files that are none."""

import numpy as np
import pytest
from scipy.io import wavfile

from castalia.data import read_signals
from castalia.data.sequences import band_energies, holds_signals
from castalia.errors import InvalidData

RATE = 8000


def tone(pitch, seconds=0.1, rate=RATE):
    return np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)


def folder_of(home, pitches, each=2):
    for name, pitch in pitches.items():
        (home / name).mkdir(parents=True, exist_ok=True)
        for i in range(each):
            noisy = tone(pitch) + 0.05 * np.random.default_rng(i).normal(size=int(0.1 * RATE))
            wavfile.write(home / name / f"{i}.wav", RATE, (3e4 * noisy / 1.3).astype(np.int16))
    return home


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.float32])
def test_the_same_sound_is_the_same_in_every_format(tmp_path, kind):
    sound = 0.5 * tone(440)
    wanted = band_energies(sound, RATE)
    scale = {np.uint8: 127, np.int16: 2**15 - 1, np.int32: 2**31 - 1, np.float32: 1}[kind]
    shifted = sound * scale + (128 if kind == np.uint8 else 0)
    stereo = np.stack([shifted, shifted], axis=1)
    wavfile.write(
        tmp_path / "a.wav", RATE, (np.round(stereo) if scale > 1 else stereo).astype(kind)
    )
    found = read_signals(tmp_path)
    assert found.target is None
    loud = wanted > -4
    np.testing.assert_allclose(found[0][loud], wanted[loud], atol=0.3 if kind == np.uint8 else 0.01)


def test_a_pitch_is_in_its_band_whatever_the_rate():
    for pitch in (200, 1000, 3000):
        bands = {int(band_energies(tone(pitch, rate=r), r).mean(0).argmax()) for r in (8000, 44100)}
        assert max(bands) - min(bands) <= 1
    assert band_energies(np.zeros(3), RATE).shape == (1, 32)


def test_folders_are_classes_and_bad_files_are_named(tmp_path):
    home = folder_of(tmp_path, {"high": 2000, "low": 300})
    (home / "low" / "broken.wav").write_bytes(b"RIFF and nothing")
    wavfile.write(home / "low" / "empty.wav", RATE, np.zeros(0, np.int16))
    found = read_signals(home)
    assert found.target.tolist() == ["high", "high", "low", "low"]
    assert found.ids[0].replace("\\", "/") == "high/0.wav"
    assert "2 files left out" in found.notes[0]
    assert "broken.wav" in found.notes[0]
    assert "empty.wav (no samples)" in found.notes[0]
    alone = read_signals(home / "low" / "0.wav")
    assert alone.ids.tolist() == ["0.wav"]
    assert np.array_equal(alone[0], found[2])
    assert alone.target is None


def test_what_holds_no_signals_is_said(tmp_path):
    assert not holds_signals(tmp_path)
    assert not holds_signals(3)
    (tmp_path / "a.WAV").write_bytes(b"no sound")
    assert holds_signals(tmp_path)
    with pytest.raises(InvalidData, match="1 file that cannot be read: a.WAV"):
        read_signals(tmp_path)
    folder_of(tmp_path, {"low": 300})
    wavfile.write(tmp_path / "b.wav", RATE, tone(300).astype(np.float32))
    with pytest.raises(InvalidData, match="in folders of their classes, or none; got b.wav"):
        read_signals(tmp_path)
