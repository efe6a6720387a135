"""A class for every step of a sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import nn

from castalia.base import Interval, OneOf, TargetCodec
from castalia.data.adapter_base import Reads
from castalia.data.sequences import SequenceAdapter
from castalia.errors import InvalidParameter
from castalia.models.sequence.recurrent_parameters import ReadsSequences, RecurrentEstimator
from castalia.models.sequence.step_targets import StepClasses, real_parts
from castalia.nets.sequence import StepPredictor
from castalia.objectives import StepCrossEntropy
from castalia.objectives.objective import Objective
from castalia.protocols import Spec

__all__ = ["RNNTagger", "TagStream"]


class TagStream:
    """Tags of a sequence whose steps arrive bit by bit; the state is carried from call to call.

    Parameters
    ----------
    model
        A fitted tagger that does not read from the end.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.states = model, None

    def push(self, steps: Any) -> np.ndarray:
        """Return the tags of further steps, (T,)."""
        model = self.model
        X = model._checked([steps])
        parameter = next(model.module_.parameters())
        kind = np.float64 if parameter.dtype == torch.float64 else np.float32
        (x,) = model.adapter_.blocks(X, kind)
        with torch.inference_mode():
            scores, self.states = model.module_.carried(x.to(parameter.device), self.states)
        found: np.ndarray = model.classes_[scores[0].argmax(dim=-1).cpu().numpy()]
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class RNNTagger(ReadsSequences, RecurrentEstimator):
    """Recurrent network that gives a class to every step of a sequence.

    p(y_t) = softmax(V h_t + b), with h_t of one direction or both; the mean cross-entropy of the
    steps is minimised. For states of a machine along a log, events in a signal, parts of speech.

    Parameters
    ----------
    bidirectional
        Whether each layer also reads from the end; False where tags are needed as steps arrive.
    dim
        Width of the embedding of words and of other categories; None: by how many there are.
    letters
        Letters of each word that are read beside the word, so that unknown words can be tagged by
        their spelling; 0: none.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes.
    module_ : torch.nn.Module
        The trained ``castalia.nets.sequence.StepPredictor``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n sequences, as for ``RNNClassifier``, of numbers or of words.  y: n arrays or lists (T,).
    ``predict`` returns an array of n lists.

    Notes
    -----
    ``stream()`` tags steps as they arrive, with the same answers as all at once.

    References
    ----------
    2015, Huang, Xu, Yu, Bidirectional LSTM-CRF models for sequence tagging, arXiv 1508.01991.

    See Also
    --------
    RNNClassifier : one class a sequence.
    castalia.models.language.BERTTagger : a pretrained transformer.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(rng.integers(3, 9), 1)) for _ in range(100)]
    >>> y = [(np.cumsum(x) > 0).astype(int) for x in X]  # needs memory
    >>> model = RNNTagger(bidirectional=False, hidden=16, epochs=40, lr=0.02, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    adapter: ClassVar[Any] = Reads(SequenceAdapter, "categorical", "missing", "letters")
    codec: ClassVar[TargetCodec] = StepClasses()

    bidirectional: Annotated[bool, OneOf(True, False)] = True
    dim: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    letters: Annotated[int, Interval(0, whole=True)] = 0

    def _network(self, spec: Spec) -> nn.Module:
        layers = self._layers(spec, self.dim)
        return StepPredictor(*layers, spec.outputs, dropout=self.dropout)

    def _objective(self, spec: Spec) -> Objective:
        return StepCrossEntropy(self.adapter_.usual)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each step, an array of n lists."""
        X = self._checked(X)
        found = np.empty(len(X), dtype=object)
        for place, part in enumerate(real_parts(self, X)):
            found[place] = self.classes_[part.argmax(axis=1)].tolist()
        return found

    def step_probabilities(self, X: Any) -> list[np.ndarray]:
        """Return the probability of each class at each step, n arrays (T, K)."""
        X = self._checked(X)
        return [torch.from_numpy(part).softmax(dim=1).numpy() for part in real_parts(self, X)]

    def stream(self) -> TagStream:
        """Return what tags steps as they arrive."""
        if self.bidirectional:
            raise InvalidParameter(
                "RNNTagger.stream: `bidirectional` must be False to tag steps as they arrive; "
                "this model reads from the end too. Fit another one."
            )
        return TagStream(self)

    def score(self, X: Any, y: Any) -> float:
        """Return the share of steps with the right class."""
        wanted = self.codec.check(self, self.adapter_, self._checked(X), y)
        said = [np.array(part) for part in self.predict(X)]
        return float(np.mean(np.concatenate(said) == np.concatenate(list(wanted))))
