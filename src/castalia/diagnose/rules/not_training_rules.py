"""CST110: parameters that never change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.record import Weight
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import agreeing, listing

__all__ = ["frozen"]

LEAST = 200  # numbers of a matrix that is judged
THAW = "Set requires_grad_(True), or load trained weights before freezing."
HAND_OVER = "Build the optimizer from the parameters of this very module, after its last change."
KEEP_GRAPH = "Keep the graph: no detach(), .data, .item(), numpy() or torch.tensor() on the way."


@dataclass(frozen=True)
class Reason:
    """Why parameters never change.

    Attributes
    ----------
    words, cure
        The end of the sentence about them, and what to do.
    meant
        Whether it may be meant, as random features are.
    spare
        Whether a few such parameters are a layer left over, which nothing depends on.
    doubtful
        Whether they are too small to tell what they hold.
    """

    words: str
    cure: str
    meant: bool = False
    spare: bool = False
    doubtful: bool = False


UNKNOWN = Reason("{are} not known to the optimizer", HAND_OVER)
CUT_OFF = Reason(
    "{are} cut off from the loss (detached, converted, or not used in forward)",
    KEEP_GRAPH,
    spare=True,
)
AS_DRAWN = Reason("{are} frozen as {they} {were} initialised", THAW, meant=True)
SMALL = Reason(
    "{are} frozen, though the optimizer was given {them}", THAW, meant=True, doubtful=True
)


def frozen(case: Case) -> Iterator[Finding]:
    """Parameters that are frozen, detached or unknown to the optimizer."""
    weights = case.record.weights
    if case.record.final.get("without_graph") and not case.steps:
        yield finding(
            "CST110",
            "error",
            0.95,
            "backward() was called on a loss that depends on no parameter.",
            KEEP_GRAPH,
            Evidence("calls of backward() without a graph", 1.0, 0.0),
        )
    if not weights or case.steps < 2 or case.broken:
        return
    still = [w for w in weights if w.moved is False]
    strangers = int(case.record.final.get("strangers_still", 0))
    if strangers and not case.adversarial and not case.acts:
        yield finding(
            "CST110",
            "error" if case.poor else "warning",
            0.9,
            ("A weight matrix" if strangers == 1 else f"{strangers} weight matrices")
            + agreeing(
                strangers,
                " that the loss depends on never change{s}: the module does not know {them}.",
            ),
            "Keep layers in nn.ModuleList or nn.ModuleDict, not in a plain list or dict.",
            Evidence("matrices unknown to the module that never change", strangers, 0),
        )
        return
    if not still:
        return
    if len(still) == len(weights):
        yield _nothing_moves(case)
        return
    groups = (
        (UNKNOWN, [w for w in still if w.trainable and not w.optimized]),
        (CUT_OFF, [w for w in still if w.trainable and w.optimized and _unreached(case, w)]),
        (AS_DRAWN, _as_drawn(still)),
        (SMALL, _small_ones(still)),
    )
    for reason, found in groups:
        total = sum(_size(w) for w in weights)
        share = sum(_size(w) for w in found) / max(total, 1)
        if found and share > 0:
            few = share <= limit("weights.few")
            idle = (few and reason.spare) or reason.doubtful
            mild = few or reason.meant
            yield finding(
                "CST110",
                "info" if idle else "warning" if mild and not case.poor else "error",
                0.6 if few else 0.93,
                f"{listing([w.name for w in found], 'and', 4)} "
                + agreeing(len(found), "never change{s}: {they} " + reason.words + "."),
                reason.cure,
                Evidence("share of the parameters that never change", share, 0.0),
                where=found[0].name,
            )
            return


def _as_drawn(still: list[Weight]) -> list[Weight]:
    """Return frozen matrices, if all lie as drawn, and norms as made: learning leaves its traces.

    Tables of positions are made, not learnt, and so are rows that are all equal. Where all are too
    small to tell, they must at least have been given to the optimizer, which nobody does with what
    is to stay.
    """
    frozen = [w for w in still if not w.trainable]
    cold = [w for w in frozen if len(w.shape) >= 2]
    drawn = [w for w in cold if w.fresh]
    judged = [w for w in cold if _is_telling(w) and not _is_table(w) and not _constant(w)]
    norms = [w for w in frozen if "Norm" in w.kind and len(w.shape) == 1]
    known = bool(judged) or all(w.optimized for w in drawn)
    return drawn if known and all(w.fresh for w in [*judged, *norms]) else []


def _small_ones(still: list[Weight]) -> list[Weight]:
    """Return frozen matrices that the optimizer holds, if all are too small to look drawn."""
    frozen = [w for w in still if not w.trainable and len(w.shape) >= 2]
    small = all(w.optimized and _size(w) < LEAST for w in frozen)
    return frozen if small else []


def _constant(weight: Weight) -> bool:
    """Whether all its rows are the same: zeros, say, which training would have made differ."""
    return weight.rows_equal_at_start == 1


def _is_table(weight: Weight) -> bool:
    """Whether it holds a row for each word or place, of which one may be set to zero."""
    return weight.kind.endswith("Embedding")


def _is_telling(weight: Weight) -> bool:
    """Whether a matrix has enough rows and columns to tell chance from learning."""
    return _size(weight) >= LEAST and 1 < weight.shape[0] < _size(weight)


def _nothing_moves(case: Case) -> Finding:
    weights = case.record.weights
    optimizer = case.optimizer
    if optimizer is not None and not any(w.optimized for w in weights):
        words, cure = "the optimizer holds none of them", HAND_OVER
    elif not any(w.trainable for w in weights):
        words, cure = "all are frozen", THAW
    elif optimizer is not None and optimizer.most == 0:
        words, cure = "the learning rate is 0", "Set a learning rate above 0."
    elif not any(any(v for v in look.gradients.values()) for look in case.looks):
        words, cure = "none of them gets a gradient", KEEP_GRAPH
    else:
        words, cure = "no step of the optimizer changes them", "Call optimizer.step()."
    sure = 0.97 if optimizer is not None else 0.6
    if case.adversarial and cure is KEEP_GRAPH:
        sure = min(sure, 0.85)  # it may be the other network that passes none on
    return finding(
        "CST110",
        "error",
        sure,
        f"None of the {len(weights)} parameters changes: {words}."
        if len(weights) > 1
        else f"The only parameter never changes: {words}.",
        cure,
        Evidence("share of the parameters that never change", 1.0, 0.0),
        where=weights[0].name,
    )


def _unreached(case: Case, weight: Weight) -> bool:
    """Whether no looked-at loss depended on it."""
    got = [look.gradients.get(weight.name) for look in case.looks]
    return weight.name not in case.record.used and not any(got)


def _size(weight: Weight) -> int:
    size = 1
    for n in weight.shape:
        size *= n
    return size
