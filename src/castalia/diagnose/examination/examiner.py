"""Active examination: short trials on copies, where watching cannot tell."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from castalia.diagnose.causes import arrange
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.examination.baseline_errors import Baselines, baselines
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.guards import own_randomness, seed_torch, untouched
from castalia.diagnose.examination.outcomes import Outcome, joined
from castalia.diagnose.examination.probes.baseline_probe import baseline_probe
from castalia.diagnose.examination.probes.causality_probe import causality
from castalia.diagnose.examination.probes.column_probe import columns
from castalia.diagnose.examination.probes.duplicate_probe import duplicates
from castalia.diagnose.examination.probes.generalisation_probe import generalisation
from castalia.diagnose.examination.probes.giveaway_probe import giveaway
from castalia.diagnose.examination.probes.gradient_check_probe import gradient_check
from castalia.diagnose.examination.probes.imbalance_probe import imbalance
from castalia.diagnose.examination.probes.input_probe import input_blind
from castalia.diagnose.examination.probes.label_noise_probe import label_noise
from castalia.diagnose.examination.probes.lr_range_probe import lr_range_probe
from castalia.diagnose.examination.probes.mode_probe import modes
from castalia.diagnose.examination.probes.more_data_probe import more_data_probe
from castalia.diagnose.examination.probes.output_size_probe import sizes
from castalia.diagnose.examination.probes.regularisation_probe import regularisation
from castalia.diagnose.examination.probes.scale_probe import scales
from castalia.diagnose.examination.probes.shift_probe import shift
from castalia.diagnose.examination.probes.shuffled_label_probe import shuffled_labels
from castalia.diagnose.examination.probes.tiny_fit_probe import tiny_fit_probe
from castalia.diagnose.examination.row_reader import Unreadable, read_rows
from castalia.diagnose.examination.task_inference import TASKS
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.thresholds import limit
from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing, shorten

__all__ = ["PROBES", "examine", "outcomes"]

# In this order: the quick ones first, then those on which later ones build. The number is the share
# of the seconds that a probe may use, of those that all later ones have not yet asked for.
PROBES: dict[str, tuple[Callable[[Subject], Outcome], float]] = {
    "sizes": (sizes, 0.5),
    "columns": (columns, 1.0),
    "scales": (scales, 0.5),
    "causality": (causality, 0.5),
    "gradient-check": (gradient_check, 2.0),
    "tiny-fit": (tiny_fit_probe, 5.0),
    "lr-range": (lr_range_probe, 5.0),
    "duplicates": (duplicates, 1.0),
    "telling-column": (giveaway, 1.5),
    "baseline-test": (baseline_probe, 5.0),
    "input-blind": (input_blind, 0.5),
    "imbalance": (imbalance, 0.5),
    "modes": (modes, 0.5),
    "generalisation": (generalisation, 0.5),
    "regularisation": (regularisation, 3.0),
    "shuffle-test": (shuffled_labels, 1.0),
    "shift": (shift, 1.5),
    "label-noise": (label_noise, 2.5),
    "more-data-test": (more_data_probe, 3.0),
}
NEED_VALIDATION = ("CST206 (shared rows)", "CST207", "CST208", "CST401", "CST403", "CST405")
HARMLESS_IF_WELL = ("CST201", "CST202", "CST203", "CST404")


def examine(
    module: nn.Module | Callable[[], Sequence[Any]],
    loss_fn: Callable[..., Any] | None = None,
    train: Any = None,
    validation: Any = None,
    *,
    optimizer: Any = None,
    task: str | None = None,
    seconds: float = 30.0,
    probes: Iterable[str] | None = None,
    seed: int = 0,
) -> Diagnosis:
    """Find out what is wrong with a training by trying things out on copies of it.

    Works on deep copies and on samples of at most 2,000 rows; module, optimizer, data and random
    states are as they were afterwards, bit for bit. A probe that fails leaves a note.

    Parameters
    ----------
    module
        The network, before or after training. Or a function without arguments that returns
        ``(module, loss_fn, train, validation, optimizer)``; the last two may be missing.
    loss_fn
        Called as ``loss_fn(outputs, targets)``.
    train, validation
        ``(X, y)`` of tensors or arrays, a dataset of pairs, or a loader of batches ``(x, y)``.
    optimizer
        An optimizer of the module, whose kind and settings the trials copy; a function from
        parameters to an optimizer; or None for Adam at 1e-3.
    task
        "binary", "multiclass", "multilabel", "regression", "lm", "seq" or "vae"; None infers it
        from the loss, the outputs and the targets.
    seconds
        Time to spend; each probe gets a share of what is left.
    probes
        Names of the probes to make; None makes all.
    seed
        Of all that is drawn.

    Returns
    -------
    Diagnosis
        Causes first, symptoms under them; notes say what could not be checked.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
    >>> X = torch.randn(120, 3)
    >>> y = (X[:, 0] + X[:, 1] > 0).long()
    >>> sgd = torch.optim.SGD(net.parameters(), lr=300.0)
    >>> found = examine(net, nn.CrossEntropyLoss(), (X, y), optimizer=sgd, probes=["lr-range"])
    >>> found.codes[0], found.findings[0].name
    ('CST101', 'learning-rate-too-high')
    """
    chosen = _chosen(probes)
    subject, done, notes = outcomes(
        module, loss_fn, train, validation, optimizer, task, seconds, chosen, seed
    )
    whole = joined("examine", done, notes)
    well = subject is not None and _well(subject, done)
    return Diagnosis(arrange(map(_milder, whole.findings) if well else whole.findings), whole.notes)


def outcomes(
    module: Any,
    loss_fn: Any,
    train: Any,
    validation: Any,
    optimizer: Any,
    task: str | None,
    seconds: float,
    probes: Sequence[str],
    seed: int,
) -> tuple[Subject | None, list[Outcome], list[str]]:
    """Make some probes; return the subject, what each saw, and notes about the whole."""
    if not isinstance(module, nn.Module) and callable(module) and loss_fn is None:
        made = tuple(module())
        module, loss_fn, train = made[:3]
        validation, optimizer = (*made[3:5], *(validation, optimizer)[len(made) - 3 :])
    _check(module, loss_fn, train, optimizer, task, seconds)
    modules = [m for m in (module, loss_fn) if isinstance(m, nn.Module)]
    with (
        own_randomness(seed),
        untouched(modules),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        torch.enable_grad(),
    ):
        warnings.simplefilter("ignore")
        try:
            rows = read_rows(train, "train", seed)
            held = None if validation is None else read_rows(validation, "validation", seed + 1)
            subject = Subject(module, loss_fn, rows, held, optimizer, task, seconds, seed)
        except Unreadable as error:
            return None, [], [f"Nothing was examined: {error}"]
        except Exception as error:  # a module that cannot be copied, a dataset that fails
            return None, [], [f"Nothing was examined: {_said(error)}"]
        return subject, _run(subject, probes), _remarks(subject, probes)


def _run(subject: Subject, probes: Sequence[str]) -> list[Outcome]:
    done = []
    for count, name in enumerate(probes):
        probe, share = PROBES[name]
        rest = sum(PROBES[other][1] for other in probes[count:])
        if subject.clock.over:
            done.append(Outcome(name, notes=(f"{name}: no time was left.",), ran=False))
            continue
        # A quick probe leaves its time to the rest, so a slow one may take twice its part.
        with subject.clock.share(min(1.0, 2 * share / rest)):
            try:
                seed_torch(subject.seed)
                done.append(probe(subject))
            except Exception as error:  # of the user's code or of ours: never theirs to handle
                done.append(Outcome(name, notes=(f"{name}: {_said(error)}",), ran=False))
    return done


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {shorten(str(error), 200)}"


def _remarks(subject: Subject, probes: Sequence[str]) -> list[str]:
    notes = []
    if subject.problem is not None:
        notes.append(f"The module or its loss cannot be run on the data: {subject.problem}")
    if subject.held is None and len(probes) == len(PROBES):
        notes.append(
            f"Without validation data these cannot be found: {', '.join(NEED_VALIDATION)}."
        )
    if subject.task is None:
        notes.append(f"The task could not be inferred; say task= one of {listing(TASKS)}.")
    return notes


def _milder(found: Finding) -> Finding:
    """What usually does harm has done none to a network that does as well as it could."""
    return replace(found, severity="info") if found.code in HARMLESS_IF_WELL else found


def _well(subject: Subject, done: Sequence[Outcome]) -> bool:
    """Whether the user's own network is trained and no baseline is better."""
    known: Baselines | None = subject.made.get(baselines)
    network = next((o.numbers.get("network") for o in done if o.name == "baseline-test"), None)
    if known is None or network is None or not subject.trained:  # all known by now
        return False
    best = float(known.errors[known.best].mean())
    return float(network) <= limit("examine.well_ratio") * best + limit("examine.well_margin")


def _chosen(probes: Iterable[str] | None) -> list[str]:
    if probes is None:
        return list(PROBES)
    wanted = [probes] if isinstance(probes, str) else list(probes)
    for name in wanted:
        if name not in PROBES:
            raise InvalidParameter(
                f"examine: `probes` must be among {listing(PROBES, most=30)}; got {name!r}."
                f"{did_you_mean(str(name), PROBES)}"
            )
    return [name for name in PROBES if name in wanted]


def _check(
    module: Any, loss_fn: Any, train: Any, optimizer: Any, task: str | None, seconds: float
) -> None:
    if not isinstance(module, nn.Module):
        raise InvalidParameter(
            f"examine: `module` must be a torch.nn.Module, or a function that returns (module, "
            f"loss_fn, train, validation, optimizer); got {type(module).__name__}."
        )
    if not callable(loss_fn):
        raise InvalidParameter(
            f"examine: `loss_fn` must be called as loss_fn(outputs, targets); got {loss_fn!r}."
        )
    if train is None:
        raise InvalidParameter("examine: `train` must be (X, y), a dataset or a loader; got None.")
    if task is not None and task not in TASKS:
        raise InvalidParameter(
            f"examine: `task` must be {listing(TASKS)}; got {task!r}.{did_you_mean(task, TASKS)}"
        )
    if not seconds > 0:
        raise InvalidParameter(f"examine: `seconds` must be positive; got {seconds!r}.")
    if not (
        optimizer is None or callable(optimizer) or isinstance(optimizer, torch.optim.Optimizer)
    ):
        raise InvalidParameter(
            "examine: `optimizer` must be a torch optimizer, a function from parameters to one, or "
            f"None; got {type(optimizer).__name__}."
        )
