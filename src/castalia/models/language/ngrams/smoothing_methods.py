"""Ways to share out probability between n-grams that were seen and those that were not.

Each takes the counted levels and fills a table; c is a context, w a word, N(c) the total of the
counts after c, V the number of words that can come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from castalia.models.language.ngrams.ngram_counts import Level
from castalia.models.language.ngrams.ngram_table import Table

__all__ = ["additive", "floor", "katz", "kneser_ney", "likelihood", "linear", "stupid"]

STUPID = 0.4  # what a stupid backoff costs a step: Brants et al. 2007


@dataclass(frozen=True)
class Counted:
    """Counted levels and which words can come, (V,)."""

    levels: list[Level]
    outcomes: np.ndarray
    boundaries: bool

    @property
    def even(self) -> np.ndarray:
        """The uniform distribution, (V,)."""
        return self.outcomes / self.outcomes.sum()

    def counts(self, k: int) -> np.ndarray:
        """Return the counts of level k, from 0; signs that cannot come count nothing."""
        return self._cleaned(k, self.levels[k].counts)

    def continuations(self, k: int) -> np.ndarray:
        """Return in how many contexts each n-gram was seen; at a text's beginning, how often."""
        level = self.levels[k]
        if k + 1 == len(self.levels):
            return self.counts(k)
        before = np.bincount(self.levels[k + 1].suffix, minlength=len(level.keys))
        begun = level.counts if self.boundaries else before + 1
        return self._cleaned(k, np.where(level.initial, begun, before))

    def _cleaned(self, k: int, counts: np.ndarray) -> np.ndarray:
        return np.where(self.outcomes, counts, 0) if k == 0 else counts

    def totals(self, k: int, values: np.ndarray) -> np.ndarray:
        """Add up values of level k over the words after each context."""
        n = 1 if k == 0 else len(self.levels[k - 1].keys)
        return np.bincount(self.levels[k].parent, weights=values, minlength=n)

    def table(self, prob: list[np.ndarray], weight: list[np.ndarray], *, flat: bool) -> Table:
        """Return the table; the weight after nothing is in the first level's probabilities."""
        keys = [level.keys for level in self.levels]
        even = float(self.even.max())
        return Table(keys, prob, weight[1:], len(self.outcomes), flat, even)


def _share(part: np.ndarray, whole: np.ndarray, empty: float) -> np.ndarray:
    """Divide; where the whole is nothing, the value for empty ones."""
    return np.divide(part, whole, out=np.full(len(whole), empty), where=whole > 0)


# For the words after each context: seen (M,) given to n-grams, left (contexts,) for the others.
Step = Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _mixed(counted: Counted, step: Step) -> Table:
    """Fill a table where what is left after a context is mixed into all its words."""
    lower, prob, weight = counted.even, [], []
    for k, level in enumerate(counted.levels):
        seen, left = step(k, lower)
        below = lower if k == 0 else lower[level.suffix]
        lower = seen + left[level.parent] * below
        prob.append(lower)
        weight.append(left)
    return counted.table(prob, weight, flat=False)


# ---- one order ----


def likelihood(counted: Counted) -> Table:
    """Maximum likelihood: count(c w) / N(c); after an unseen context, that of a shorter one."""

    def step(k: int, lower: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = counted.counts(k)
        total = counted.totals(k, counts)
        return counts / total[counted.levels[k].parent], np.where(total > 0, 0.0, 1.0)

    return _mixed(counted, step)


def additive(counted: Counted, alpha: float) -> Table:
    """Add-k: (count(c w) + k) / (N(c) + k V)."""
    words = float(counted.outcomes.sum())
    prob, weight = [], []
    for k, level in enumerate(counted.levels):
        counts = counted.counts(k)
        whole = counted.totals(k, counts) + alpha * words
        prob.append((counts + alpha) / whole[level.parent])
        weight.append(alpha * words / whole)
    prob[0] = np.where(counted.outcomes, prob[0], 0.0)
    return counted.table(prob, weight, flat=True)


def floor(counted: Counted, epsilon: float) -> Table:
    """Maximum likelihood, but never less than epsilon; then divided so that the sum is one."""
    words = float(counted.outcomes.sum())
    prob, weight = [], []
    for k, level in enumerate(counted.levels):
        counts = counted.counts(k)
        total = counted.totals(k, counts)
        raised = np.maximum(counts / np.maximum(total, 1)[level.parent], epsilon)
        raised = np.where(counts > 0, raised, epsilon * (k > 0 or counted.outcomes))
        unseen = epsilon * (words - counted.totals(k, np.ones(len(counts)))) if k else 0.0
        whole = counted.totals(k, raised) + unseen
        prob.append(raised / whole[level.parent])
        weight.append(epsilon * words / whole)
    return counted.table(prob, weight, flat=True)


# ---- several orders ----


def linear(counted: Counted, shares: np.ndarray) -> Table:
    """Linear interpolation: p_k = m_k ML_k + (1 - m_k) p_(k-1), shares (m_1 … m_n)."""

    def step(k: int, lower: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = counted.counts(k)
        total = counted.totals(k, counts)
        seen = shares[k] * counts / total[counted.levels[k].parent]
        return seen, np.where(total > 0, 1 - shares[k], 1.0)

    return _mixed(counted, step)


def kneser_ney(counted: Counted, *, modified: bool) -> Table:
    """Interpolated Kneser–Ney: (a(c w) - D) / A(c), and what was taken off times p(w | c').

    a is the count on the highest order; below, in how many contexts the n-gram was seen.
    """

    def step(k: int, lower: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = counted.continuations(k)
        off = _discounts(counts, modified)[np.minimum(counts, 3)]
        total = counted.totals(k, counts)
        left = _share(counted.totals(k, off), total, 1.0)
        return (counts - off) / total[counted.levels[k].parent], left

    return _mixed(counted, step)


def _discounts(counts: np.ndarray, modified: bool) -> np.ndarray:
    """Return what is taken off counts of 0, 1, 2, and 3 or more: Chen and Goodman 1999."""
    n = np.bincount(np.minimum(counts, 5), minlength=6).astype(float)
    y = n[1] / (n[1] + 2 * n[2]) if n[1] and n[2] else 0.5
    if not modified or not n[1:5].all():
        return np.array([0.0, y, y, y])
    found = np.array([i - (i + 1) * y * n[i + 1] / n[i] for i in (1, 2, 3)])
    return np.array([0.0, *np.clip(found, 0.05, [0.95, 1.95, 2.95])])


def stupid(counted: Counted) -> Table:
    """Stupid backoff, then divided so that the sum is one.

    S(w | c) = count(c w) / N(c), or 0.4 S(w | c') for what was not seen; p = S / Z with
    Z(c) = 1 + 0.4 (Z(c') - sum over seen w of S(w | c')).
    """
    norm = np.ones(1)  # Z of the contexts below
    lower, prob, weight = counted.even, [], []
    for k, level in enumerate(counted.levels):
        counts = counted.counts(k)
        total = counted.totals(k, counts)
        after = norm if k == 0 else norm[counted.levels[k - 1].suffix]
        below = after[level.parent] * (lower if k == 0 else lower[level.suffix])
        missed = np.maximum(after - counted.totals(k, np.where(counts > 0, below, 0.0)), 0.0)
        norm = np.where(total > 0, 1 + STUPID * missed, after)
        left = np.where(total > 0, STUPID * after / norm, 1.0)
        scores = np.where(counts > 0, counts / np.maximum(total, 1)[level.parent], STUPID * below)
        lower = scores / norm[level.parent]
        prob.append(lower)
        weight.append(left)
    return counted.table(prob, weight, flat=False)


def katz(counted: Counted) -> Table:
    """Katz's backoff: discounted counts where seen; what is left in proportion to p(w | c')."""
    lower, prob, weight = counted.even, [], []
    for k, level in enumerate(counted.levels):
        counts = counted.counts(k)
        total = counted.totals(k, counts)
        kept = _turing(counts) * counts
        spent = counted.totals(k, kept) > total - 1e-9  # only large counts, which lose nothing
        kept = np.where(spent[level.parent], np.maximum(counts - 0.5, 0), kept)
        seen = kept / np.maximum(total, 1)[level.parent]
        below = np.where(counts > 0, lower if k == 0 else lower[level.suffix], 0.0)
        free = 1 - counted.totals(k, below)  # p(w | c') of the words not seen after c
        rest = 1 - counted.totals(k, seen)
        closed = free < 1e-9  # every word was seen: there is nobody to leave anything to
        left = np.where(closed, 0.0, rest / np.where(closed, 1.0, free))
        seen = np.where(closed[level.parent], seen / (1 - rest)[level.parent], seen)
        left = np.where(total > 0, left, 1.0)
        lower = seen if k else np.where(counts > 0, seen, left[0] * lower)
        prob.append(lower)
        weight.append(left)
    return counted.table(prob, weight, flat=False)


def _turing(counts: np.ndarray, most: int = 5) -> np.ndarray:
    """Return the share of each count that is kept, by Good and Turing for counts up to 5.

    Where the counts of counts are too few for that, 0.5 is taken off instead.
    """
    n = np.bincount(np.minimum(counts, most + 2), minlength=most + 3).astype(float)
    c = np.arange(1, most + 1)
    plain = (np.maximum(counts, 1) - 0.5) / np.maximum(counts, 1)
    if not n[1 : most + 2].all():
        return plain
    common = (most + 1) * n[most + 1] / n[1]
    kept = ((c + 1) * n[c + 1] / (c * n[c]) - common) / (1 - common)
    if not ((kept > 0) & (kept < 1)).all():
        return plain
    return np.array([1.0, *kept, 1.0])[np.minimum(counts, most + 1)]
