"""Task, settings and splits, each on its own."""

import numpy as np
import pytest
from tests.method.small import quick_plan

from castalia.data import read
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import measure
from castalia.method.model_settings import parse_settings
from castalia.method.table_matrix import Matrix
from castalia.method.task import find_task
from castalia.method.train_test_split import RowKeys, make_parts


def task_of(values, asked=None):
    import pyarrow as pa

    table = pa.table({"x": list(range(len(values))), "y": values})
    return find_task(read(table, target="y"), asked)


@pytest.mark.parametrize(
    "values, kind",
    [
        (["a", "b"] * 20, "classification"),
        ([True, False] * 20, "classification"),
        ([0, 1] * 20, "classification"),
        ([3.0, 4.0, 5.0] * 20, "classification"),
        ([0.5, 1.0] * 20, "regression"),
        (list(range(40)), "regression"),
        ([1, 2, 3, 4, 5, 6], "regression"),
    ],
)
def test_the_task_is_inferred_from_the_target(values, kind):
    assert task_of(values).kind == kind


def test_whole_numbers_stored_as_fractions_become_whole_classes():
    assert task_of([3.0, 4.0] * 20).classes.tolist() == [3, 4]


@pytest.mark.parametrize(
    "values, asked, words",
    [
        (["a"] * 5, None, "must have two classes or values at least; all 5 rows hold 'a'"),
        (["a", "b", "c"], None, "each of its 3 values occurs once, like an identifier"),
        (["a", "b"] * 5, "regression", "must hold numbers for a regression; got 'a'"),
        ([0.5, 1.5] * 5, "classification", "must hold words or whole numbers for a classification"),
        ([1.0, None, 2.0], None, "1 of 3 value is missing \\(NaN\\), first in row 1"),
        ([1.0, float("inf"), 2.0], None, "infinite \\(inf\\), first in row 1"),
    ],
)
def test_a_target_that_cannot_be_predicted_is_refused(values, asked, words):
    with pytest.raises(InvalidData, match=words):
        task_of(values, asked)


def test_more_classes_than_test_rows_are_refused():
    task = task_of([f"c{i % 20}" for i in range(40)])
    with pytest.raises(InvalidData, match="the target has 20 classes and the test part 8 rows"):
        make_parts(range(40), task, quick_plan("x", "y"))


def test_rows_of_a_lonely_class_are_trained_on_and_noted():
    task = task_of(["a", "b"] * 20 + ["lonely"])
    parts, notes = make_parts(range(41), task, quick_plan("x", "y", seeds=3))
    assert all(40 in part.train for part in parts)
    assert notes == ["Classes of a single row can be trained on but not tested: `lonely`."]


def test_settings_are_read_as_values():
    found = parse_settings(["hidden=32", "validation=0.1", "calibrate=true", "schedule=none"])
    assert found == {"hidden": 32, "validation": 0.1, "calibrate": True, "schedule": None}
    with pytest.raises(InvalidParameter, match="must be NAME=VALUE, such as lr=0.01; got 'lr'"):
        parse_settings(["lr"])


def test_unseen_and_missing_words_are_not_a_number():
    import pyarrow as pa

    train = read(pa.table({"n": [1, 2, 3, 4], "w": ["a", "b", "a", None]}))
    matrix = Matrix.of(train).fit(train)
    found = matrix.encode(read(pa.table({"n": [5, 6, 7], "w": ["b", "z", None]})))
    assert found[0].tolist() == [5.0, 1.0]
    assert np.isnan(found[1:, 1]).all()


@pytest.mark.parametrize("metric", ["r2", "rmse", "mae"])
def test_measures_of_a_regression_are_scikit_learns(metric):
    from sklearn import metrics

    rng = np.random.default_rng(0)
    y, said = rng.normal(size=(2, 30))
    reference = {"r2": "r2_score", "rmse": "root_mean_squared_error", "mae": "mean_absolute_error"}
    wanted = getattr(metrics, reference[metric])(y, said)
    assert measure(metric)(y, said[:, None]) == pytest.approx(wanted)


def test_no_row_is_tested_twice_and_seeds_differ():
    task = task_of(["a", "b"] * 20)
    parts, _ = make_parts(range(40), task, quick_plan("x", "y", seeds=4))
    tested = np.concatenate([part.test for part in parts])
    assert len(np.unique(tested)) == len(tested) == 32
    assert [part.seed for part in parts] == [0, 1, 2, 3]
    assert all(np.isin(part.train, part.test).sum() == 0 for part in parts)
    assert all(task.codes[part.test].mean() == 0.5 for part in parts)


def test_windows_of_time_are_later_than_what_is_trained_on():
    task, when = task_of(list(np.arange(40.0) + 0.5)), np.arange(40)[::-1]
    parts, _ = make_parts(range(40), task, quick_plan("x", "y", seeds=3), RowKeys(order=when))
    for part in parts:
        assert when[part.train].max() < when[part.test].min()
    assert [when[part.test].max() for part in parts] == [39, 31, 23]
