"""What the method advises on the history of a training."""

import pyarrow as pa
import pytest

from castalia.data import read
from castalia.evaluate import Interval
from castalia.method.advice import give_advice
from castalia.method.compare import Verdict
from castalia.method.task import find_task


def advise(loss, val_loss):
    """Advice on a training whose best epoch, the fifth of ten, had these losses."""
    table = pa.table({"x": list(range(2000)), "y": ["a", "b"] * 1000})
    data = read(table, target="y")
    history = [
        {"epoch": e, "loss": loss, "val_loss": val_loss + 0.01 * abs(e - 5)} for e in range(11)
    ]
    verdict = Verdict("better", "better", "guessing", Interval(0.1, 0.05, 0.15, 10))
    return give_advice(
        task=find_task(data, None),
        schema=data.schema,
        target="y",
        verdict=verdict,
        metric="accuracy",
        seeds=Interval(0.9, 0.89, 0.91, 10),
        facts={"history": history, "stopped": "no better", "most_epochs": 10},
        checks=[],
        model="MLPClassifier",
    )


@pytest.mark.parametrize(
    "loss, val_loss, flagged",
    [(0.10, 0.30, True), (0.10, 0.19, False), (0.01, 0.05, False), (0.30, 0.30, False)],
    ids=["wide", "below twice", "both small", "none"],
)
def test_a_gap_between_training_and_validation_beyond_the_threshold_is_flagged(
    loss, val_loss, flagged
):
    words = [line for line in advise(loss, val_loss) if "overfits" in line]
    assert bool(words) is flagged
    if flagged:
        assert f"loss {loss:.3f} in training, {val_loss:.3f} in validation" in words[0]
