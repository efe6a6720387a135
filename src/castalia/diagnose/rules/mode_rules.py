"""CST115 and CST116: batch statistics, and layers in the wrong mode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number, plural

__all__ = ["batch_statistics", "wrong_mode"]


def batch_statistics(case: Case) -> Iterator[Finding]:
    """Batch normalisation on too few numbers, or with running statistics far from the batch's."""
    looks = [look for look in case.looks if look.batch_norms]
    if not looks:
        return
    names = list(looks[-1].batch_norms)
    least = {
        n: np.median([lk.batch_norms[n][0] for lk in looks if n in lk.batch_norms]) for n in names
    }
    small = min(names, key=lambda n: least[n])
    if least[small] <= limit("batch.norm"):
        yield finding(
            "CST115",
            "warning",
            0.88,
            f"`{small}` normalises over {plural(int(least[small]), 'number')} a channel.",
            "Use larger batches, or GroupNorm or LayerNorm, which need no batch.",
            Evidence(
                "numbers per channel in a batch", float(least[small]), limit("batch.norm"), False
            ),
            where=small,
        )
        return
    yield from _hasty(case)
    if case.adversarial or case.signed:
        return  # what a generator makes changes from step to step
    late = [look for look in looks if look.step >= 30][-4:]
    if len(late) < 2:
        return
    known = {n: [lk.batch_norms[n][1] for lk in late if n in lk.batch_norms] for n in names}
    far = {n: float(np.median(d)) for n, d in known.items() if d and np.isfinite(d).all()}
    worst = max(far, key=lambda n: far[n], default=None)
    if worst is not None and far[worst] > limit("batch.running"):
        yield finding(
            "CST115",
            "warning",
            0.85,
            f"The running mean of `{worst}` is off the mean of its batches by "
            f"{number(far[worst], 2)} times their spread: evaluation sees another network "
            "than training.",
            _faster(case, worst),
            Evidence("distance of running and batch mean", far[worst], limit("batch.running")),
            where=worst,
        )


def _faster(case: Case, name: str) -> str:
    """Say how the running statistics would arrive, with the momentum that is set."""
    found = [layer for layer in case.record.layers if layer.name == name]
    momentum = found[0].settings.get("momentum") if found else None
    if momentum is not None and momentum < limit("batch.slow"):
        return f"momentum={number(momentum)} → 0.1 in the batch norm, or train longer."
    return "Train longer, or evaluate with statistics gathered over the training rows once more."


def _hasty(case: Case) -> Iterator[Finding]:
    """Running statistics that are those of the last batch."""
    for layer in case.record.layers:
        momentum = layer.settings.get("momentum")
        if momentum is not None and "BatchNorm" in layer.kind and momentum > limit("batch.hasty"):
            yield finding(
                "CST115",
                "warning",
                0.8,
                f"With a momentum of {number(momentum)} the running statistics of `{layer.name}` "
                "are those of the last batch alone.",
                f"momentum={number(momentum)} → {number(1 - momentum, 2)} (in torch it weights "
                "the new batch, in other libraries the old value).",
                Evidence("momentum of the batch norm", momentum, limit("batch.hasty")),
                where=layer.name,
            )
            return


def wrong_mode(case: Case) -> Iterator[Finding]:
    """Evaluation in training mode, or training in evaluation mode."""
    record = case.record
    sensitive = [
        layer
        for layer in record.layers
        if "BatchNorm" in layer.kind or layer.settings.get("p", 0) > 0
    ]
    change = record.final.get("random_evaluation", 0.0)
    if change > limit("modes.random") and record.asked_again < 2:
        yield finding(
            "CST116",
            "warning",
            0.93,
            "In evaluation mode the network answers the same rows differently: a dropout called as "
            "a function stays on.",
            "Call F.dropout(x, p, training=self.training), or use nn.Dropout.",
            Evidence("difference of two answers over their size", change, limit("modes.random")),
        )
        return
    trained, evaluated = record.trained_in_training_mode, record.trained_in_evaluation_mode
    if not sensitive:
        if evaluated > limit("modes.steps") * (trained + evaluated) and _called_off(case):
            yield _in_evaluation_mode(trained, evaluated, "a dropout switched off", None)
        return
    where = sensitive[0].name
    validated = record.validated_in_training_mode
    if validated and validated > record.validated_in_evaluation_mode:
        yield finding(
            "CST116",
            "warning",
            0.93,
            f"Validation ran in training mode, with `{where}` ({sensitive[0].kind}) active.",
            "Call model.eval() before validation and model.train() after it.",
            Evidence("validations in training mode", validated, 0.0),
            where=where,
        )
    elif evaluated > limit("modes.steps") * (trained + evaluated) and evaluated > 2:
        norm = "BatchNorm" in sensitive[0].kind
        off = "on its running statistics" if norm else "switched off"
        what = f"`{where}` ({sensitive[0].kind}) {off}"
        yield _in_evaluation_mode(trained, evaluated, what, where)
    elif record.evaluations == [] and _silently(case):
        yield finding(
            "CST116",
            "warning",
            0.7,
            f"The network was called without gradients in training mode, with `{where}` active.",
            "Call model.eval() before evaluation and model.train() after it.",
            Evidence(
                "calls without gradients in training mode", record.silent_in_training_mode, 0.0
            ),
            where=where,
        )


def _called_off(case: Case) -> bool:
    """Whether a dropout that is called as a function was switched off while gradients were on."""
    return bool(case.record.final.get("dropout_off")) and case.steps > 2


def _in_evaluation_mode(trained: int, evaluated: int, what: str, where: str | None) -> Finding:
    share, steps = evaluated / (trained + evaluated), trained + evaluated
    return finding(
        "CST116",
        "warning",
        0.93,
        f"{evaluated} of {steps} training steps ran in evaluation mode, with {what}.",
        "Call model.train() at the start of each epoch.",
        Evidence("share of steps in evaluation mode", share, limit("modes.steps")),
        where=where,
    )


def _silently(case: Case) -> bool:
    """Whether calls without gradients in training mode are too rare to belong to the steps.

    Where more of them are in evaluation mode, modes are minded: the others set statistics, say.
    """
    silent, minded = case.record.silent_in_training_mode, case.record.silent_in_evaluation_mode
    few = silent < limit("modes.silent") * case.steps
    return silent > minded and not case.adversarial and few
