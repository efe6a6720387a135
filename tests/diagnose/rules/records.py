"""Records built by hand: a healthy training, in which a test plants one number.

The network is a perceptron, layers "0", "2", "4" …, that met 8 batches of 40 rows with 5 columns.
Outputs are made so that training took away a given share of the loss of guessing, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from castalia.diagnose import Finding
from castalia.diagnose.record import (
    Evaluation,
    Head,
    Layer,
    Look,
    OptimizerFacts,
    Record,
    Rows,
    Units,
    Weight,
)
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit

BATCHES, ROWS, COLUMNS, CLASSES, WIDTH, STEPS = 8, 40, 5, 4, 8, 200
LR = 0.1
LOOKED_AT = (0, 1, 2, 4, 8, 16, 40, 80, 120, 160)


# ---- asking a rule ----


def ask(rule: Callable[[Case], Iterator[Finding]], record: Record) -> list[Finding]:
    """Return what one rule finds; warnings of numpy are silenced as `judge` silences them."""
    with np.errstate(all="ignore"):
        return list(rule(Case(record)))


def only(rule: Callable[[Case], Iterator[Finding]], record: Record) -> Finding:
    """Return the one finding of a rule."""
    found = ask(rule, record)
    assert len(found) == 1, f"{rule.__name__} found {[f.code for f in found]}"
    return found[0]


def above(name: str) -> float:
    """Return a number just above a threshold."""
    return limit(name) + 0.01 * abs(limit(name))


def below(name: str) -> float:
    """Return a number just below a threshold."""
    return limit(name) - 0.01 * abs(limit(name))


# ---- numbers ----


def standard(
    rows: int, columns: int, seed: int = 0, besides: np.ndarray | None = None
) -> np.ndarray:
    """Return columns of mean 0 and variance 1, uncorrelated: exactly, not on average.

    They are uncorrelated with those of `besides`, too.
    """
    x = np.random.default_rng(seed).standard_normal((rows, columns))
    x = x if besides is None else np.hstack([besides, x])
    return np.linalg.qr(x - x.mean(axis=0))[0][:, -columns:] * np.sqrt(rows)


def falling(start: float = 1.4, end: float = 0.07, steps: int = STEPS) -> list[float]:
    """Return losses that fall fast at first and are level at the end."""
    return list(end + (start - end) * np.exp(-np.linspace(0, 12, steps)))


def stairs(*levels: float, steps: int = STEPS) -> list[float]:
    """Return losses that stay at each level for as many steps."""
    return list(np.repeat(np.asarray(levels, dtype=float), steps // len(levels)))


def geometric(ratio: float, layers: int) -> np.ndarray:
    """Return gradients by depth whose first quarter is `ratio` times the last, in the median."""
    first = (max(1, layers // 4) - 1) / 2
    last = layers - 1 - first
    return ratio ** ((last - np.arange(layers)) / (last - first))


def logits(labels: np.ndarray, loss: float, classes: int = CLASSES) -> np.ndarray:
    """Return outputs whose cross-entropy on each row is `loss`."""
    margin = -np.log(max(np.expm1(loss), 1e-300) / (classes - 1))
    return margin * np.eye(classes)[labels]


# ---- parts of a record ----


def units(
    layer: str,
    kind: str = "relu",
    std: float = 1.0,
    active: Sequence[float] = (0.5,) * WIDTH,
    saturated: Sequence[float] = (),
    gate: bool = False,
) -> Units:
    """Return what the units of a layer did."""
    return Units(layer, kind, 0.5, std, np.asarray(active), np.asarray(saturated), gate)


def share_of(share: float, of: int = 1000) -> np.ndarray:
    """Return zeros for that share of the units, and halves for the others."""
    return np.where(np.arange(of) < round(share * of), 0.0, 0.5)


def network(record: Record, depth: int = 5, columns: int = COLUMNS, outputs: int = CLASSES) -> None:
    """Give a record a perceptron of so many linear layers."""
    sizes = [columns, *[WIDTH] * (depth - 1), outputs]
    record.layers, record.weights = [], []
    for i in range(depth):
        name = str(2 * i)
        record.layers += [Layer(name, "Linear"), Layer(str(2 * i + 1), "ReLU")]
        for kind, shape in (("weight", (sizes[i + 1], sizes[i])), ("bias", (sizes[i + 1],))):
            record.weights.append(Weight(f"{name}.{kind}", shape, True, True, "Linear", moved=True))
    record.layers.pop()
    record.used = {w.name for w in record.weights}
    for look in record.looks:
        look.structure = [(str(2 * i), "Linear", ()) for i in range(depth)]
        look.units = [units(str(2 * i)) for i in range(depth - 1)]
        look.weights = {w.name: 0.6 / np.sqrt(np.prod(w.shape[1:])) for w in record.weights}
    set_updates(record, 3e-3)
    set_gradients(record, np.full(depth, 0.01))


def set_updates(record: Record, ratio: float) -> Record:
    """Give every parameter the same update-to-weight ratio."""
    for look in record.looks:
        look.updates = {w.name: ratio for w in record.weights}
    return record


def set_gradients(record: Record, by_depth: np.ndarray) -> Record:
    """Give the weight matrices gradients of that root mean square; biases alike ones."""
    for look in record.looks:
        depth = [f"{layer}.weight" for layer, *_ in look.structure]
        for weight in record.weights:
            rms = by_depth[depth.index(weight.name)] if weight.name in depth else by_depth[-1]
            look.gradients[weight.name] = float(rms * np.sqrt(np.prod(weight.shape)))
        look.applied = dict(look.gradients)
    return record


def set_turning(record: Record, cosine: float) -> Record:
    """Let each gradient have that cosine with the next one."""
    for look in record.looks:
        look.gradient = np.asarray([1.0, 0.0])
        look.next_gradient = np.asarray([cosine, np.sqrt(1 - cosine**2)])
    return record


def set_units(record: Record, *found: Units) -> Record:
    """Let these be the activations of every look."""
    for look in record.looks:
        look.units = list(found)
    return record


def set_head(record: Record, **changes: object) -> Record:
    """Change the end of the graph in every look."""
    for look in record.looks:
        look.head = replace(look.head or Head(), **changes)
    return record


def set_evaluations(
    record: Record, losses: Sequence[float], train: Sequence[float] | None = None
) -> Record:
    """Give validations at even distances."""
    steps = np.linspace(0, record.steps, len(losses) + 1)[1:].astype(int)
    train = [None] * len(losses) if train is None else train
    record.evaluations = [
        Evaluation(int(step), loss=loss, train_loss=fitted)
        for step, loss, fitted in zip(steps, losses, train, strict=True)
    ]
    return record


def batches(inputs: np.ndarray, outputs: np.ndarray | None, targets: np.ndarray | None) -> Rows:
    """Cut rows into batches, the last of which was met at the last step."""
    rows = Rows()
    steps = np.linspace(0, STEPS - 1, BATCHES).astype(int)
    cut = [None if v is None else np.array_split(v, BATCHES) for v in (inputs, outputs, targets)]
    for i, step in enumerate(steps):
        rows.add(int(step), *(None if part is None else part[i] for part in cut))
    return rows


def set_rows(
    record: Record,
    inputs: np.ndarray | None = None,
    outputs: np.ndarray | None = None,
    targets: np.ndarray | None = None,
) -> Record:
    """Replace some of the training rows, given as one array each."""
    for name, value in (("inputs", inputs), ("outputs", outputs), ("targets", targets)):
        if value is not None:
            setattr(record.train, name, np.array_split(value, BATCHES))
    return record


# ---- whole records ----


def _training(head: Head, losses: list[float] | None) -> Record:
    record = Record(module="Sequential", losses=falling() if losses is None else losses)
    record.looks = [
        Look(s, loss=record.losses[s], size=ROWS, lr=LR, head=head, stale=False, output_spread=1.0)
        for s in LOOKED_AT
        if s < record.steps
    ]
    network(record, outputs=head.outputs[-1])
    record.optimizers = [OptimizerFacts("SGD", LR, most=LR, first=LR)]
    record.trained_in_training_mode = record.steps
    record.validated_in_evaluation_mode = 5
    record.input_shape = (COLUMNS,)
    return set_evaluations(record, [0.6, 0.3, 0.15, 0.1, 0.1], [0.5, 0.25, 0.12, 0.08, 0.08])


def classification(learnt: float = 0.95, losses: list[float] | None = None) -> Record:
    """Return a training on four even classes that took away a share of the loss of guessing."""
    head = Head("cross_entropy", outputs=(ROWS, CLASSES), targets=(ROWS,), layer="8")
    record = _training(head, losses)
    n = BATCHES * ROWS
    labels = np.arange(n) % CLASSES
    outputs = logits(labels, (1 - learnt) * np.log(CLASSES))
    record.train = batches(standard(n, COLUMNS, 0), outputs, labels)
    record.validation = batches(standard(n, COLUMNS, 1), outputs, labels)
    return record


def regression(learnt: float = 0.95, losses: list[float] | None = None) -> Record:
    """Return a training by squared error that explains a share of the variance of the targets."""
    head = Head("mse", outputs=(ROWS, 1), targets=(ROWS, 1), layer="8")
    record = _training(head, losses)
    n = BATCHES * ROWS
    for name, seed in (("train", 0), ("validation", 1)):
        y = np.tile(standard(ROWS, 1), (BATCHES, 1))  # of variance 1 in each batch
        x = standard(n, COLUMNS, seed, besides=y)
        setattr(record, name, batches(x, y * (1 - np.sqrt(1 - learnt)), y))
    return record


def poor(losses: list[float] | None = None) -> Record:
    """Return a training that learnt nothing."""
    return classification(0.0, stairs(1.4) if losses is None else losses)


def set_promise(record: Record, share: float, loss: float = 1.0, weights: float = 1.0) -> Record:
    """Let each step promise that share of the loss, whatever losses and weights are measured in."""
    record.losses[:] = list(loss * np.asarray(record.losses))
    for look in record.looks:
        size = abs(record.losses[min(look.step, len(record.losses) - 1)])
        look.loss = loss * look.loss if np.isfinite(look.loss) else size
        look.gradient = np.full(4, loss / weights)
        look.update = np.full(4, -share * abs(look.loss) * weights / (4 * loss))
        look.updates = dict.fromkeys(look.updates, 1e-2)
    return record
