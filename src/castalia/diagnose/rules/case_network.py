"""What a record shows of the network: its layers, its steps and its gradients."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np

from castalia.diagnose.record import UNROLLED, Look, Record, Weight
from castalia.diagnose.thresholds import limit

__all__ = ["Network"]

TINY = 200  # numbers in all weights of a network
NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")


class Network:
    """The part of a case on weights and gradients."""

    record: Record
    looks: list[Look]
    weights: dict[str, Weight]

    @cached_property
    def depth(self) -> list[str]:
        """Weight matrices in the order of computation, normalisations and embeddings left out."""
        order: list[str] = []
        for look in self.looks[:3]:
            for layer, kind, _ in look.structure:
                name = f"{layer}.weight" if layer else "weight"
                matrix = name in self.weights and len(self.weights[name].shape) >= 2
                if matrix and kind not in ("Embedding", "EmbeddingBag") and name not in order:
                    order.append(name)
        return order

    @cached_property
    def unrolled(self) -> dict[str, int]:
        """Layers that one pass applies over and over, as a recurrence does, and how often."""
        calls = Counter(layer for look in self.looks[:1] for layer, _, _ in look.structure)
        return {layer: n for layer, n in calls.items() if n >= UNROLLED}

    @cached_property
    def narrow(self) -> bool:
        """Whether the network is tiny, or all it knows of a row passes through one or two units."""
        sizes = [math.prod(w.shape) for w in self.record.weights]
        hidden = [self.weights[name].shape[0] for name in self.depth[:-1]]
        return sum(sizes) < TINY or min(hidden, default=TINY) <= 2

    def ratios(self, look: Look) -> np.ndarray:
        """Update-to-weight ratios of the weight matrices at one look."""
        names = [n for n in look.updates if n in self.weights and len(self.weights[n].shape) >= 2]
        return np.asarray([look.updates[n] for n in names], dtype=float)

    @cached_property
    def ratio(self) -> float:
        """Median update-to-weight ratio of the weight matrices, over layers and then over looks."""
        found = [float(np.median(r)) for look in self.looks if len(r := self.ratios(look))]
        return float(np.median(found)) if found else np.nan

    @cached_property
    def early_ratio(self) -> float:
        """The same over the first looks, where the rate shows before anything has settled."""
        found = [float(np.median(r)) for look in self.looks[:6] if len(r := self.ratios(look))]
        return float(np.median(found)) if found else np.nan

    @cached_property
    def longest(self) -> float:
        """Largest of the same over the first looks; NaN where none is known."""
        found = [float(np.median(r)) for look in self.looks[:8] if len(r := self.ratios(look))]
        return max(found, default=np.nan)

    @cached_property
    def travelled(self) -> np.ndarray:
        """How far each weight matrix that moved is from its start, over its size there."""
        return np.asarray([w.travelled for w in self._moved], dtype=float)

    @cached_property
    def began(self) -> np.ndarray:
        """Size of each of them at the start over the usual 1/√(3 fan-in); 1 where unknown."""
        sizes = self.looks[0].weights if self.looks else {}
        usual = [(3 * np.prod(w.shape[1:])) ** -0.5 for w in self._moved]
        return np.asarray(
            [sizes.get(w.name, one) / one for w, one in zip(self._moved, usual, strict=True)]
        )

    @property
    def _moved(self) -> list[Weight]:
        matrices = [w for w in self.record.weights if len(w.shape) >= 2 and w.moved]
        return [w for w in matrices if w.travelled is not None]

    @cached_property
    def promises(self) -> np.ndarray:
        """Share of the loss that each sampled step promises to take away: minus gradient by step.

        It is free of the scales of loss, gradients and weights.
        """
        found = []
        for look in self.looks:
            g, step = look.gradient, look.update
            if g is not None and step is not None and len(g) == len(step):
                found.append(-float(g @ step) / self._size_of_loss(look))
        return np.asarray(found)

    def _size_of_loss(self, look: Look) -> float:
        """Return the size of the loss; one that crosses zero has none of its own there."""
        first = next((abs(x) for x in self.record.losses if np.isfinite(x)), np.nan)
        return float(max(abs(look.loss), limit("case.trifle") * first)) or np.nan

    @cached_property
    def promise(self) -> float:
        """Median of the promises; NaN where none is known, or no number."""
        return float(np.median(self.promises)) if len(self.promises) else np.nan

    @cached_property
    def early_promise(self) -> float:
        """The same over the first looks."""
        return float(np.median(self.promises[:6])) if len(self.promises) else np.nan

    @cached_property
    def overshoots(self) -> bool:
        """Whether the very first step promises more than the whole loss, which none can keep."""
        whole = len(self.promises) == len(self.looks) > 0 and self.looks[0].step == 0
        return whole and bool(self.promises[0] > 1)

    @cached_property
    def sensitivity(self) -> np.ndarray:
        """Relative change of the loss over that of the weights, at each look, to first order."""
        found = []
        for look in self.looks:
            sizes = {
                n: look.weights.get(n, 0.0) * np.sqrt(_numbers(w)) for n, w in self.weights.items()
            }
            slopes = {n: g for n, g in look.gradients.items() if g is not None and n in sizes}
            total = sum(g * sizes[n] for n, g in slopes.items() if sizes[n] > 0)
            found.append(total / self._size_of_loss(look) if look.weights else np.nan)
        return np.asarray(found)

    @cached_property
    def turning(self) -> float:
        """Mean cosine between the gradients of one step and the next; near -1: back and forth."""
        found, looked_at = [], {look.step for look in self.looks}
        for look in self.looks:
            a, b = look.gradient, look.next_gradient
            if look.step + 1 in looked_at:
                continue  # at the start, before anything has settled
            if a is not None and b is not None and len(a) == len(b) and len(a) > 1:
                size = float(np.linalg.norm(a) * np.linalg.norm(b))
                if np.isfinite(size) and size > 0:
                    found.append(float(a @ b) / size)
        return float(np.mean(found)) if len(found) >= 2 else np.nan

    @cached_property
    def totals(self) -> np.ndarray:
        """Norm of the whole gradient at each look."""
        found = []
        for look in self.looks:
            norms = np.asarray([v for v in look.gradients.values() if v is not None], dtype=float)
            found.append(float(np.sqrt((norms**2).sum())) if len(norms) else np.nan)
        return np.asarray(found)

    @cached_property
    def spike(self) -> float:
        """Largest over median norm of the gradient; infinite where one overflowed."""
        if len(self.totals) and np.isinf(self.totals).any():
            return np.inf
        finite = self.totals[np.isfinite(self.totals)]
        if len(finite) < 4 or np.median(finite) <= 0:
            return np.nan
        return float(finite.max() / np.median(finite))

    @cached_property
    def recurrent(self) -> tuple[str, float, int] | None:
        """Of a recurrent layer: its name, what a signal keeps from step to step, and the steps.

        The factor is the spectral radius of the recurrent weights at the start times the mean
        slope of the activation.
        """
        record, chains = self.record, self.looks[0].chains if self.looks else None
        steps = record.input_shape[0] if len(record.input_shape) >= 2 else 0
        for weight in record.weights:
            if weight.radius is None:
                continue
            layer = weight.name.rpartition(".")[0]
            cell = weight.kind in ("RNN", "RNNCell")
            # A layer that is called row by row is no recurrence: its calls do not feed each other.
            calls = self.unrolled.get(layer, 0) if chains is None else chains.get(weight.name, 0)
            if cell or calls >= UNROLLED:
                return layer, weight.radius * self._slope, max(steps if cell else 0, calls)
        return None

    @cached_property
    def _slope(self) -> float:
        """Mean slope of the bounded activations at the start; 1 where there are none."""
        found = []
        for unit in (u for look in self.looks[:3] for u in look.units if not u.gate):
            square = unit.std**2 + unit.mean**2
            if unit.kind == "tanh":
                found.append(1 - square)  # tanh' = 1 - tanh²
            elif unit.kind == "sigmoid":
                found.append(unit.mean - square)  # σ' = σ - σ²
        return float(np.mean(found)) if found else 1.0

    @cached_property
    def weights_radius(self) -> float:
        """Spectral radius of the recurrent weights at the start; 0 where there are none."""
        if self.recurrent is None:
            return 0.0
        layer = self.recurrent[0]
        found = [w.radius for w in self.record.weights if w.name.startswith(layer) and w.radius]
        return max(found, default=0.0)

    @cached_property
    def normalised(self) -> bool:
        """Whether the network has normalising layers."""
        return any(any(n in layer.kind for n in NORMS) for layer in self.record.layers)

    @cached_property
    def steps_seen(self) -> bool:
        """Whether steps were seen: of an optimizer, or made by hand."""
        return bool(self.optimizer) or any(any(look.updates.values()) for look in self.looks)

    @property
    def optimizer(self) -> Any:
        """The first optimizer, or None."""
        return self.record.optimizers[0] if self.record.optimizers else None

    @cached_property
    def lr(self) -> float:
        """Highest learning rate of the first optimizer: a schedule may begin and end near zero."""
        if not self.optimizer:
            return np.nan
        seen = [look.lr for look in self.looks if np.isfinite(look.lr)]
        return float(max(self.optimizer.first, self.optimizer.lr, *seen, 0.0))

    @cached_property
    def dropout(self) -> tuple[str, float]:
        """Where most is dropped, by a layer or by a function, and which share."""
        layers = [(one.name, one.settings.get("p", 0.0)) for one in self.record.layers]
        by_function = ("", self.record.final.get("dropout", 0.0))
        return max([by_function, *layers], key=lambda one: one[1])

    @cached_property
    def weight_decay(self) -> float:
        """Weight decay of the first optimizer over what is strong for its kind."""
        if not self.optimizer:
            return 0.0
        decoupled = self.optimizer.kind in ("AdamW",)
        bar = limit("decay.decoupled" if decoupled else "decay.strong")
        return float(self.optimizer.weight_decay / bar)

    @cached_property
    def smothered(self) -> bool:
        """Whether dropout or decay is beyond all custom: a cause of its own, whatever else."""
        return self.dropout[1] > limit("dropout.far") or self.weight_decay > limit("decay.far")

    @cached_property
    def annealed(self) -> bool:
        """Whether a schedule took the rate down to next to nothing, as planned for the end."""
        return bool(self.optimizer) and self.optimizer.lr < limit("rate.annealed") * self.lr


def _numbers(weight: Weight) -> float:
    return float(math.prod(weight.shape))
