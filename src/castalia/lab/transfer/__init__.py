"""T5's comparisons on an invented language: objectives, architectures, mixtures, and compute.

Everything is a text that answers a text, so one objective trains every arm, and an arm differs from
the baseline in one thing only: the pairs it learns from, the network, their order, or the sizes.
Reference: 2020, Raffel et al., Exploring the limits of transfer learning, arXiv 1910.10683, 3.
"""

from castalia.lab.transfer.invented_language import (
    OBJECTIVES,
    TASKS,
    VOCABULARY,
    Pairs,
    task,
    unlabelled,
)
from castalia.lab.transfer.transfer_arms import (
    Arm,
    Plan,
    architectures,
    objectives,
    scalings,
    strategies,
)
from castalia.lab.transfer.transfer_networks import (
    ARCHITECTURES,
    TextToTextLM,
    block_parameters,
    cross_parameters,
    forward_flops,
    share_halves,
)

__all__ = [
    "ARCHITECTURES",
    "OBJECTIVES",
    "TASKS",
    "VOCABULARY",
    "Arm",
    "Pairs",
    "Plan",
    "TextToTextLM",
    "architectures",
    "block_parameters",
    "cross_parameters",
    "forward_flops",
    "objectives",
    "scalings",
    "share_halves",
    "strategies",
    "task",
    "unlabelled",
]
