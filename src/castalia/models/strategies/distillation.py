"""Knowledge distillation: a small network learns what a large model thinks of every class.

J = (1 - a) J(y) + a T^2 KL(p_T || q_T),  p_T = softmax(v / T),  q_T = softmax(z / T), with v the
teacher's and z the student's logits.  For T -> infinity the gradient by z is that of matching
logits, a (z - v) / K, both centred.  Shapes: B batch, K classes.
Reference: 2015, Hinton, Vinyals, Dean, Distilling the knowledge in a neural network, arXiv
1503.02531.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import Interval, OneOf
from castalia.errors import InvalidParameter
from castalia.models.dense import MLPClassifier, MLPRegressor
from castalia.models.ensemble.ensemble import Learner
from castalia.models.strategies.strategy_base import Strategy
from castalia.models.strategies.training_changes import Beside, changed, require_rows
from castalia.objectives import Objective, weighted_mean
from castalia.objectives.objective import Wrapped
from castalia.protocols import Batch
from castalia.train import Training

__all__ = ["Distill", "Distillation"]

SMALLEST = 1e-8  # probability whose logarithm stands for that of 0


class Distillation(Wrapped):
    """A loss mixed with that of agreeing with a teacher.

    Batches have targets (y, v): v are the teacher's logits (B, K), or its numbers where ``classes``
    is False and the second loss is squared error. A teacher that is given answers itself, and
    targets are y alone.

    Parameters
    ----------
    objective
        The loss on labels, row by row.
    temperature
        T, which softens both distributions.
    share
        Weight a of the teacher.
    classes
        Whether outputs are logits of exclusive classes.
    teacher
        A network that answers for the inputs of every batch.

    Examples
    --------
    >>> from castalia.objectives import CrossEntropy
    >>> v = torch.tensor([[2.0, 0.0]])
    >>> batch = Batch(v, (torch.tensor([0]), v))
    >>> Distillation(CrossEntropy(), 4.0, 0.9).terms(nn.Identity(), batch, "train")["teacher"]
    tensor(0.)
    """

    def __init__(
        self,
        objective: Objective,
        temperature: float,
        share: float,
        *,
        classes: bool = True,
        teacher: nn.Module | None = None,
    ) -> None:
        super().__init__(require_rows("Distill", objective))
        self.temperature, self.share, self.classes = temperature, share, classes
        self.teacher = teacher

    def agreement(self, outputs: Tensor, teacher: Tensor) -> Tensor:
        """Return each row's distance from the teacher, (B,)."""
        if not self.classes:
            return (outputs - teacher).square().flatten(1).mean(dim=1)
        log_p = torch.log_softmax(teacher / self.temperature, dim=1)
        log_q = torch.log_softmax(outputs / self.temperature, dim=1)
        return self.temperature**2 * (log_p.exp() * (log_p - log_q)).sum(dim=1)

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mixed loss and its two parts."""
        y, teacher = batch.y if self.teacher is None else (batch.y, self._answers(batch.x))
        outputs = net(batch.x)
        inner: Any = self.objective
        labels = weighted_mean(inner.rows(outputs, y), batch.weight)
        agreed = weighted_mean(self.agreement(outputs, teacher), batch.weight)
        loss = (1 - self.share) * labels + self.share * agreed
        return {"loss": loss, "labels": labels, "teacher": agreed}

    def _answers(self, x: Tensor) -> Tensor:
        teacher: Any = self.teacher
        with torch.no_grad():
            return torch.as_tensor(teacher.to(x.device)(x)).float()


@dataclass(kw_only=True, eq=False, repr=False)
class Distill(Strategy):
    """A network that learns from labels and from a teacher, which says how likely each class is.

    The teacher's view of the wrong classes says more about a row than its label, so a small student
    ends better than from labels alone. Any fitted model with ``predict_proba`` teaches
    (``predict``, of numbers); an unfitted one is fitted first.

    Parameters
    ----------
    teacher
        A classifier with ``predict_proba`` or a regressor, fitted or not; None takes a wide
        perceptron. A copy made by ``clone`` keeps a fitted teacher.
    temperature
        Larger values give the improbable classes more weight.
    share
        Weight of the teacher against the labels, 0 to 1.
    answers
        ``"rows"``: the teacher answers once for every row, before the training. ``"views"``: it
        answers at every step for what the student is shown, crops and flips and all (``augment``),
        which then count as further rows; the teacher is a fitted network of ours for the same
        inputs.

    Attributes
    ----------
    estimator_ : object
        The trained student.
    teacher_ : object
        The model that taught.
    classes_ : ndarray (K,)
        The classes, of a classifier.

    Shapes
    ------
    As those of the wrapped estimator.

    Notes
    -----
    Answers for views cost a pass of the teacher at every step. A fitted teacher that is not of
    this library may not be saved with the model: ``set_params(teacher=None)`` first.

    References
    ----------
    2015, Hinton, Vinyals, Dean, Distilling the knowledge in a neural network, arXiv 1503.02531.
    2022, Beyer et al., Knowledge distillation: a good teacher is patient and consistent, arXiv
    2106.05237 (views).

    See Also
    --------
    Compress : a smaller form of the same network.
    DeepEnsemble : a good teacher.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> teacher = RandomForestClassifier(random_state=0).fit(X, y)
    >>> Distill(teacher=teacher, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    teacher: Annotated[Any, Learner()] = None
    temperature: Annotated[float, Interval(0, closed="neither")] = 2.0
    share: Annotated[float, Interval(0, 1)] = 0.5
    answers: Annotated[str, OneOf("rows", "views")] = "rows"

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        teacher = self._taught(member, X, y, weight)
        classes = is_classifier(self)

        def numbers(rows: Any) -> np.ndarray:
            if classes:
                return np.log(np.clip(teacher.predict_proba(rows), SMALLEST, 1))
            return np.asarray(teacher.predict(rows), dtype=np.float64)

        def encode(est: Any, found: np.ndarray) -> Any:
            return found if classes else type(est).codec.encode(est, found).y

        views = self.answers == "views"
        codec = None if views else Beside(member.codec, numbers, encode)

        def mixed(own: Objective) -> Objective:
            net = self._answering(teacher, member, X) if views else None
            settings = self.temperature, self.share
            return Distillation(own, *settings, classes=classes, teacher=net)

        with changed(member, objective=mixed, codec=codec):
            self._fit_member(member, X, y, weight)
        self.teacher_ = None if teacher is self.teacher else teacher
        return member

    def _taught(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Return the teacher, fitted, after checking that it can teach this."""
        teacher = self._wide(member) if self.teacher is None else self.teacher
        try:
            check_is_fitted(teacher)
        except NotFittedError:
            teacher = self._fit_member(clone(teacher), X, y, weight)
        if not is_classifier(self):
            return teacher
        known: Any = getattr(teacher, "classes_", None)
        if not hasattr(teacher, "predict_proba") or not np.array_equal(known, self.classes_):
            raise InvalidParameter(
                "Distill: `teacher` must have `predict_proba` and the classes "
                f"{self.classes_.tolist()}; got {type(teacher).__name__} with "
                f"{None if known is None else np.asarray(known).tolist()}."
            )
        return teacher

    def _answering(self, teacher: Any, member: Any, X: Any) -> nn.Module:
        """Return a copy of the teacher's network, which must take the very numbers of this one."""
        found: list[Any] = [getattr(teacher, name, None) for name in ("adapter_", "module_")]
        alike = isinstance(found[0], type(member.adapter_)) and found[1] is not None
        first = [next(iter(a.blocks(X, np.float32))) for a in (found[0], member.adapter_) if alike]
        if not alike or not torch.equal(*first):
            raise InvalidParameter(
                "Distill: `teacher` must be a fitted network of ours whose inputs are scaled as "
                f"the student's where `answers` is 'views'; got {type(teacher).__name__}. Fit it "
                "to the same rows, or set answers='rows'."
            )
        return copy.deepcopy(found[1]).eval().requires_grad_(False)

    def _wide(self, member: Any) -> Any:
        kind = MLPClassifier if is_classifier(self) else MLPRegressor
        return kind(
            hidden=(128,),
            epochs=member.epochs,
            lr=member.lr,
            training=Training(validation=0),
            random_state=member.random_state,
        )

    def __sklearn_clone__(self) -> Any:
        found = super().__sklearn_clone__()
        found.teacher = self.teacher  # a clone of it would have forgotten what it teaches
        return found
