"""A graph of papers as PyTorch Geometric has it."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data

from evidence.scripts_data import citations


class Papers:
    """One graph, under the signature of ``Planetoid``."""

    def __init__(self, root: Any, name: str, *_: Any, transform: Any = None, **__: Any) -> None:
        x, y, edges = (torch.from_numpy(one) for one in citations())
        at = torch.arange(len(y))
        self.data = Data(x=x, y=y, edge_index=torch.cat([edges, edges.flip(1)]).T.contiguous())
        self.data.train_mask, self.data.val_mask = at < 140, (at >= 200) & (at < 400)
        self.data.test_mask = at >= 400
        self.transform, self.num_features, self.num_classes = transform, x.shape[1], 7

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        copy = self.data.clone()
        return copy if self.transform is None else self.transform(copy)
