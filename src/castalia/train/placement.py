"""Where a training runs: the network on its device, in its format, among its processes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from castalia.data.batches import Samples
from castalia.train.network_blocks import recompute, remember
from castalia.train.precision import Precision
from castalia.train.strategy import build_strategy
from castalia.train.training import Training
from castalia.utils.seeds import derive

__all__ = ["Placement"]


class Placement:
    """A network made ready to be trained, and where its samples live.

    Parameters
    ----------
    net
        The network; moved to the device and into the format.
    data
        Training samples.
    training
        Settings; ``strategy``, ``recompute`` and ``compile`` count here.
    device, precision
        Where and in which format.
    seed
        Of dropout and the like, which must differ between processes.

    Attributes
    ----------
    home : torch.device
        Where samples live: on the device, if they may fill that much of it.
    strategy : castalia.train.strategy.Single
        The processes that train together.
    """

    def __init__(
        self,
        net: nn.Module,
        data: Samples,
        training: Training,
        device: torch.device,
        precision: Precision,
        seed: int,
    ) -> None:
        self.net, self.device, self.precision = net, device, precision
        self.strategy = build_strategy(training, device)
        self.strategy.place(net, device, precision.dtype)
        if device.type == "cuda" and len(data.x.shape) == 3:  # images, (C, H, W)
            net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if training.recompute:
            recompute(net)
        self.strategy.prepare(net)
        if self.strategy.world > 1:  # dropout differs between processes
            torch.default_generator.manual_seed(derive(seed, self.strategy.rank))
        if training.compile not in ("auto", False):
            net.compile(mode=None if training.compile is True else training.compile)
        self.home = device if _fits(data, device) else torch.device("cpu")

    def release(self) -> None:
        """Leave the network as other code expects it; called at the end, also of a failure."""
        remember(self.net)
        self.strategy.release(self.net)

    @property
    def exact(self) -> torch.dtype:
        """The format in which losses are added up: mps has no float64."""
        return torch.float32 if self.device.type == "mps" else torch.float64

    @property
    def settings(self) -> dict[str, Any]:
        """What was resolved."""
        return {
            "device": str(self.device),
            "precision": self.precision.name,
            "strategy": self.strategy.name,
            "processes": self.strategy.world,
        }


def _fits(data: Samples, device: torch.device) -> bool:
    """Whether the samples may live on the device: they may fill half of what is free."""
    size = data.x.nbytes
    if device.type != "cuda" or size is None:
        return size is not None
    return size < torch.cuda.mem_get_info(device)[0] / 2
