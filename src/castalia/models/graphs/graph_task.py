"""What estimators of whole graphs share: readouts, packed batches, embeddings of graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import nn

from castalia.base import Interval, OneOf
from castalia.models.graphs.network_choice import GraphFields, NetworkChoice
from castalia.nets.graphs import GraphHead
from castalia.nn.graph import READOUTS
from castalia.protocols import Spec

__all__ = ["GraphTask"]


@dataclass(kw_only=True, eq=False, repr=False)
class GraphTask(GraphFields):
    """Graphs as rows; a mixin."""

    network: Annotated[Any, NetworkChoice()] = "gin"
    hidden: Annotated[int, Interval(1, whole=True)] = 32
    depth: Annotated[int, Interval(1, whole=True)] = 4
    readout: Annotated[str, OneOf(*READOUTS)] = "sum"
    l2: Annotated[float, Interval(0)] = 0.0
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    batch_size: Annotated[int, Interval(1, whole=True)] = 32
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-2

    def _network(self, spec: Spec) -> nn.Module:
        inputs = self._node_inputs(spec)
        body = self._body(inputs, None, spec)
        return GraphHead(
            inputs,
            body,
            spec.outputs,
            readout=self.readout,
            dropout=self.dropout,
            size=spec.extra.get("nodes", 1.0),  # models of earlier versions have none
        )

    def embed(self, X: Any) -> np.ndarray:
        """Return what is read out of each graph before its outputs, (n, F).

        Parameters
        ----------
        X
            Graphs.
        """
        graphs = self._checked(X)  # type: ignore[attr-defined]
        net: Any = self.module_  # type: ignore[attr-defined]
        parameter = next(net.parameters())
        kind = np.float64 if parameter.dtype == torch.float64 else np.float32
        net.eval()
        with torch.inference_mode():
            blocks = self.adapter_.blocks(graphs, kind)  # type: ignore[attr-defined]
            parts = [net.encode(block.to(parameter.device)).cpu() for block in blocks]
        return torch.cat(parts).numpy()
