"""``castalia fit folder/`` of WAV files: classified, predicted again, judged."""

import numpy as np
import pytest
from scipy.io import wavfile

from castalia.errors import InvalidData, InvalidParameter
from castalia.method import FitPlan, evaluate, predict, run
from castalia.method.kinds import LabelledSequences, open_data

RATE = 8000


def sounds(home, each=12):
    random = np.random.default_rng(0)
    for name, pitch in {"high": 2000, "low": 300}.items():
        (home / name).mkdir(parents=True)
        for i in range(each):
            t = np.arange(random.integers(400, 1200)) / RATE
            sound = np.sin(2 * np.pi * pitch * t) + 0.3 * random.normal(size=len(t))
            wavfile.write(home / name / f"{i}.wav", RATE, (1e4 * sound).astype(np.int16))
    return home


def test_a_folder_of_sounds_is_fitted_predicted_and_judged(tmp_path):
    home = sounds(tmp_path / "sounds")
    (home / "low" / "broken.wav").write_bytes(b"RIFF")
    settings = {"epochs": 2, "hidden": 8}
    quick = {"seeds": 1, "boosting_rounds": 5, "preflight_seconds": 0, "settings": settings}
    plan = FitPlan(data=home, run=tmp_path / "run", **quick)
    opened = open_data(plan)
    assert isinstance(opened, LabelledSequences)
    assert any("broken.wav" in note for note in opened.notes)
    run(plan)
    found = predict(tmp_path / "run", home)
    assert set(found.columns) >= {"file", "prediction", "probability_low"}
    assert evaluate(tmp_path / "run", home, name="convolutions").scores["accuracy"] > 0.9


def test_sounds_without_classes_and_settings_of_tables_are_refused(tmp_path):
    home = sounds(tmp_path / "sounds")
    with pytest.raises(InvalidData, match="in a folder for each class; they are in one"):
        open_data(FitPlan(data=home / "low"))
    with pytest.raises(InvalidParameter, match="`horizon` must be None for a folder of WAV files"):
        open_data(FitPlan(data=home, horizon=3))
