"""Active examination of a training, where watching cannot tell."""

from castalia.diagnose.examination.examiner import PROBES, examine
from castalia.diagnose.examination.outcomes import Outcome
from castalia.diagnose.examination.public import (
    baseline_test,
    lr_range,
    more_data_test,
    shuffle_test,
    tiny_fit,
)

__all__ = [
    "PROBES",
    "Outcome",
    "baseline_test",
    "examine",
    "lr_range",
    "more_data_test",
    "shuffle_test",
    "tiny_fit",
]
