"""Adversarial training: the loss is also minimised at the worst points near each row.

min_w E max_{||d|| <= eps} J(x + d, y), mixed with J(x, y); see ``castalia.objectives.Adversarial``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from castalia.base import Interval, OneOf
from castalia.models.strategies.strategy_base import Strategy
from castalia.models.strategies.training_changes import changed, require_rows
from castalia.nn import evaluating
from castalia.objectives import Adversarial, Objective, fgsm, pgd

__all__ = ["AdversarialTraining"]


@dataclass(kw_only=True, eq=False, repr=False)
class AdversarialTraining(Strategy):
    """A classifier whose answers small changes of the inputs do not turn.

    Every batch is attacked as it is learnt: gradient sign (``steps=1``) or projected gradient
    steps. Robust accuracy rises; accuracy on clean rows often falls a little.

    Parameters
    ----------
    task
        ``"classification"``: the only one there is.
    eps
        Largest change of an input, in units of the encoded columns (standard deviations of a
        table, 0 to 1 of a pixel's range).
    steps
        Gradient steps of the attack; more are stronger and as many times as dear.
    norm
        ``"inf"``, or ``"l2"`` with more than one step.
    share
        Weight of the attacked rows, above 0 and at most 1.

    Attributes
    ----------
    estimator_ : object
        The trained classifier.
    classes_ : ndarray (K,)
        The classes.

    Shapes
    ------
    As those of the wrapped classifier.

    Notes
    -----
    ``robust_score`` attacks held-out rows: the accuracy to report beside ``score``.

    References
    ----------
    2015, Goodfellow, Shlens, Szegedy, Explaining and harnessing adversarial examples, arXiv
    1412.6572. 2018, Madry et al., Towards deep learning models resistant to adversarial attacks,
    arXiv 1706.06083.

    See Also
    --------
    castalia.objectives.Adversarial : the objective alone.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = AdversarialTraining(random_state=0).fit(X, y)
    >>> model.robust_score(X, y) <= model.score(X, y)
    True
    """

    _classes_only: ClassVar[bool] = True

    task: Annotated[str | None, OneOf(None, "classification")] = None
    eps: Annotated[float, Interval(0)] = 0.1
    steps: Annotated[int, Interval(1, whole=True)] = 1
    norm: Annotated[str, OneOf("inf", "l2")] = "inf"
    share: Annotated[float, Interval(0, 1, closed="right")] = 0.5

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        def attacked(own: Objective) -> Objective:
            inner = require_rows("AdversarialTraining", own)
            return Adversarial(inner, self.eps, steps=self.steps, norm=self.norm, share=self.share)

        with changed(member, objective=attacked):
            return self._fit_member(member, X, y, weight)

    def robust_score(self, X: Any, y: Any, *, eps: float | None = None, steps: int = 10) -> float:
        """Return the accuracy on the worst rows found within eps of each row.

        Parameters
        ----------
        X, y
            Rows and labels.
        eps
            Radius of the attack; None takes that of the training.
        steps
            Gradient steps; 1 is the gradient sign alone.
        """
        model, radius = self.estimator_, self.eps if eps is None else eps
        X = self._checked(X)
        loss = require_rows("AdversarialTraining", model._objective(model.spec_))
        codes = model.codec.encode(model, np.asarray(y)).y
        weight, right = next(model.module_.parameters()), 0
        kind = np.float64 if weight.dtype == torch.float64 else np.float32
        with evaluating(model.module_):
            for x in model.adapter_.blocks(X, kind):
                own, codes = codes[: len(x)].to(weight.device), codes[len(x) :]
                given = (model.module_, loss, x.to(weight.device), own, radius)
                far = fgsm(*given) if steps == 1 else self._climb(given, steps)
                right += int((model.module_(far).argmax(dim=1) == own).sum())
        return right / len(np.asarray(y))

    def _climb(self, given: Any, steps: int) -> Any:
        norm = "inf" if self.steps == 1 else self.norm
        return pgd(*given, steps=steps, norm=norm, random_start=False)
