import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.evaluate import WorstMistakes, to_svg, worst_mistakes

TRUTH, SAID, LOSS = ["a", "b", "a", "b"], ["a", "a", "b", "a"], [9.0, 0.7, np.nan, 2.0]


def test_worst_come_first_right_answers_never_and_unknown_losses_at_the_top():
    found = worst_mistakes(TRUTH, SAID, LOSS, confidence=[0.9, 0.5, 0.8, 0.9])
    assert [m.index for m in found] == [2, 3, 1]
    assert found[1].truth == "b"
    assert found[1].prediction == "a"
    assert found[1].confidence == 0.9
    assert type(found[1].truth) is str


def test_most_limits_the_list():
    assert len(worst_mistakes(TRUTH, SAID, LOSS, most=1)) == 1
    assert worst_mistakes(TRUTH, SAID, LOSS, most=0) == []


@pytest.mark.parametrize(
    "rows",
    [
        {"n": [1, 2, 3, 4], "x": [0.5, 1.5, 2.5, 3.5]},
        pd.DataFrame({"n": [1, 2, 3, 4], "x": [0.5, 1.5, 2.5, 3.5]}, index=[9, 8, 7, 6]),
        "polars",
        [{"n": n, "x": n - 0.5} for n in range(1, 5)],
    ],
)
def test_rows_are_read_by_position_and_keep_their_types(rows):
    if isinstance(rows, str):
        polars = pytest.importorskip("polars")
        rows = polars.DataFrame({"n": [1, 2, 3, 4], "x": [0.5, 1.5, 2.5, 3.5]})
    row = worst_mistakes(TRUTH, SAID, LOSS, rows)[1].row
    assert row == {"n": 4, "x": 3.5}
    assert type(row["n"]) is int


def test_arrays_and_texts_get_names():
    assert worst_mistakes(TRUTH, SAID, LOSS, np.eye(4))[1].row == {
        "x0": 0,
        "x1": 0,
        "x2": 0,
        "x3": 1,
    }
    assert worst_mistakes(TRUTH, SAID, LOSS, ["p", "q", "r", "s"])[1].row == {"x": "s"}


def test_errors_name_the_values():
    with pytest.raises(ShapeMismatch, match="got 4, 4 and 1"):
        worst_mistakes(TRUTH, SAID, [1.0])
    with pytest.raises(InvalidParameter, match="`most` must not be negative; got -1"):
        worst_mistakes(TRUTH, SAID, LOSS, most=-1)


@pytest.mark.parametrize("layout", ["grey", "channel first", "channel last", "colour", "flat"])
def test_mistakes_that_are_images_are_shown_as_pictures(layout):
    rng = np.random.default_rng(0)
    pixels = rng.random((4, 6, 5, 3) if layout == "colour" else (4, 6, 5))
    rows = {
        "channel first": pixels[:, None],
        "channel last": pixels[..., None],
        "flat": pixels.reshape(4, -1),
    }.get(layout, pixels)
    table = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    shown = WorstMistakes.from_predictions(
        [0, 1, 0, 1], table, rows, shape=(6, 5) if layout == "flat" else None
    )
    assert [m.index for m in shown.mistakes] == [1, 2]
    expected = pixels[[1, 2]]
    over = tuple(range(1, expected.ndim))
    low, high = (f(expected, axis=over, keepdims=True) for f in (np.min, np.max))
    np.testing.assert_allclose(shown.images, (expected - low) / (high - low))
    svg = to_svg(shown.plot().figure_)
    assert "said 0 (80%)" in svg
    mine = Figure().add_subplot()
    assert shown.plot(ax=mine).ax_ is mine


def test_tables_keep_their_bars_and_a_wrong_shape_is_refused():
    table, rows = [[0.9, 0.1], [0.8, 0.2]], np.arange(8.0).reshape(2, 4)
    shown = WorstMistakes.from_predictions([1, 1], table, rows)
    assert shown.images is None
    assert shown.mistakes[0].row == {"x0": 0.0, "x1": 1.0, "x2": 2.0, "x3": 3.0}
    assert len(shown.plot().ax_.patches) == 2
    none = WorstMistakes.from_predictions([0, 0], table, rows, shape=(2, 2)).plot()
    assert none.mistakes == []
    with pytest.raises(ShapeMismatch, match=r"a row has columns, 4; got \(3, 3\)"):
        WorstMistakes.from_predictions([1, 1], table, rows, shape=(3, 3))
