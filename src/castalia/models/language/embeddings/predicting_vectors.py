"""What word2vec and fastText share: vectors that are trained to predict neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from castalia.base import Interval, OneOf
from castalia.errors import InvalidData
from castalia.models.language.embeddings.word_descent import InputRows, NeighbourPasses, Schedule
from castalia.models.language.embeddings.word_heads import Full, Head, Negative, Tree
from castalia.models.language.embeddings.word_vector_estimator import Texts, WordVectorEstimator
from castalia.nn import FullSoftmax, HierarchicalSoftmax, NegativeSampling
from castalia.utils.seeds import generator

__all__ = ["PredictingVectors"]

OUTPUTS = ("negative", "hierarchical", "softmax")


@dataclass(kw_only=True, eq=False, repr=False)
class PredictingVectors(WordVectorEstimator):
    """Base of vectors that predict neighbours; a subclass says what a word's vector is made of."""

    model: Annotated[str, OneOf("skip-gram", "cbow")] = "skip-gram"
    output: Annotated[str, OneOf(*OUTPUTS)] = "negative"
    negative: Annotated[int, Interval(1, whole=True)] = 5
    power: Annotated[float, Interval(0, 1)] = 0.75
    window: Annotated[int, Interval(1, whole=True)] = 5
    dynamic: Annotated[bool, OneOf(True, False)] = True
    subsample: Annotated[float, Interval(0, 1)] = 1e-3
    batch_size: Annotated[int, Interval(1, whole=True)] = 4096
    lr: Annotated[float, Interval(0, closed="neither")] = 0.025

    def _inputs(self, random: torch.Generator) -> InputRows:
        """Return the input vectors to start from, on the generator's device."""
        raise NotImplementedError

    def _finish(self, inputs: InputRows) -> None:
        """Keep what the subclass needs besides the vectors."""

    def _learn(self, texts: Texts) -> np.ndarray:
        name = type(self).__name__
        if np.diff(texts.text).all():
            raise InvalidData(
                f"{name}: some words must stand within one window; got texts of one known word "
                "each."
            )
        device, recorder = self._place(), self._recorder(texts)
        random = generator(recorder.seed, device=device)
        inputs, head = self._inputs(random), self._head(device)
        passes = NeighbourPasses(
            inputs,
            head,
            torch.as_tensor(texts.ids, device=device),
            torch.as_tensor(texts.text, device=device),
            torch.as_tensor(self.counts_, device=device),
            Schedule(self.window, self.dynamic, self.subsample, self.batch_size, self.lr),
            skip_gram=self.model == "skip-gram",
            generator=random,
            owner=name,
        )
        self._train(passes, random, recorder)
        self.output_vectors_ = head.table.cpu().numpy()
        self._finish(inputs)
        every = torch.arange(len(self.words_), device=device)
        return inputs.gather(every).cpu().numpy()

    def _head(self, device: torch.device) -> Head:
        counts = self.counts_
        if self.output == "negative":
            drawing = NegativeSampling(counts, self.dim, negative=self.negative, power=self.power)
            return Negative(drawing.to(device))
        if self.output == "hierarchical":
            return Tree(HierarchicalSoftmax(counts, self.dim).to(device))
        return Full(FullSoftmax(len(counts), self.dim).to(device))
