"""The curves of a record that are worth drawing beside its findings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from castalia.diagnose.record.training_record import Look, Record

__all__ = ["curves_of"]

MOST = 400  # points of a line; more make a page large and look the same
Pairs = list[tuple[str | float, float]]


def curves_of(record: Record) -> dict[str, Pairs]:
    """Return losses and rates over steps, and gradients, updates and dead units over layers.

    Examples
    --------
    >>> curves_of(Record(losses=[2.0, 1.0]))
    {'loss': [(0, 2.0), (1, 1.0)]}
    """
    curves: dict[str, Pairs] = {
        "loss": _thinned(record.losses),
        "validation_loss": [(e.step, e.loss) for e in record.evaluations if e.loss is not None],
        "learning_rate": _changing([(look.step, look.lr) for look in record.looks]),
        **(_of_layers(record.looks) if record.looks else {}),
    }
    return {name: series for name, series in curves.items() if len(series) > 1}


def _thinned(losses: list[float]) -> Pairs:
    """Return evenly spaced losses, and the first that is not finite."""
    steps = set(np.linspace(0, len(losses) - 1, min(len(losses), MOST)).astype(int).tolist())
    broken = np.flatnonzero(~np.isfinite(losses))[:1].tolist() if losses else []
    return [(i, losses[i]) for i in sorted({*steps, *broken})]


def _changing(rates: Pairs) -> Pairs:
    """Return rates over steps; nothing where there is only one rate."""
    return rates if len({rate for _, rate in rates if rate == rate}) > 1 else []


def _of_layers(looks: list[Look]) -> dict[str, Pairs]:
    last = looks[-1]
    weights = [name for name in last.gradients if name.endswith("weight")]
    gradients = [(name, norm) for name in weights if (norm := last.gradients[name]) is not None]
    updates = [(name, last.updates[name]) for name in weights if name in last.updates]
    dead = [(unit.layer, _share(unit.active == 0)) for unit in last.units if unit.active.size]
    return {
        "gradient_norm": list(gradients),
        "update_over_weight": list(updates),
        "dead_fraction": list(dead) if any(share for _, share in dead) else [],
    }


def _share(flags: Iterable[bool]) -> float:
    return float(np.mean(np.asarray(flags)))
