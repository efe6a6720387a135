"""Weak supervision: labels that are wrong as often as a matrix says.

T_kl = P(label l | class k).  The network says p(k | x); what is compared with the labels is
q(l | x) = sum_k p(k | x) T_kl, so that the minimum of the loss is the network for clean labels
(forward correction).  T is counted: rows labelled l whose held-out p(k | x) is at least what is
usual for rows labelled k count as class k.  Shapes: B batch, N rows, K classes.
References: 2017, Patrini et al., Making deep neural networks resistant to label noise: a loss
correction approach, arXiv 1609.03683. 2021, Northcutt, Jiang, Chuang, Confident learning, arXiv
1911.00068.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from castalia.base import Interval, OneOf
from castalia.base.input_checks import take_rows
from castalia.errors import InvalidParameter
from castalia.models.ensemble.ensemble import class_codes
from castalia.models.strategies.strategy_base import Strategy
from castalia.models.strategies.training_changes import changed
from castalia.objectives.supervised import Supervised

__all__ = ["CorrectedCrossEntropy", "WeakSupervision", "label_transition"]


class CorrectedCrossEntropy(Supervised):
    """- log sum_k p_k T_kl: the cross-entropy of labels that may be wrong.

    Parameters
    ----------
    transition
        T, (K, K).

    Examples
    --------
    >>> loss = CorrectedCrossEntropy(np.array([[0.8, 0.2], [0.2, 0.8]]))
    >>> round(loss.rows(torch.tensor([[50.0, 0.0]]), torch.tensor([1])).exp().item(), 4)  # 1 / 0.2
    5.0
    """

    def __init__(self, transition: np.ndarray) -> None:
        self.log_transition = torch.log(torch.as_tensor(transition).clamp_min(1e-12))

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each row, (B,)."""
        seen = self.log_transition.to(outputs)[:, targets].T  # (B, K)
        return -torch.logsumexp(torch.log_softmax(outputs, dim=1) + seen, dim=1)


def label_transition(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return T as counted from held-out probabilities (N, K) and the labels' numbers (N,).

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
    >>> label_transition(p, np.array([0, 0, 0, 1]))  # the third row may be of class 1
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    n, classes = p.shape
    usual = np.array(
        [p[labels == k, k].mean() if (labels == k).any() else 1.0 for k in range(classes)]
    )
    sure = np.where(p >= usual, p, -1.0)
    found = np.where(sure.max(axis=1) >= 0, sure.argmax(axis=1), labels)
    counts = np.zeros((classes, classes))
    np.add.at(counts, (found, labels), 1.0)
    whole = counts.sum(axis=1, keepdims=True)
    return np.where(whole > 0, counts / np.maximum(whole, 1), np.eye(classes))


@dataclass(kw_only=True, eq=False, repr=False)
class WeakSupervision(Strategy):
    """A classifier that knows how often its labels are wrong.

    Labels of crowds, of rules or of a cheap test are wrong in ways that have a law: class 3 is
    taken for 5 more often than for 8. With this law in the loss the network learns the classes and
    not the mistakes. Where an image has a label and the place of the object is wanted, fit any
    image classifier and ask ``castalia.evaluate.GradCAM``.

    Parameters
    ----------
    task
        ``"classification"``: the only one there is.
    transition
        T_kl = P(label l | class k), (K, K) in the order of the classes; None counts it by fits to
        parts of the rows.
    folds
        Parts of the rows, each held out once, by which T is counted; 1 takes the labels as right.

    Attributes
    ----------
    estimator_ : object
        The trained classifier.
    transition_ : ndarray (K, K)
        T.
    classes_ : ndarray (K,)
        The classes.

    Shapes
    ------
    As those of the wrapped classifier.

    Notes
    -----
    Counting T costs a fit for each part. Where a class has fewer rows than parts, T is the
    identity.

    References
    ----------
    2017, Patrini, Rozza, Menon, Nock, Qu, Making deep neural networks resistant to label noise,
    arXiv 1609.03683. 2021, Northcutt, Jiang, Chuang, Confident learning, arXiv 1911.00068.

    See Also
    --------
    SelfTraining : few labels, but right ones.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> noise = np.array([[0.7, 0.3], [0.0, 1.0]])
    >>> WeakSupervision(transition=noise, random_state=0).fit(X, y).transition_[0, 1]
    np.float64(0.3)
    """

    _classes_only: ClassVar[bool] = True

    task: Annotated[str | None, OneOf(None, "classification")] = None
    transition: Any = None
    folds: Annotated[int, Interval(1, whole=True)] = 3

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        if self.transition is None:
            self.transition_ = self._counted(member, X, y, weight)
        else:
            self.transition_ = self._given(len(self.classes_))
        with changed(member, objective=CorrectedCrossEntropy(self.transition_)):
            return self._fit_member(member, X, y, weight)

    def _given(self, classes: int) -> np.ndarray:
        found = np.asarray(self.transition, dtype=np.float64)
        right = found.shape == (classes, classes) and (found >= 0).all()
        if not right or not np.allclose(found.sum(axis=1), 1):
            raise InvalidParameter(
                f"WeakSupervision: `transition` must be {classes} rows of {classes} chances that "
                f"sum to 1; got {found.tolist()}."
            )
        return found

    def _counted(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return T by what networks think of rows that they were not fitted to."""
        labels = class_codes(self.classes_, y)
        if self.folds == 1 or np.bincount(labels).min() < self.folds:
            return np.eye(len(self.classes_))
        order = np.random.default_rng(member.random_state).permutation(len(y))
        order = order[np.argsort(labels[order], kind="stable")]  # classes are dealt evenly
        fold = np.empty(len(y), dtype=int)
        fold[order] = np.arange(len(y)) % self.folds
        p = np.zeros((len(y), len(self.classes_)))
        for part in range(self.folds):
            inside, outside = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
            w = None if weight is None else weight[inside]
            model = self._fit_member(clone(member), take_rows(X, inside), y[inside], w)
            p[outside] = model.predict_proba(take_rows(X, outside))
        return label_transition(p, labels)
