"""CST207 by watching: few different rows, and validation that costs more than training."""

import numpy as np
from tests.diagnose.rules.records import classification

from castalia.diagnose.record import Evaluation
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.split_rules import too_few
from castalia.diagnose.thresholds import limit


def few(distinct, validation):
    """Return a well fitted training on so many rows, seen again and again."""
    record = classification(0.9)
    rows = np.random.default_rng(0).normal(size=(distinct, 4)).astype(np.float32)
    count = 0
    for i, batch in enumerate(record.train.inputs):
        record.train.inputs[i] = rows[(np.arange(len(batch)) + count) % distinct]
        count += len(batch)
    record.evaluations = [Evaluation(record.steps, validation)]
    return Case(record)


def test_few_rows_with_a_costly_validation_are_found():
    (found,) = list(too_few(few(40, 0.8)))
    assert (found.code, found.severity) == ("CST207", "warning")
    assert [e.value for e in found.evidence][0] == 40
    assert found.evidence[0].threshold == limit("rows.few")


def test_few_rows_of_which_nearly_all_are_answered_rightly_are_only_mentioned():
    case = few(40, 0.8)
    case.record.evaluations = [Evaluation(case.steps, 0.8, score=0.97)]
    (found,) = list(too_few(case))
    assert found.severity == "info"


def test_few_rows_that_generalise_are_enough():
    assert list(too_few(few(40, 0.14))) == []


def test_sentences_of_other_lengths_are_other_rows():
    case = few(40, 0.8)
    inputs = case.record.train.inputs
    inputs[:2] = [x[:, :3].astype(int) for x in inputs[:2]]
    inputs[2:] = [np.arange(160).reshape(40, 4)] * len(inputs[2:])
    assert len(case.met) == len({row.tobytes() for x in inputs for row in x})
    assert case.rows_kept == sum(map(len, inputs))
    inputs[:] = [np.arange(i, i + 200).reshape(40, 5)[:, : 2 + i % 3] for i in range(len(inputs))]
    assert list(too_few(Case(case.record))) == []
