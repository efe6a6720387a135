"""Smoothing over time: the best path of a sticky chain, and fewer wrong frames."""

from itertools import product

import numpy as np
import pytest

from castalia.errors import InvalidData, InvalidParameter
from castalia.models.vision import ConvNetClassifier, smooth_frames
from castalia.testing.toys import stripes


@pytest.mark.parametrize("stay", [0.3, 0.7, 0.95])
def test_the_path_is_the_best_of_all_paths(stay):
    frames, classes = 6, 3
    p = np.random.default_rng(int(100 * stay)).dirichlet(np.ones(classes), frames)

    def score(path):
        same = np.array(path[1:]) == np.array(path[:-1])
        moves = np.where(same, np.log(stay), np.log((1 - stay) / (classes - 1)))
        return np.log(p[np.arange(frames), path]).sum() + moves.sum()

    best = max(product(range(classes), repeat=frames), key=score)
    assert smooth_frames(p, stay=stay).tolist() == list(best)


def test_a_chain_that_jumps_anywhere_alike_changes_nothing():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 50)
    assert np.array_equal(smooth_frames(p, stay=0.25), p.argmax(axis=1))
    assert np.array_equal(smooth_frames(p, method="median", width=1), p.argmax(axis=1))


def test_the_median_removes_lonely_frames_and_keeps_cuts():
    sure = np.eye(2)[[0, 0, 0, 1, 0, 0, 1, 1, 1, 1]] * 0.8 + 0.1
    assert smooth_frames(sure, method="median", width=3).tolist() == [0] * 6 + [1] * 4


def test_a_class_that_is_impossible_in_a_frame_does_not_break_the_path():
    p = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert smooth_frames(p, stay=0.6).tolist() == [0, 1, 0]


def test_smoothing_raises_the_accuracy_of_frames_of_a_video():
    X, y = stripes(600, noise=2.0)  # so noisy that every tenth frame is misread
    model = ConvNetClassifier(widths=(8, 16), convs=1, epochs=8, lr=0.01, random_state=0).fit(X, y)
    frames, classes = stripes(600, noise=2.0, seed=1)
    lengths = np.random.default_rng(2).integers(8, 25, 20)
    scenes = np.repeat(np.arange(20) % 3, lengths)[:160]  # scenes that last
    left = [list(np.flatnonzero(classes == k)) for k in range(3)]
    video = frames[[left[k].pop() for k in scenes]]
    p = model.predict_proba(video)
    alone = np.mean(model.classes_[p.argmax(axis=1)] == scenes)
    smoothed = {m: np.mean(smooth_frames(p, method=m) == scenes) for m in ("viterbi", "median")}
    assert 0.7 < alone < 0.93
    assert smoothed["median"] > alone + 0.03
    assert smoothed["viterbi"] > alone + 0.06


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"method": "vitrebi"}, "got 'vitrebi'. Did you mean `viterbi`"),
        ({"stay": 1.0}, "`stay` must be above 0 and below 1; got 1.0"),
        ({"width": 4}, "`width` must be odd and at least 1; got 4"),
    ],
    ids=["method", "stay", "width"],
)
def test_bad_settings_are_named(settings, said):
    with pytest.raises(InvalidParameter, match=said):
        smooth_frames(np.full((3, 2), 0.5), **settings)


def test_frames_without_classes_are_refused():
    with pytest.raises(InvalidData, match=r"must be \(T, K\)"):
        smooth_frames(np.zeros(3))
