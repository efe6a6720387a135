"""Sequences of different lengths: an adapter that pads each batch, a network, an estimator."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from castalia.base import Classifier, Estimator
from castalia.data.adapter_base import Adapter
from castalia.objectives import CrossEntropy
from castalia.protocols import Rows


class RaggedRows(Rows):
    def __init__(self, sequences):
        self.sequences = sequences
        self.lengths = torch.tensor([len(row) for row in sequences])  # like lengths make a batch

    def __len__(self):
        return len(self.sequences)

    def take(self, index, width=None):
        rows = [self.sequences[i] for i in index.tolist()]
        return pad_sequence(rows, batch_first=True), self.lengths[index]  # (B, T, D), (B,)


class RaggedAdapter(Adapter):
    def check(self, X, owner):
        return [np.asarray(row) for row in X]  # (T, D) each

    def fit(self, X, sample_weight=None):
        self.inputs = X[0].shape[1]
        return self

    def rows(self, X, dtype):
        return RaggedRows([torch.from_numpy(row.astype(dtype)) for row in X])


class LastState(nn.Module):
    def __init__(self, inputs, outputs, hidden):
        super().__init__()
        self.rnn = nn.GRU(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, batch):
        x, lengths = batch
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return self.head(self.rnn(packed)[1][-1])  # (B, K)


@dataclass(kw_only=True, eq=False, repr=False)
class RaggedClassifier(Classifier, Estimator):
    adapter: ClassVar = RaggedAdapter
    hidden: int = 16

    def _network(self, spec):
        return LastState(spec.inputs, spec.outputs, self.hidden)

    def _objective(self, spec):
        return CrossEntropy()
