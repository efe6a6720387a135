"""Active examination of a training, where watching cannot tell."""

from castalia.diagnose.examination.examiner import PROBES, examine
from castalia.diagnose.examination.named_probes import (
    baseline_test,
    lr_range,
    more_data_test,
    shuffle_test,
    tiny_fit,
)
from castalia.diagnose.examination.outcomes import Outcome

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
