"""Answers for the frames of a video, smoothed over time.

Classes last: z_t = z_{t-1} with probability s, else any other class. The most probable path of this
Markov chain, given what a classifier says of each frame, maximises
    sum_t log p(z_t | x_t) + sum_t log p(z_t | z_{t-1}).
Shapes: T frames, K classes.
References: 1967, Viterbi, Error bounds for convolutional codes, IEEE Trans. Information Theory 13;
2016, Cadene, Robert, Thome, Cord, M2CAI workflow challenge: convolutional neural networks with time
smoothing and hidden Markov model for video frames classification, arXiv 1610.05541.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import median_filter

from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["smooth_frames"]

METHODS = ("viterbi", "median")
LEAST = 1e-12  # of a probability, before its logarithm is taken


def smooth_frames(
    probabilities: Any, *, method: str = "viterbi", stay: float = 0.95, width: int = 5
) -> np.ndarray:
    """Return the class of every frame of a video, given what a classifier says of each alone.

    Parameters
    ----------
    probabilities
        Of each class for each frame, (T, K), in order of time: ``predict_proba``.
    method
        ``"viterbi"``: the most probable path of a chain that keeps its class; ``"median"``: the
        largest of the running medians.
    stay
        Probability that the next frame has the same class, above 0 and below 1; larger values
        smooth more. A class that lasts n frames on average has 1 - 1/n.
    width
        Frames of the running median, odd.

    Returns
    -------
    ndarray (T,)
        Positions of classes, to look up in ``classes_``.

    Examples
    --------
    >>> p = np.array([0.9, 0.8, 0.3, 0.9, 0.2, 0.1])
    >>> smooth_frames(np.stack([1 - p, p], axis=1), stay=0.9)
    array([1, 1, 1, 1, 0, 0])
    """
    table = np.asarray(probabilities, dtype=np.float64)
    _check(table, method, stay, width)
    if method == "median":
        found: np.ndarray = median_filter(table, size=(width, 1), mode="nearest").argmax(axis=1)
        return found
    return _viterbi(np.log(table.clip(LEAST)), stay)


def _viterbi(scores: np.ndarray, stay: float) -> np.ndarray:  # (T, K)
    """Return the best path; to all other classes the chain jumps alike, so a step costs O(K)."""
    frames, classes = scores.shape
    keep, jump = np.log(stay), np.log((1 - stay) / max(classes - 1, 1))
    best, came = scores[0], np.empty((frames, classes), dtype=np.int64)
    for t in range(1, frames):
        leader = int(best.argmax())
        kept, jumped = best + keep, best[leader] + jump
        came[t] = np.where(kept >= jumped, np.arange(classes), leader)
        best = np.maximum(kept, jumped) + scores[t]
    path = np.empty(frames, dtype=np.int64)
    path[-1] = best.argmax()
    for t in range(frames - 1, 0, -1):
        path[t - 1] = came[t, path[t]]
    return path


def _check(table: np.ndarray, method: str, stay: float, width: int) -> None:
    if table.ndim != 2 or not table.size or not (table >= 0).all():
        raise InvalidData(
            "smooth_frames: `probabilities` must be (T, K), a row a frame, and not negative; got "
            f"shape {table.shape}."
        )
    if method not in METHODS:
        raise InvalidParameter(
            f"smooth_frames: `method` must be {listing(METHODS)}; got {method!r}."
            f"{did_you_mean(str(method), METHODS)}"
        )
    if not 0 < stay < 1:
        raise InvalidParameter(f"smooth_frames: `stay` must be above 0 and below 1; got {stay!r}.")
    if width < 1 or width % 2 == 0:
        raise InvalidParameter(f"smooth_frames: `width` must be odd and at least 1; got {width!r}.")
