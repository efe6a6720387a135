"""The table encoder: one matrix, the same from every source."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from castalia.data import TableEncoder, read
from castalia.data.tables import column_moments as moments
from castalia.errors import DataWarning, InvalidData, InvalidParameter, ShapeMismatch


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "id": range(6),
            "age": [20.0, 30.0, np.nan, 40.0, 50.0, 60.0],
            "ok": [True, False, True, True, False, True],
            "day": pd.to_datetime(["2020-01-01", "2020-01-03"] * 3),
            "city": ["Rome", "Oslo", None, "Rome", "Bonn", "Rome"],
            "same": [1] * 6,
        }
    )


def test_numbers_are_standardised_gaps_become_zero_and_are_marked():
    x = np.array([[1.0, 10.0], [np.nan, 20.0], [3.0, 60.0]])
    encoder = TableEncoder().fit(x)
    z = encoder.encode(x, np.float64)
    assert encoder.names == ["x0", "x1", "x0 is missing"]
    np.testing.assert_allclose(z[:, 0], [-1, 0, 1])
    np.testing.assert_allclose(z[:, 1], (x[:, 1] - 30) / np.std(x[:, 1]))
    np.testing.assert_array_equal(z[:, 2], [0, 1, 0])


def test_a_frame_becomes_numbers_then_indicators_then_codes(frame):
    encoder = TableEncoder().fit(frame)
    assert encoder.names == ["age", "ok", "day", "age is missing", "city"]
    assert encoder.used == ["age", "ok", "day", "city"]
    assert encoder.ignored == {"id": "identifier", "same": "constant"}
    assert encoder.categories == (4,)
    z = encoder.encode(frame)
    assert z.shape == (6, encoder.inputs)
    assert z.dtype == np.float32
    np.testing.assert_array_equal(z[:, 4], [3, 2, 0, 3, 1, 3])  # Bonn, Oslo, Rome
    np.testing.assert_allclose(z[:2, 2], [-1, 1])


def test_columns_are_found_by_name_and_extra_ones_ignored(frame):
    encoder = TableEncoder().fit(frame)
    shuffled = frame[frame.columns[::-1]].assign(more=1)
    np.testing.assert_array_equal(encoder.encode(shuffled), encoder.encode(frame))


def test_absent_columns_are_named_all_at_once(frame):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(
        InvalidData, match="must have every column used in fit; `age` and `city` are missing"
    ):
        encoder.encode(frame.drop(columns=["age", "city", "same"]))


def test_unseen_categories_share_slot_zero(frame):
    encoder = TableEncoder().fit(frame)
    other = frame.assign(city=["Paris", "Rome", None, "Nice", "Oslo", "Bonn"])
    np.testing.assert_array_equal(encoder.encode(other)[:, 4], [0, 3, 0, 0, 2, 1])


def test_a_target_is_not_encoded(frame):
    assert "age" not in TableEncoder().fit(read(frame, target="age")).used


def test_words_where_numbers_were_are_named_with_their_row(frame):
    encoder = TableEncoder().fit(frame)
    bad = frame.astype({"age": object}).assign(age=["1", "2", "x", "3", "4", "5"])
    with pytest.raises(
        InvalidData, match="column `age` must hold numbers, as in fit; got 'x' in row 2"
    ):
        encoder.encode(bad)
    with pytest.raises(InvalidData, match="column `day` must hold dates .*; got 3 in row 0"):
        encoder.encode(frame.assign(day=3))
    with pytest.raises(InvalidData, match="column `age` must hold numbers"):
        encoder.encode(frame.assign(age=frame["day"]))


def test_other_spellings_of_the_same_values_are_understood(frame):
    encoder = TableEncoder().fit(frame)
    text = frame.assign(
        age=[" 20", "30.0", None, "4e1", "50", "60"],
        ok=["true", "False", "TRUE", "true", "false", "true"],
        day=["2020-01-01", "2020-01-03"] * 3,
    )
    np.testing.assert_array_equal(encoder.encode(text), encoder.encode(frame))
    assert (encoder.encode(frame.assign(age=None))[:, 0] == 0).all()


def test_categories_that_are_numbers_match_whatever_their_type():
    encoder = TableEncoder().fit(
        pd.DataFrame({"g": pd.Categorical([1, 2, 1, 3]), "x": [1, 2, 2, 1]})
    )
    for g in ([1, 2, 9], [1.0, 2.0, np.nan], ["1", "2", "9"], pd.Categorical([1, 2, 9])):
        z = encoder.encode(pd.DataFrame({"g": g, "x": [1, 1, 1]}))
        np.testing.assert_array_equal(z[:, 1], [1, 2, 0])


def test_infinity_is_refused_with_column_and_row(frame):
    with pytest.raises(
        InvalidData, match="column `x1` must hold finite numbers; got -inf in row 2"
    ):
        TableEncoder().fit(np.array([[1, 2], [3, 4], [5, -np.inf]]))
    encoder = TableEncoder().fit(np.eye(3))
    with pytest.raises(InvalidData, match="column `x0` must hold finite numbers; got inf in row 1"):
        encoder.encode(np.array([[1, 2, 3], [np.inf, np.nan, 6]]))
    with pytest.raises(
        InvalidData, match="column `age` must hold finite numbers; got inf in row 4"
    ):
        TableEncoder().fit(frame.assign(age=[1, 2, 3, 4, np.inf, 5]))
    with pytest.raises(
        InvalidData, match="column `age` must hold finite numbers; got inf in row 4"
    ):
        TableEncoder().fit(frame).encode(frame.assign(age=[1, 2, 3, 4, np.inf, 5]))


def test_columns_without_values_are_dropped_with_a_warning(frame):
    x = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    with pytest.warns(DataWarning, match="column holds no values and will not be used: `x0`"):
        encoder = TableEncoder().fit(x)
    assert encoder.used == ["x1"]
    np.testing.assert_allclose(encoder.encode(x), [[-1], [1]])
    with pytest.warns(DataWarning, match="columns hold no values.*`e` and `f`"):
        encoder = TableEncoder().fit(frame.assign(e=None, f=np.nan))
    assert encoder.ignored["e"] == "all values are missing"
    with (
        pytest.warns(DataWarning),
        pytest.raises(InvalidData, match="must have a column with values"),
    ):
        TableEncoder().fit(np.full((3, 1), np.nan))


def test_constant_columns_of_arrays_become_zeros_in_silence():
    x = np.column_stack([np.full(100, 0.1), np.arange(100.0)])
    assert (TableEncoder().fit(x).encode(x)[:, 0] == 0).all()


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint64, np.float16, np.float32, np.longdouble, object]
)
def test_arrays_of_any_number_type_work_and_agree(dtype):
    x = np.array([[0, 1], [1, 1], [1, 0]])
    expected = TableEncoder().fit(x).encode(x)
    np.testing.assert_array_equal(
        TableEncoder().fit(x.astype(dtype)).encode(x.astype(dtype)), expected
    )


def test_lists_of_rows_work():
    assert TableEncoder().fit([[1, 2], [3, 4]]).encode([[1, 2]]).tolist() == [[-1, -1]]


def test_strings_in_an_array_become_categories():
    x = np.array([["1.5", "red"], ["2.5", "blue"], ["3.5", "red"]])
    encoder = TableEncoder().fit(x)
    assert encoder.categories == (3,)
    np.testing.assert_array_equal(encoder.encode(x)[:, 1], [2, 1, 2])


def test_an_encoder_of_a_frame_takes_arrays_by_position(frame):
    numbers = frame[["same", "age", "ok"]].astype(float)
    encoder = TableEncoder().fit(numbers)
    np.testing.assert_array_equal(encoder.encode(numbers.to_numpy()), encoder.encode(numbers))
    np.testing.assert_array_equal(
        encoder.encode(numbers.to_numpy().astype(object)), encoder.encode(numbers)
    )
    mixed = TableEncoder().fit(frame)
    np.testing.assert_array_equal(mixed.encode(frame.to_numpy()), mixed.encode(frame))


def test_an_encoder_of_an_array_takes_frames_by_position():
    x = np.arange(6.0).reshape(3, 2)
    encoder = TableEncoder().fit(x)
    np.testing.assert_array_equal(
        encoder.encode(pd.DataFrame(x, columns=["p", "q"])), encoder.encode(x)
    )


def test_wrong_widths_sizes_and_types_are_refused():
    encoder = TableEncoder().fit(np.eye(3))
    with pytest.raises(ShapeMismatch, match="X has 2 features, but TableEncoder is expecting 3"):
        encoder.encode(np.eye(2))
    with pytest.raises(InvalidData, match="0 sample"):
        encoder.encode(np.empty((0, 3)))
    with pytest.raises(InvalidData, match="0 feature"):
        TableEncoder().fit(np.empty((3, 0)))
    with pytest.raises(InvalidData, match="Reshape your data"):
        encoder.encode(np.zeros(3))
    with pytest.raises(InvalidParameter, match="`dtype` must be float32 or float64; got int64"):
        encoder.encode(np.eye(3), int)
    with pytest.raises(NotFittedError):
        TableEncoder().encode(np.eye(3))


def test_numbers_beyond_float32_are_clipped_not_infinite():
    encoder = TableEncoder().fit(np.array([[0.0], [1.0]]))
    assert np.isfinite(encoder.encode(np.array([[1e300], [-1e300]]))).all()
    huge = np.array([[1e308], [-1e308], [0.0]])
    assert np.isfinite(TableEncoder().fit(huge).encode(huge)).all()


# -- weights ------------------------------------------------------------------------------------


def test_weighted_means_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(50, 3)), rng.random(50)
    state = TableEncoder().fit(x, w).state()
    for j in range(3):
        mean = np.average(np.ascontiguousarray(x[:, j]), weights=w)
        assert state["mean"][j] == mean
        np.testing.assert_allclose(
            state["scale"][j] ** 2, np.average((x[:, j] - mean) ** 2, weights=w)
        )


@pytest.mark.parametrize("make", [lambda f: f, lambda f: f[["age", "ok"]].to_numpy(float)])
def test_weight_zero_is_absence_and_weight_two_is_repetition(frame, make):
    frame = frame.drop(columns="id")
    weight = np.array([1, 2, 0, 1, 0, 2])
    copies = make(frame.loc[np.repeat(frame.index, weight)])
    one, two = TableEncoder().fit(make(frame), weight), TableEncoder().fit(copies)
    assert one.inputs == make(frame).shape[1] - (1 if one._named else 0)  # the gap has weight 0
    np.testing.assert_allclose(one.encode(copies), two.encode(copies), rtol=1e-6)


def test_all_ones_change_no_bit(frame):
    for data in (frame, np.random.default_rng(0).normal(size=(100_000, 2))):
        one, two = TableEncoder().fit(data), TableEncoder().fit(data, np.ones(len(data)))
        np.testing.assert_array_equal(one.state()["mean"], two.state()["mean"])
        np.testing.assert_array_equal(one.state()["scale"], two.state()["scale"])


@pytest.mark.parametrize("weight", [[1, -1, 1], [0, 0, 0], [1, np.nan, 1]])
def test_bad_weights_are_refused(weight):
    with pytest.raises(InvalidData, match="`sample_weight` must be finite, not negative"):
        TableEncoder().fit(np.eye(3), weight)


def test_weights_need_one_number_a_row():
    with pytest.raises(ShapeMismatch, match=r"must have shape \(3,\); got \(2,\)"):
        TableEncoder().fit(np.eye(3), [1, 1])


# -- keeping ------------------------------------------------------------------------------------


def test_state_is_json_and_arrays_and_comes_back_exactly(frame):
    encoder = TableEncoder().fit(frame)
    state = encoder.state()
    plain = json.loads(
        json.dumps({k: v for k, v in state.items() if not isinstance(v, np.ndarray)})
    )
    again = TableEncoder.from_state({**state, **plain})
    assert repr(again) == repr(encoder) == "TableEncoder(4 columns -> 5 inputs)"
    assert (again.names, again.ignored) == (encoder.names, encoder.ignored)
    for other in (again, pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_array_equal(other.encode(frame, float), encoder.encode(frame, float))


# -- one result from every source ---------------------------------------------------------------


def same(one, two):
    a, b = one.state(), two.state()
    np.testing.assert_array_equal(a.pop("mean"), b.pop("mean"))
    np.testing.assert_array_equal(a.pop("scale"), b.pop("scale"))
    assert a == b


def test_many_chunks_of_weighted_rows_give_bit_equal_statistics_from_every_source(tmp_path):
    rng = np.random.default_rng(0)
    rows = 2 * moments.CHUNK + 17
    numbers = rng.normal(5, 3, (rows, 3)).astype(np.float32).astype(float)
    numbers[rng.random(rows) < 0.1, 1] = np.nan
    weight = rng.random(rows)
    names = ["x0", "x1", "x2"]
    table = pa.table([pa.array(c, from_pandas=True) for c in numbers.T], names=names)
    table = table.append_column("c", pa.array(rng.choice(["u", "v", "w"], rows)))
    pacsv.write_csv(table, tmp_path / "t.csv")
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50_000)
    memory = TableEncoder().fit(table, weight)
    for name in ("t.csv", "t.parquet"):
        data = read(tmp_path / name, stream=True)
        streamed = TableEncoder().fit(data, weight)
        same(streamed, memory)
        np.testing.assert_array_equal(streamed.encode(data), memory.encode(table))
    array = TableEncoder().fit(numbers, weight)
    for key in ("mean", "scale", "flagged"):
        np.testing.assert_array_equal(array.state()[key], memory.state()[key])
    np.testing.assert_array_equal(array.encode(numbers), memory.encode(table)[:, :4])
    fortran = TableEncoder().fit(np.asfortranarray(numbers), weight)
    np.testing.assert_array_equal(fortran.state()["mean"], array.state()["mean"])


finite = st.floats(-1e6, 1e6, width=32) | st.just(np.nan)
words = st.lists(st.sampled_from(["a", "b", "c d", "é", None]), min_size=12, max_size=12)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(x=hnp.arrays(float, (12, 2), elements=finite), w=words, chunk=st.integers(1, 13))
def test_sources_agree_bit_for_bit_whatever_the_chunks(tmp_path, monkeypatch, x, w, chunk):
    monkeypatch.setattr(moments.spans, "__defaults__", (chunk,))
    monkeypatch.setattr(read(x).chunks.__func__, "__defaults__", (chunk,))
    x0, x1 = (pa.array(column, from_pandas=True) for column in x.T)
    table = pa.table({"x0": x0, "x1": x1, "w": w})
    pacsv.write_csv(table, tmp_path / "t.csv")
    pq.write_table(table, tmp_path / "t.parquet")
    polars = pytest.importorskip("polars")
    sources = [table, table.to_pandas(), polars.from_arrow(table)]
    sources += [read(tmp_path / n, stream=s) for n in ("t.csv", "t.parquet") for s in (True, False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            first = TableEncoder().fit(table)
        except InvalidData:
            return
        for source in sources[1:]:
            other = TableEncoder().fit(source)
            same(other, first)
            np.testing.assert_array_equal(other.encode(source, float), first.encode(table, float))
        array = TableEncoder().fit(np.nan_to_num(x))
    state = array.state()
    part = [
        i
        for i, name in enumerate(state["numeric"])
        if name in first.used and not np.isnan(x[:, i]).any()
    ]
    for i in part:
        assert state["mean"][i] == first.state()["mean"][first.used.index(f"x{i}")]


def test_merged_moments_equal_those_of_the_whole():
    rng = np.random.default_rng(1)
    x = rng.normal(1e6, 1, (2, 1000))
    parts = moments.Moments(2)
    for span in moments.spans(1000, 77):
        parts.add(np.ascontiguousarray(x[:, span]))
    np.testing.assert_allclose(parts.centre(), x.mean(axis=1), rtol=1e-14)
    np.testing.assert_allclose(parts.spread(), x.std(axis=1), rtol=1e-9)


def test_threads_gather_the_same_statistics_to_the_bit(monkeypatch):
    array = np.random.default_rng(0).normal(3, 2, (500, 40)).astype(np.float32)
    array[7, 5] = np.nan
    alone = TableEncoder().fit(array).state()
    monkeypatch.setattr("castalia.data.tables.table_encoder._THREADED", 0)
    together = TableEncoder().fit(array).state()
    assert all(np.array_equal(alone[key], together[key]) for key in ("mean", "scale"))
