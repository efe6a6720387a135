"""Adaptive noise cancelling by a filter that learns while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf, check_parameters
from castalia.base.input_checks import check_target, check_weight, split_target
from castalia.base.targets import numeric_target
from castalia.models.linear.solvers.lms import lms

__all__ = ["AdaptiveFilter"]


@dataclass(kw_only=True, eq=False, repr=False)
class AdaptiveFilter(RegressorMixin, DirectEstimator):
    """Adaptive noise canceller: a filter of reference channels, adapted by what is left.

    The primary signal is y = s + n0: what one wants, and noise. References X carry noise related to
    n0 and not to s. The filter's estimate of n0 is a sum over channels c and taps l of
    w_cl x_c(t + delay - l); the residual z = y - estimate is the cleaned signal, and all taps move
    to make z^2 small: as s is unrelated to X, that leaves s alone. The right tool when a
    reference can be recorded and its path to the primary drifts slowly.

    Parameters
    ----------
    taps
        Length of the filter of each channel, in samples; longer reaches further back.
    lr
        Rate of the rule. Normalised, it is between 0 and 2: larger forgets faster and leaves more
        noise of its own. Otherwise it must be below 1 / (channels x taps x mean power).
    normalised
        Whether a step is divided by the power in the filter's window,
        w += lr z x / (|x|^2 + floor mean |x|^2), so that the loudness does not matter; otherwise it
        is w += 2 lr z x.
    floor
        Share of the mean power that is added to each window's, where normalised; larger values keep
        the taps still while the reference is nearly silent.
    delay
        Samples of the reference after the present that the filter may use; above 0 where the noise
        reaches the primary first.
    epochs
        Passes over the recording.

    Attributes
    ----------
    coef_ : ndarray of shape (C, L) or (M, C, L)
        The taps at the end, the latest sample first.
    residual_ : ndarray like y
        z of the last pass, each sample with the taps of its moment.

    Shapes
    ------
    X (T, C) reference channels, y (T,) or (T, M) primary signals; rows are samples in order.

    Notes
    -----
    Samples before the recording count as zero. The taps are those of the rule applied sample after
    sample; blocks of 64 samples are solved as triangular systems, so that an hour at 250 Hz takes
    seconds. ``predict`` uses the taps at the end; ``cancel`` goes on adapting.

    A sample weight multiplies the step of its sample and nothing else: the sample stays in the
    windows of those after it. Weight 0 freezes the filter, for instance while what is wanted is
    loud; normalised, ``lr`` times a weight must stay below 2.

    With more than one tap an answer depends on the rows before it, which is the point, so rows
    cannot be shuffled or left out. Three of scikit-learn's checks ask for that and do not apply:
    ``check_methods_sample_order_invariance``, ``check_methods_subset_invariance`` and
    ``check_sample_weight_equivalence_on_dense_data``; it passes all others. Cross-validate
    with ``TimeSeriesSplit``, not with shuffled folds.

    References
    ----------
    1975, Widrow et al., Adaptive noise cancelling: principles and applications, Proc. IEEE 63.

    See Also
    --------
    Adaline : the same rule as a classifier.
    castalia.LinearRegression : the best fixed filter, on a window of past samples.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> noise = random.normal(size=(2000, 1))
    >>> model = AdaptiveFilter(taps=2).fit(noise, 0.5 * noise[:, 0])
    >>> model.coef_.round(3).tolist()
    [[0.5, 0.0]]
    """

    taps: Annotated[int, Interval(1, whole=True)] = 16
    lr: Annotated[float, Interval(0, closed="neither")] = 0.02
    normalised: Annotated[bool, OneOf(True, False)] = True
    floor: Annotated[float, Interval(0)] = 0.1
    delay: Annotated[int, Interval(0, whole=True)] = 0
    epochs: Annotated[int, Interval(1, whole=True)] = 1

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AdaptiveFilter:
        """Adapt to a recording from taps of zero.

        Parameters
        ----------
        X
            Reference channels, (T, C), samples in order.
        y
            Primary signal or signals, (T,) or (T, M).
        sample_weight
            Factor of each sample's step, (T,); 0 holds the taps still there.

        Returns
        -------
        self
        """
        check_parameters(self)
        X, y = split_target(X, y)
        X = self._matrix(X, reset=True)
        y, weight = check_target(self, X, y), check_weight(self, X, sample_weight)
        self.coef_, self.residual_ = self._run(X, y, weight, None, self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaptiveFilter:
        """Go on adapting over a further stretch; samples before it count as zero.

        Parameters
        ----------
        X, y
            Reference channels and primary signal.
        sample_weight
            Factor of each sample's step, (T,); 0 holds the taps still there.
        """
        check_parameters(self)
        first = not hasattr(self, "coef_")
        X = self._matrix(X, reset=first)
        y, weight = check_target(self, X, y), check_weight(self, X, sample_weight)
        taps = None if first else self.coef_
        self.coef_, self.residual_ = self._run(X, y, weight, taps, 1)
        return self

    def cancel(self, X: Any, y: Any) -> np.ndarray:
        """Return the cleaned signal: y less the estimate, adapting on from the learnt taps.

        The estimator itself is left as it is.
        """
        check_is_fitted(self, "coef_")
        X = self._matrix(X)
        return self._run(X, check_target(self, X, y), None, self.coef_, 1)[1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the estimate of the noise by the taps at the end of the fit."""
        check_is_fitted(self, "coef_")
        X = self._matrix(X)
        windows = self._windows(X.cpu().numpy() if isinstance(X, Tensor) else X)
        flat = self.coef_.reshape(*self.coef_.shape[:-2], -1)
        return windows.reshape(len(windows), -1) @ flat.T

    def _run(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        taps: np.ndarray | None,
        epochs: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Run the rule over a recording; return the taps at the end and the residual."""
        windows = self._windows(X.cpu().numpy() if isinstance(X, Tensor) else X)
        flat = windows.shape[1] * windows.shape[2]
        target = self._tensor(numeric_target(self, y).astype(windows.dtype).reshape(len(y), -1))
        W = target.new_zeros(target.shape[1], flat)
        if taps is not None:
            W = torch.as_tensor(taps.reshape(-1, flat)).to(target).clone()

        share = 1.0 if weight is None else weight.astype(windows.dtype)
        steps = self._tensor(self._steps(windows) * share)

        def blocks(size: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
            for start in range(0, len(y), size):
                here = slice(start, start + size)
                rows = np.array(windows[here], order="C").reshape(-1, flat)
                yield self._tensor(rows), target[here], steps[here]

        for _ in range(epochs):
            residual = lms(blocks, W, owner=type(self).__name__, lr=self.lr)
        shape = (*y.shape[1:], *windows.shape[1:])
        return W.cpu().numpy().reshape(shape), residual.cpu().numpy().reshape(y.shape)

    def _steps(self, windows: np.ndarray) -> np.ndarray:
        """Return the factor of each sample's correction, (T,)."""
        steps = np.full(len(windows), 2 * self.lr, windows.dtype)
        if self.normalised:
            power = np.einsum("tcl,tcl->t", windows, windows)
            power = power + self.floor * power.mean()
            steps = np.divide(self.lr, power, out=np.zeros_like(power), where=power > 0)
        steps[len(steps) - self.delay :] = 0  # there the reference is not known
        return steps

    def _windows(self, X: np.ndarray) -> np.ndarray:
        """Return what the filter sees at each sample, the latest first, (T, C, L); no copy."""
        if self.delay >= self.taps + len(X):
            return np.zeros((len(X), X.shape[1], self.taps), X.dtype)
        padded = np.pad(X, ((max(self.taps - 1 - self.delay, 0), self.delay), (0, 0)))
        skip = max(self.delay - self.taps + 1, 0)
        return sliding_window_view(padded[skip:], self.taps, axis=0)[: len(X), :, ::-1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = self.taps > 1  # on rows that are no signal
        return tags
