"""When a trial is given up: it has fallen too far behind the best one on the folds it has done.

The folds are the same for all trials, so scores are compared fold by fold: what is easy or hard
about a fold drops out. Let d be the mean difference to the best trial over the first k of K folds,
and s the usual spread of such differences from fold to fold. Over all K folds the mean differs from
d by about s sqrt(1/k - 1/K), so a trial with

    d + Z s sqrt(1/k - 1/K) < 0

would have to be lucky to catch up. `evidence/pruning.py` compares it with other rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["ERRORS", "STARTUP", "falls_behind"]

STARTUP = 4  # complete trials before any is given up
ERRORS = 1.0  # Z: of those tried, the fastest that costs no score


def falls_behind(
    scores: Sequence[float], rivals: Sequence[Sequence[float]], errors: float = ERRORS
) -> bool:
    """Say whether a trial with these scores of its first folds is given up.

    Parameters
    ----------
    scores
        Of the first k folds.
    rivals
        Scores of complete trials, on all K folds.
    errors
        Standard errors of doubt that a trial is granted: Z.

    Examples
    --------
    >>> rivals = [[0.9, 0.8, 0.9], [0.8, 0.7, 0.9], [0.6, 0.6, 0.7], [0.9, 0.7, 0.8]]
    >>> falls_behind([0.5], rivals), falls_behind([0.88], rivals)
    (True, False)
    """
    done, whole = len(scores), np.array(rivals, dtype=float)
    if len(whole) < STARTUP or done == whole.shape[1]:
        return False
    best = whole[whole.mean(axis=1).argmax()]
    others = np.delete(whole - best, whole.mean(axis=1).argmax(), axis=0)
    spread = np.median(others.std(axis=1, ddof=1))
    doubt = errors * spread * np.sqrt(1 / done - 1 / whole.shape[1])
    return bool(np.mean(np.asarray(scores) - best[:done]) + doubt < 0)
