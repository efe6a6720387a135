"""CST206 to CST208: rows that validation shares with training, differs by, or lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.case_objective import REGRESSIONS
from castalia.diagnose.rules.distinct_rows import distinct_rows, distinct_values
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["leaks", "shifted", "too_few"]

LEAST_ROWS = 20
CHANCE = 2  # rows that two parts may share as two flowers may measure the same
LEAST_OF_A_CLASS, MOST_CLASSES = 10, 10
FEW_VALUES = 20  # of a column that may be groups
ENOUGH = 16  # rows of a batch whose share means something
EVERY = 11  # row is asked first whether a column may give the answer


def leaks(case: Case) -> Iterator[Finding]:
    """Validation rows that were trained on, or one column that alone gives the answer."""
    share, n = _shared(case)
    tokens = case.inputs is None  # short rows of tokens may meet again by chance
    bar = limit("rows.shared_tokens" if tokens else "rows.shared")
    if n >= LEAST_ROWS and share > bar and share * n > CHANCE:
        yield finding(
            "CST206",
            "warning",
            0.9 if share > limit("rows.shared_many") else 0.75,
            f"{number(100 * share, 2)} % of {n} validation rows were also trained on.",
            "Split before copying, augmenting or oversampling rows; drop duplicates.",
            Evidence("share of validation rows seen in training", share, bar),
        )
        return
    yield from _giveaway(case)


def _shared(case: Case) -> tuple[float, int]:
    """Share of the validation rows met in training; batches wholly of training rows left out."""
    train = case.gathered("inputs")
    held = [v for v in case.record.validation.inputs if v is not None and v.size]
    if train is None or not held or train.ndim != 2 or case.in_one_piece:
        return 0.0, 0
    known = {row.tobytes() for row in np.ascontiguousarray(train)}
    repeats = _repeats(case) > limit("rows.repeat")
    if len(known) < 50 or (repeats and not _unmistakable(train)):
        return 0.0, 0  # rows repeat anyway: meeting one again means nothing
    logged = any(e.loss is not None or e.score is not None for e in case.record.evaluations)
    apart = bool(case.record.final.get("apart"))  # given by a data set of their own
    if not logged and case.record.silent_in_training_mode and not apart:
        return 0.0, 0  # rows that were only put through, to draw them say
    # Nobody need have measured anything on them.
    bar = limit("rows.all_training" if logged else "rows.looked_at") * _share_kept(case, len(known))
    alone = _all_alike(held, known, bar) or (logged and _until_the_end(case, known, bar))
    # Of a data set of its own, training rows are not read on purpose.
    on_purpose = not (alone and (logged or apart))
    shares, distinct = [], set()
    for batch in _together(held):
        if batch.shape[1:] != train.shape[1:] or batch.dtype != train.dtype:
            continue
        keys = [row.tobytes() for row in np.ascontiguousarray(batch)]
        hits = [key in known for key in keys]
        if np.mean(hits) > bar and on_purpose:
            continue  # training rows evaluated on purpose
        distinct.update(keys)
        if len(keys) >= ENOUGH:
            shares.append(float(np.mean(hits)))
    if not shares:
        return 0.0, len(distinct)
    # Training rows may be evaluated beside validation rows: then the lower batches tell.
    low = float(np.quantile(shares, 0.25, method="lower"))
    mean = float(np.mean(shares))
    return (low if low < limit("rows.lower_batches") * mean else mean), len(distinct)


def _share_kept(case: Case, known: int) -> float:
    """Share of the training rows that is known: how often rows of a batch stand in others too.

    Of rows that never come again, it is the share of the steps whose rows were kept.
    """
    if case.epoch_rows:
        return min(1.0, known / case.epoch_rows)
    batches = [b for b in case.record.train.inputs if b is not None and b.size]
    keys = [{row.tobytes() for row in np.ascontiguousarray(batch)} for batch in batches]
    counts = Counter(key for batch in keys for key in batch)
    again = sum(n for n in counts.values() if n > 1) / max(sum(counts.values()), 1)
    return max(again, len(keys) / max(case.steps, len(keys), 1))


def _together(batches: list[np.ndarray]) -> list[np.ndarray]:
    """Return batches of a few rows as fewer ones of enough."""
    like = [b for b in batches if b.shape[1:] == batches[0].shape[1:]]
    if len(like) < len(batches) or max(map(len, batches)) >= ENOUGH:
        return batches
    rows = np.concatenate(like)
    return np.array_split(rows, max(1, len(rows) // (2 * ENOUGH)))


def _repeats(case: Case) -> float:
    """Share of rows that stand twice in one batch, which a draw without replacement never gives."""
    batches = [b for b in case.record.train.inputs if b is not None and len(b) > 1]
    total = sum(len(b) for b in batches)
    distinct = sum(len({row.tobytes() for row in np.ascontiguousarray(b)}) for b in batches)
    return 1 - distinct / max(total, 1)


def _unmistakable(x: np.ndarray) -> bool:
    """Whether most columns tell rows apart by themselves: then no two are equal by chance."""
    rows = distinct_rows(x)
    if x.dtype.kind != "f":
        return False
    values = [len(np.unique(rows[:, j])) for j in range(min(rows.shape[1], 64))]
    return float(np.median(values)) > limit("rows.unmistakable") * len(rows)


def _all_alike(held: list[np.ndarray], known: set[bytes], bar: float) -> bool:
    """Whether every validation batch consists of training rows."""
    return all(
        np.mean([row.tobytes() in known for row in np.ascontiguousarray(batch)]) > bar
        for batch in held
    )


def _until_the_end(case: Case, known: set[bytes], bar: float) -> bool:
    """Whether all was validated on some of the training rows, until others came after the end.

    Of all of them, or of more than are kept, it may be the training loss that is meant.
    """
    rows = case.record.validation
    kept = zip(rows.steps, rows.inputs, rows.targets, strict=True)
    before = [(x, y) for step, x, y in kept if x is not None and x.size and step < case.steps]
    whole = all(y is not None and len(y) == len(x) for x, y in before)
    distinct = {row.tobytes() for x, _ in before for row in np.ascontiguousarray(x)}
    part = whole and len(distinct) < limit("rows.part") * len(known)
    return len(before) >= 3 and part and _all_alike([x for x, _ in before], known, bar)


def _giveaway(case: Case) -> Iterator[Finding]:
    """One column that alone gives the answer, while no other comes near.

    An answer of many numbers, such as the row itself of an autoencoder, is more than its first.
    """
    if case.targets is None or case.targets.size != len(case.targets):
        return
    if case.pairs is None or not case.tabular or not 4 <= case.pairs[0].shape[1] <= 512:
        return
    x, y = case.pairs[0], case.pairs[1].astype(case.pairs[0].dtype)
    if len(x) < 100 or not np.isfinite(x).all() or not np.isfinite(y).all():
        return
    values = len(np.unique(y))
    regression = case.head.loss in REGRESSIONS and values > 20
    rows = np.column_stack([x, y])
    several = not regression and 2 < values <= MOST_CLASSES
    if several and _ruled_out(distinct_rows(rows[::EVERY]), len(rows)):
        return
    rows = distinct_rows(rows)  # one that comes again says no more
    scores = _alone(rows[:, :-1], rows[:, -1], regression)
    order = np.argsort(scores)
    best, second = scores[order[-1]], scores[order[-2]]
    if best > limit("rows.alone") and second < best - limit("rows.alone_margin"):
        yield finding(
            "CST206",
            "warning",
            0.8,
            f"Column {order[-1]} alone gives the answer (score {number(best, 4)}; the next best "
            f"column {number(second, 3)}).",
            "Ask whether that column is known when predictions are made; if not, drop it.",
            Evidence("accuracy or R² of one column alone", float(best), limit("rows.alone")),
            where=f"column {order[-1]}",
        )


def _alone(x: np.ndarray, y: np.ndarray, regression: bool) -> np.ndarray:
    """R² of each column, or balanced accuracy of its best cut between two groups of rows."""
    if regression:
        x, y = x.astype(float), y.astype(float)
        z = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
        t = (y - y.mean()) / max(y.std(), 1e-12)
        return np.abs(z.T @ t / len(t)) ** 2
    best = np.zeros(x.shape[1])
    classes, counts = np.unique(y, return_counts=True)
    if not 2 <= len(classes) <= MOST_CLASSES or counts.min() < LEAST_OF_A_CLASS:
        return best
    if len(classes) > 2:
        return _grouped(x, y)
    order = np.argsort(x, axis=0, kind="stable")
    hit = (y == classes[1])[order]  # (rows, columns), sorted by each column
    total = hit.sum(axis=0)
    below = np.cumsum(hit, axis=0)
    n = np.arange(1, len(y) + 1)[:, None]
    cut = np.take_along_axis(x, order, axis=0)
    valid = np.vstack([cut[1:] > cut[:-1], np.zeros((1, x.shape[1]), bool)])
    one = (total - below) / np.maximum(total, 1)  # of class 1 above the cut
    zero = (n - below) / np.maximum(len(y) - total, 1)  # of class 0 below it
    balanced = (one + zero) / 2
    balanced = np.where(valid, np.maximum(balanced, 1 - balanced), 0.0)
    return balanced.max(axis=0)


def _ruled_out(some: np.ndarray, n: int) -> bool:
    """Whether some rows of n, the class last, rule out that a column of few values is enough.

    A column answers each value by one class: of these rows it has all of other classes wrong, and
    whatever the others are, they make none of them right.
    """
    _, cells = _counted(some[:, :-1], some[:, -1])
    wrong = len(some) - cells.max(axis=2).sum(axis=1)
    return bool((wrong > (1 - limit("rows.alone")) * n).all())


def _grouped(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of rows whose class the others of equal value foretell, for columns of few values."""
    found = np.zeros(x.shape[1])
    few, cells = _counted(x, y)
    classes = cells.shape[2]
    # Of a column, a value, a class that is voted for, and the class of the row, but for the row.
    others = cells[..., None] - np.eye(classes, dtype=int)
    right = (others.argmax(axis=2) == np.arange(classes)) & (others.max(axis=2) > 0)
    found[few] = (cells * right).sum(axis=(1, 2)) / len(y)
    return found


def _counted(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of few values, and how many rows of each class have which: (columns, values, C)."""
    x = np.asfortranarray(x)
    classes, label = np.unique(y, return_inverse=True)
    ordered, first = distinct_values(x)
    few = np.flatnonzero(first.sum(axis=0) <= FEW_VALUES)
    size = FEW_VALUES * len(classes)
    cells = np.empty((len(few), FEW_VALUES, len(classes)), dtype=int)
    for i, j in enumerate(few):
        which = np.searchsorted(ordered[first[:, j], j], x[:, j])
        cells[i] = np.bincount(which * len(classes) + label, minlength=size).reshape(cells[i].shape)
    return few, cells


def shifted(case: Case) -> Iterator[Finding]:
    """A simple classifier that separates training from validation rows."""
    if not len(case.record.validation) or not case.record.evaluations:
        return  # rows that are put through without a loss or a score may be drawn, not validated
    yield from _new_tokens(case)
    if case.adversarial:
        return  # what a judge is shown without a loss is no validation
    train, held = case.distinct_inputs, case.gathered("inputs", case.record.validation)
    if train is None or held is None or held.dtype.kind != "f" or held.shape[1:] != train.shape[1:]:
        return
    held = distinct_rows(held)
    if min(len(train), len(held)) < LEAST_ROWS or not (
        np.isfinite(train).all() and np.isfinite(held).all()
    ):
        return
    area, column = _separation(train, held)
    bar = limit("rows.shift_altered" if case.altered else "rows.shift")
    if area > bar:
        yield finding(
            "CST208",
            "warning" if not case.altered and (case.tabular or _harms(case)) else "info",
            0.85 if area > limit("rows.shift_clear") else 0.75,
            f"Validation rows differ from training rows: a linear classifier separates them with "
            f"an area under the curve of {number(area, 3)}.",
            "Split at random (or by time on purpose), and inspect the columns that differ.",
            Evidence("area under the curve", area, bar),
            where=f"column {column}" if case.tabular else None,
        )


def _harms(case: Case) -> bool:
    """Whether validation fares worse: images are altered for training on purpose."""
    scale = case.head.scale if case.head.scale > 0 else 1.0
    gaps = [
        e.loss * scale - limit("fit.rise") * e.train_loss
        for e in case.record.evaluations[-3:]
        if e.loss is not None and e.train_loss is not None
    ]
    return max(gaps, default=0.0) > 0 or case.score_gap > limit("case.same_gap")


def _new_tokens(case: Case) -> Iterator[Finding]:
    """Tokens of validation that training never met, though it met each of its own many times."""
    train = case.gathered("inputs")
    held = case.gathered("inputs", case.record.validation)
    if train is None or held is None or train.dtype.kind not in "iu" or held.dtype != train.dtype:
        return
    values, counts = np.unique(train, return_counts=True)
    if np.median(counts) < 10 or held.size < 200:
        return  # a vocabulary of which only a part was met
    unseen = float(1 - np.isin(held, values).mean())
    if unseen > limit("tokens.unseen"):
        yield finding(
            "CST208",
            "warning",
            0.85,
            f"{number(100 * unseen, 2)} % of the validation tokens never occur in training, whose "
            f"{len(values)} tokens occur {number(float(np.median(counts)), 3)} times each.",
            "Use one vocabulary for both, and the same steps before the network.",
            Evidence("share of validation tokens never met", unseen, limit("tokens.unseen")),
        )


def _separation(train: np.ndarray, held: np.ndarray) -> tuple[float, int]:
    """Cross-validated area under the curve of a linear discriminant, and the column that differs.

    Only means are compared: noise added to the training rows on purpose is no shift.
    """
    rng = np.random.default_rng(0)
    train = train[rng.permutation(len(train))[:300]].astype(float)
    held = held[rng.permutation(len(held))[:300]].astype(float)
    x = np.concatenate([train, held])
    y = np.repeat([-1.0, 1.0], [len(train), len(held)])
    spread = np.maximum(x.std(axis=0), 1e-9)
    gap = np.abs(train.mean(axis=0) - held.mean(axis=0)) / spread
    z = (x - x.mean(axis=0)) / spread
    if z.shape[1] > 16:
        z = _main_directions(z, 16)
        z /= np.maximum(z.std(axis=0), 1e-6)
    z = np.hstack([z, np.ones((len(z), 1))])
    fold, score = rng.permutation(len(z)) % 4, np.zeros(len(z))
    weight = np.where(y > 0, 0.5 / max((y > 0).mean(), 1e-9), 0.5 / max((y < 0).mean(), 1e-9))
    for k in range(4):
        a, b = z[fold != k], (y * weight)[fold != k]
        gram = (a * weight[fold != k, None]).T @ a + 10.0 * np.eye(a.shape[1])
        score[fold == k] = z[fold == k] @ np.linalg.solve(gram, a.T @ b)
    return _area(score, y > 0), int(gap.argmax())


def _main_directions(z: np.ndarray, count: int) -> np.ndarray:
    """Return the rows along the directions in which they spread most, by the smaller Gram matrix.

    Up to signs it is U S of the singular value decomposition, for a fraction of its time.
    """
    if z.shape[1] <= len(z):
        return z @ np.linalg.eigh(z.T @ z)[1][:, -count:]
    values, rows = np.linalg.eigh(z @ z.T)
    return rows[:, -count:] * np.sqrt(np.maximum(values[-count:], 0))


def _area(score: np.ndarray, positive: np.ndarray) -> float:
    """Probability that a positive row scores higher than another."""
    rank = np.empty(len(score))
    rank[np.argsort(score)] = np.arange(1, len(score) + 1)
    n = int(positive.sum())
    return float((rank[positive].sum() - n * (n + 1) / 2) / max(n * (len(score) - n), 1))


def too_few(case: Case) -> Iterator[Finding]:
    """Few distinct training rows, with a gap between training and validation."""
    if case.adversarial or case.broken or case.stuck:
        return
    distinct = len(case.met)
    if not 8 <= distinct <= limit("rows.few") or case.rows_kept < 4 * distinct:
        return
    held = [e.loss for e in case.record.evaluations if e.loss is not None]
    loss = case.fit_loss if np.isfinite(case.fit_loss) else case.final
    ratio = held[-1] / max(loss, 1e-12) if held else np.nan
    bar = limit("rows.few_ratio")
    if ratio > bar and held[-1] > limit("rows.few_loss") * case.guess:
        yield finding(
            "CST207",
            "info" if case.nearly_right or case.few_wrong else "warning",
            0.6 if distinct > 100 else 0.8,
            f"There are only {distinct} different training rows, and validation costs "
            f"{number(ratio, 2)} times as much as training.",
            "Gather more rows, or augment those there are.",
            Evidence("different training rows", distinct, limit("rows.few"), above=False),
            Evidence("validation loss over the training loss", ratio, bar),
        )
