"""The classifier of signals: convolutions over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import nn

from castalia.base import Classifier, Estimator, Interval, OneOf, Sizes, fields_for
from castalia.base.transferable import Transferable
from castalia.data.signal_adapter import SignalAdapter
from castalia.nets.vision import ConvNet1d
from castalia.objectives import class_loss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec

__all__ = ["ConvNet1dClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class SignalClassifier(Classifier, Estimator):
    """Base of networks that classify signals; a subclass gives ``_network``."""

    adapter: ClassVar[type] = SignalAdapter

    def _objective(self, spec: Spec) -> Objective:
        return class_loss(self.multilabel_)


@dataclass(kw_only=True, eq=False, repr=False)
class ConvNet1dClassifier(Transferable, SignalClassifier):
    """Small convolutional network that classifies signals.

    Stages of convolution over time, batch norm, ReLU and pooling; cross-entropy is minimised. Right
    for signals of one length (heartbeats, accelerometers, sounds) whose class does not depend on
    when the pattern comes; where order over long times matters, use a recurrent network.

    Parameters
    ----------
    widths
        Channels of each stage; every stage halves the time axis.
    convs
        Convolutions in each stage.
    kernel
        Length of a filter, odd.
    batch_norm
        Normalise after each convolution.
    hidden
        Widths of dense layers before the scores; empty: the last map is averaged over time.
    dropout
        Probability of zeroing an input of each dense layer in training.
    class_weight
        None, ``"balanced"`` or a dict from class to weight.
    calibrate
        Fit one temperature on the validation rows after training.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``.
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.ConvNet1d``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: (n, T) of one channel, or (n, C, T).  y: (n,) classes, or (n, L) of 0 and 1.

    Notes
    -----
    The arithmetic of a signal grows with its length.

    References
    ----------
    1989, Waibel, Hanazawa, Hinton, Shikano, Lang, Phoneme recognition using time-delay neural
    networks, IEEE ASSP 37.

    See Also
    --------
    ConvNetClassifier : the same network for images.

    Examples
    --------
    >>> from castalia.testing.toys import tones
    >>> X, y = tones()
    >>> model = ConvNet1dClassifier(widths=(8, 16), convs=1, epochs=20, lr=0.01, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    widths: Annotated[tuple[int, ...], Sizes()] = (32, 64, 128)
    convs: Annotated[int, Interval(1, whole=True)] = 2
    kernel: Annotated[int, Interval(1, whole=True)] = 5
    batch_norm: Annotated[bool, OneOf(True, False)] = True
    hidden: Annotated[tuple[int, ...], Sizes()] = ()
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        own = fields_for(self, ConvNet1d)
        return self._started(ConvNet1d(spec.inputs, spec.outputs, size=spec.extra["size"], **own))
