"""CST204, CST205 and CST209: classes that are rare, labels that are wrong, rows in order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.case_objective import BINARY_LOSSES, LATE
from castalia.diagnose.rules.output_rules import wrong_axis
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["imbalanced", "mislabelled", "ordered"]

MOST_CLASSES = 100
LEAST_BATCHES, LEAST_OF_A_BATCH = 8, 16
AT_THE_END = limit("case.at_the_end")  # before, the network was another


def imbalanced(case: Case) -> Iterator[Finding]:
    """Rare classes that the network gives up."""
    yield from _rare_ones(case)
    shares = case.shares
    if (
        not 2 <= len(shares) <= MOST_CLASSES
        or len(case.labels if case.labels is not None else ()) < 64
    ):
        return
    if case.task == "lm":
        return
    relative = float(shares[-1] * len(shares))  # the rarest class over an even share
    bar = 2 * limit("classes.rare")
    if relative > bar or case.head.weighted:
        return
    accuracy, n = case.accuracy(case.record.train, 30)
    recall = _rare_recall(case)
    given_up = recall < limit("classes.given_up")
    blunt = n > 0 and accuracy < shares[0] + limit("classes.margin")
    severe = recall < limit("classes.recall") or blunt
    yield finding(
        "CST204",
        "warning" if severe else "info",
        0.88 if severe else 0.5,
        f"The rarest class has {number(100 * shares[-1], 2)} % of the rows"
        + (" and is hardly ever recognised." if given_up else "."),
        Remedy(
            "Weight the classes by their inverse share, or sample them evenly; judge by balanced "
            "accuracy.",
            {"class_weight": "balanced"},
        ),
        Evidence("share of the rarest class over an even share", relative, bar, above=False),
        *([Evidence("accuracy, against the share of the commonest class", accuracy)] if n else []),
    )


def _rare_ones(case: Case) -> Iterator[Finding]:
    """Pixels or labels of which hardly any is a one, and which the network never finds."""
    y = case.targets
    wide = y is not None and y.ndim > 1 and y.size > len(y) and case.head.loss in BINARY_LOSSES
    if not wide or y is None or case.head.weighted or not np.isin(y, (0, 1)).all():
        return
    rows, share, bar = case.record.train, float(y.mean()), limit("classes.rare") / 2
    even = limit("chance.even") if case.head.loss == "bce" else 0.0
    late = [
        (o.reshape(-1) > even)[t.reshape(-1) == 1]
        for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True)
        if o is not None and t is not None and o.size == t.size and step >= LATE * case.steps
    ]
    found = np.concatenate(late) if late else np.zeros(0)
    least = limit("classes.found")
    if 0 < share < bar and len(found) >= 20 and found.mean() < least:
        yield finding(
            "CST204",
            "warning",
            0.85,
            f"Only {number(100 * share, 2)} % of the targets are ones, and the network finds "
            f"{number(100 * float(found.mean()), 2)} % of them.",
            "Weight the ones (`pos_weight`), or use a loss of overlap such as Dice.",
            Evidence("share of ones", share, bar, above=False),
            Evidence("share of them that is found", float(found.mean()), least, above=False),
        )


def _rare_recall(case: Case) -> float:
    """Share of the rows of rare classes that are recognised, late in training."""
    parts = [case.probabilities(rows, 30) for rows in (case.record.train, case.record.validation)]
    known = [part for part in parts if part is not None]
    if not known or case.labels is None:
        return np.nan
    values, counts = np.unique(case.labels, return_counts=True)
    rare = values[counts < limit("classes.rare_share") * counts.sum() / len(values)]
    right = np.concatenate([(p.argmax(axis=1) == y)[np.isin(y, rare)] for p, y in known])
    return float(right.mean()) if len(right) >= 3 else np.nan


def mislabelled(case: Case) -> Iterator[Finding]:
    """Errors as common among the surest answers as among all, in some batches, or in training."""
    if any(wrong_axis(case)):
        return  # answers that depend on the other rows say nothing about labels
    yield from _wrong_batches(case)
    yield from _worse_in_training(case)
    found = case.probabilities(case.record.validation, 40)
    if found is None or len(found[1]) < 80 or found[0].shape[1] < 2:
        return
    p, y = found
    if not 2 <= p.shape[1] <= MOST_CLASSES or case.stuck:
        return
    train, n = case.accuracy(case.record.train, 8)
    gap = train - float((p.argmax(axis=1) == y).mean())
    memorised = n > 0 and gap > limit("labels.memorised")
    if not np.isfinite(p).all() or memorised:
        return
    confidence, wrong = p.max(axis=1), p.argmax(axis=1) != y
    sure = confidence >= np.median(confidence)
    top, overall = float(wrong[sure].mean()), float(wrong.mean())
    if float(confidence[sure].mean()) > 1 - top + limit("labels.too_sure"):
        return  # too sure of itself: its confidence says nothing about the labels
    guessing = overall / max(1 - case.shares[0] if len(case.shares) else 1, 1e-9)
    if guessing > limit("labels.guessing"):
        return  # hardly better than guessing: nothing can be said of the labels
    # The nearer to guessing, the less its sureness says, and the more alike errors must be.
    bar = max(limit("labels.noise_ratio"), guessing + limit("labels.noise_margin"))
    if top > limit("labels.noise") and top > bar * overall:
        yield finding(
            "CST205",
            "warning",
            0.7,
            f"Of the surer half of the answers {number(100 * top, 2)} % disagree with the labels, "
            f"nearly as many as of all ({number(100 * overall, 2)} %): the labels are wrong, "
            "not hard.",
            "Inspect the rows that disagree most surely with their label.",
            Evidence("errors among the surer half", top, limit("labels.noise")),
            Evidence("the same over all errors", top / max(overall, 1e-9), bar),
        )


def _wrong_batches(case: Case) -> Iterator[Finding]:
    """Batches that are hardly answered late in training, among others that are: a spoilt file."""
    rows = case.record.train
    late = [
        (
            float((o.argmax(axis=1) == t).mean()),
            float(np.unique(t, return_counts=True)[1].max()) / len(t),
        )
        for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True)
        if o is not None and t is not None and step >= LATE * case.steps
        if o.ndim == 2 and t.ndim == 1 and len(o) == len(t) >= LEAST_OF_A_BATCH
    ]
    if case.head.loss not in ("cross_entropy", "nll") or len(late) < LEAST_BATCHES:
        return
    right, commonest = np.asarray(late).T
    usual, bar = float(np.median(right)), limit("labels.batch")
    mixed = float(np.median(commonest)) < limit("labels.batch_mixed")  # else rows are in order
    low = right < bar * usual
    if not mixed or usual < limit("labels.batch_usual") or not 2 <= low.sum() < len(low) / 3:
        return
    yield finding(
        "CST205",
        "warning",
        0.75,
        f"Of {len(low)} batches late in training, {low.sum()} are mostly answered wrongly "
        f"({number(100 * float(right[low].mean()), 2)} % right) and the others well "
        f"({number(100 * usual, 2)} %): these batches have labels of other rows.",
        "Look at the rows and labels of these batches: a part of the data may be shifted.",
        Evidence(
            "accuracy of the worst batches over the usual",
            float(right[low].mean()) / usual,
            bar,
            above=False,
        ),
    )


def _worse_in_training(case: Case) -> Iterator[Finding]:
    """Training rows that are answered far worse than others, though nothing makes them harder."""
    train, n = case.accuracy(case.record.train, 12, AT_THE_END)
    held, m = case.accuracy(case.record.validation, 12, AT_THE_END)
    bar = max(limit("labels.worse"), 3 * np.sqrt(limit("chance.variance") / max(n, 1)))
    if min(n, m) < 64 or not held - train > bar:
        return
    if case.record.dropped or any("BatchNorm" in layer.kind for layer in case.record.layers):
        return  # the network is another in training
    if not _comes_again(case) or _other_classes(case):
        return
    yield finding(
        "CST205",
        "warning",
        0.8,
        f"Of the training rows {number(100 * train, 2)} % are answered as labelled, of the "
        f"validation rows {number(100 * held, 2)} %: labels of training rows are wrong.",
        "Inspect the training rows that disagree most surely with their label.",
        Evidence("validation minus training accuracy", held - train, bar),
    )


def _comes_again(case: Case) -> bool:
    """Whether training rows come again as they were: they are not altered on the way."""
    x, distinct = case.inputs, case.distinct_inputs
    if x is None or distinct is None:
        return False
    return len(x) - len(distinct) > limit("rows.again") * len(x)


def _other_classes(case: Case) -> bool:
    """Whether classes are drawn in other shares than in validation, the harder more often."""
    held = case.gathered("targets", case.record.validation)
    if case.labels is None or held is None:
        return True
    values = np.unique(case.labels)
    shares = [(labels.reshape(-1)[:, None] == values).mean(0) for labels in (case.labels, held)]
    return float(np.abs(shares[0] - shares[1]).sum()) / 2 > limit("classes.other_shares")


def ordered(case: Case) -> Iterator[Finding]:
    """Batches whose targets differ more than chance allows."""
    rows = case.record.train
    if case.adversarial or case.acts:
        return
    batches = [t for t in rows.targets if t is not None and t.size]
    if case.looks and np.median([look.passes for look in case.looks]) > 1 and _uniform(batches):
        return  # a step adds up batches of one label each, as of real and made-up rows
    if case.shifted or len(batches) < 6:
        return
    statistic = _between(batches)
    numbers = case.labels is None
    if statistic is None or (numbers and (_inputs_are_mixed(case) or case.computed)):
        return
    bar = limit("order.between")
    if statistic > bar or _of_one_class(case, batches):
        what = "labels" if case.labels is not None else "targets"
        yield finding(
            "CST209",
            "error" if statistic > 5 * bar else "warning",
            0.93 if statistic > 3 * bar or statistic <= bar else 0.8,
            f"Batches are ordered: their {what} differ from batch to batch {number(statistic, 2)} "
            "times as much as shuffled ones would."
            if statistic > bar
            else "Batches are ordered: nearly every batch is of one class.",
            "Shuffle the rows in every epoch: DataLoader(..., shuffle=True).",
            Evidence("variance between batches over its expectation", statistic, bar)
            if statistic > bar
            else Evidence("share of batches of one class", _alike(batches), limit("order.alike")),
        )


def _of_one_class(case: Case, batches: list[np.ndarray]) -> bool:
    """Whether nearly all batches, however small, are of one class: far more than by chance."""
    sizes = [b.size for b in batches]
    if case.labels is None or min(sizes) < 3:
        return False
    by_chance = float((case.shares ** min(sizes)).sum())
    return _alike(batches) > limit("order.alike") and by_chance < limit("order.by_chance")


def _alike(batches: list[np.ndarray]) -> float:
    """Share of the batches that have one target throughout."""
    return float(np.mean([b.min() == b.max() for b in batches]))


def _uniform(batches: list[np.ndarray]) -> bool:
    """Whether each batch has one target throughout."""
    return _alike(batches) == 1


def _inputs_are_mixed(case: Case) -> bool:
    """Whether no column differs between batches more than chance allows, nor does its square.

    Then rows come in no order, and targets that drift are made again in training, as those of a
    network that learns from its own answers.
    """
    x = case.inputs
    if x is None or not x.std() > 0:
        return False
    middle, spread = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-12)
    kept = [i for i in case.record.train.inputs if i is not None and i.shape[1:] == x.shape[1:]]
    scaled = [(i - middle) / spread for i in kept if len(i) >= 2]
    columns = [np.hstack([z, z**2]).astype(float) for z in scaled]
    if len(columns) < 6 or not all(np.isfinite(c).all() for c in columns):
        return False
    each = [_between([c[:, j : j + 1] for c in columns]) for j in range(columns[0].shape[1])]
    return max((e for e in each if e is not None), default=0.0) < limit("order.between")


def _between(batches: list[np.ndarray]) -> float | None:
    """Variance of batch means over what shuffled rows would give; classes as one-hot columns."""
    shape = max((b.shape[1:] for b in batches), key=[b.shape[1:] for b in batches].count)
    batches = [b for b in batches if b.shape[1:] == shape and len(b) >= 2]
    if len(batches) < 6:
        return None
    if shape not in ((), (1,)):
        if batches[0].dtype.kind != "f" or len(shape) != 1:
            return None
        columns = [b.astype(float) for b in batches]
    else:
        flat = [b.reshape(-1) for b in batches]
        values = np.unique(np.concatenate(flat))
        if len(values) < 2:
            return None
        if len(values) <= 50 and np.allclose(values, np.round(values)):
            columns = [(f[:, None] == values[None]).astype(float) for f in flat]
        elif batches[0].dtype.kind == "f":
            columns = [f.astype(float)[:, None] for f in flat]
        else:
            return None
    everything = np.concatenate(columns)
    variance = everything.var(axis=0)
    keep = variance > limit("rounding.zero")
    if not keep.any():
        return None
    sizes = np.asarray([len(c) for c in columns], dtype=float)
    means = np.stack([c.mean(axis=0)[keep] for c in columns])
    ratio = (sizes[:, None] * (means - everything.mean(axis=0)[keep]) ** 2) / variance[keep]
    return float(np.average(ratio.mean(axis=0), weights=variance[keep]))
