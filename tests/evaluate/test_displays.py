import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.dummy import DummyRegressor

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate import (
    Calibration,
    Confusion,
    CoverageAccuracy,
    LearningCurves,
    PrecisionRecall,
    Residuals,
    ScoreComparison,
    to_svg,
)

RNG = np.random.default_rng(0)
TABLE = RNG.dirichlet(np.ones(3), size=120)
CODE = (TABLE.cumsum(axis=1) > RNG.random((120, 1))).argmax(axis=1)
HISTORY = [{"epoch": e, "loss": 3 / e, "val_loss": 1 + (e - 4) ** 2} for e in range(1, 8)]
DISPLAYS = {
    "curves": lambda: LearningCurves.from_history(HISTORY),
    "residuals": lambda: Residuals.from_predictions(TABLE[:, 0], TABLE[:, 1]),
    "confusion": lambda: Confusion.from_predictions(CODE, TABLE.argmax(axis=1)),
    "precision_recall": lambda: PrecisionRecall.from_predictions(CODE, TABLE),
    "calibration": lambda: Calibration.from_predictions(CODE, TABLE),
    "comparison": lambda: ScoreComparison.from_scores(["a", "b"], [0.1, 0.2], [None, (0.1, 0.3)]),
    "coverage": lambda: CoverageAccuracy.from_predictions(CODE, TABLE),
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_display_draws_on_its_own_figure_or_on_given_axes(name):
    shown = DISPLAYS[name]().plot()
    assert shown.figure_ is shown.ax_.figure
    mine = Figure().add_subplot()
    shown = DISPLAYS[name]().plot(ax=mine)
    assert shown.ax_ is mine
    assert shown.figure_ is mine.figure
    assert ET.fromstring(to_svg(shown.figure_)).tag.endswith("svg")


def test_pyplot_is_never_imported():
    code = (
        "import sys; from castalia.evaluate import Residuals, to_svg;"
        "assert 'matplotlib' not in sys.modules;"
        "to_svg(Residuals.from_predictions([1.0, 2.0], [1.0, 2.0]).plot().figure_);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_best_epoch_is_that_of_the_lowest_validation_loss():
    assert LearningCurves.from_history(HISTORY).best_epoch == 4
    bare = [{"epoch": e, "loss": 3 / e} for e in range(1, 4)]
    assert LearningCurves.from_history(bare).best_epoch == 3


def test_learning_curves_survive_losses_that_are_not_numbers():
    history = [{"epoch": 1, "loss": float("nan")}, {"epoch": 2, "loss": None}]
    assert LearningCurves.from_history(history).plot().best_epoch is None
    with pytest.raises(InvalidData, match="at least one epoch; got none"):
        LearningCurves.from_history([])


def test_losses_over_orders_of_magnitude_get_a_log_scale():
    history = [{"epoch": e, "loss": 10.0**-e} for e in range(4)]
    assert LearningCurves.from_history(history).plot().ax_.get_yscale() == "log"


def test_confusion_counts_and_keeps_labels_outside_the_classes():
    shown = Confusion.from_predictions(["a", "b", "z"], ["a", "a", "b"], classes=["b", "a"])
    assert shown.labels == ["b", "a", "z"]
    assert shown.matrix.tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]


def test_confusion_of_many_classes_keeps_the_most_confused():
    truth = np.repeat(np.arange(50), 4)
    said = truth.copy()
    said[truth == 7] = 9
    shown = Confusion.from_predictions(truth, said, most=15)
    assert len(shown.labels) == 15
    assert shown.hidden == 35
    assert {"7", "9"} <= set(shown.labels)


def test_confusion_of_mixed_labels_does_not_fail():
    shown = Confusion.from_predictions([1, 2, 2], [1, 2, 1], classes=[1, "two"])
    assert shown.labels == ["1", "two", "2"]


def test_many_residuals_are_thinned_but_the_worst_stay():
    y = RNG.normal(size=50_000)
    p = y + RNG.normal(size=50_000)
    shown = Residuals.from_predictions(y, p).plot()
    drawn = shown.ax_.lines[0].get_ydata()
    assert len(drawn) <= 1000
    assert np.abs(drawn).max() == np.abs(y - p).max()


def test_residual_errors_name_the_values():
    with pytest.raises(InvalidParameter, match="'residual' or 'actual'; got 'both'"):
        Residuals.from_predictions([1.0], [1.0]).plot(kind="both")
    with pytest.raises(ShapeMismatch, match=r"\(2,\) and \(1,\)"):
        Residuals.from_predictions([1.0, 2.0], [1.0])
    with pytest.raises(InvalidData, match="at least one row must be finite"):
        Residuals.from_predictions([np.nan], [1.0])


def test_precision_recall_has_one_curve_for_two_classes_and_the_hardest_of_many():
    two = PrecisionRecall.from_predictions([0, 1, 1], [0.2, 0.7, 0.4])
    assert list(two.curves) == ["1"]
    assert two.chance == pytest.approx(2 / 3)
    many = RNG.dirichlet(np.ones(9), size=200)
    shown = PrecisionRecall.from_predictions(many.argmax(axis=1), many, classes=range(9), most=4)
    assert len(shown.curves) == 4
    assert shown.hidden == 5


def test_calibration_ranges_hold_the_accuracy():
    shown = Calibration.from_predictions(CODE, TABLE)
    assert (shown.low <= shown.accuracy).all()
    assert (shown.accuracy <= shown.high).all()
    assert shown.count.sum() == 120


def test_comparison_puts_the_best_on_top_whatever_the_direction():
    values = [3.0, 1.0, float("nan")]
    assert ScoreComparison.from_scores("abc", values, metric="rmse").names == ["b", "a"]
    assert ScoreComparison.from_scores("abc", values, metric="r2").names == ["a", "b"]


def test_svgs_share_no_ids_and_every_reference_has_its_target():
    drawings = [DISPLAYS[name]().plot().figure_ for name in ("curves", "residuals", "confusion")]
    ids = []
    for drawing in drawings:
        svg = to_svg(drawing)
        own = re.findall(r' id="([^"]+)"', svg)
        assert set(re.findall(r'(?:href="|url\()#([^")]+)', svg)) == set(own)
        ids += own
    assert len(ids) == len(set(ids))
    assert ids


def test_svg_text_is_text_in_the_colour_of_the_page():
    svg = to_svg(DISPLAYS["curves"]().plot().figure_, title='a "b" <c>')
    assert ">epoch</text>" in svg
    assert "currentColor" in svg
    assert 'aria-label="a &quot;b&quot; &lt;c&gt;"' in svg


def test_svg_is_the_same_each_time():
    one, two = (to_svg(DISPLAYS["confusion"]().plot().figure_) for _ in range(2))
    assert one == two


def test_odd_labels_are_drawn_as_they_are():
    odd = ["<script>alert(1)</script>", "$x^$", "$\\nonsense$", "日本", "a\x00b"]
    svg = to_svg(Confusion.from_predictions(odd, odd).plot().figure_)
    assert "<script" not in svg
    assert "$x^$" in svg
    assert "日本" in svg
    assert "\x00" not in svg
    ET.fromstring(svg)


def test_a_regressor_has_no_calibration():
    with pytest.raises(InvalidParameter, match="must be a classifier.*got DummyRegressor"):
        Calibration.from_estimator(DummyRegressor().fit([[0.0]], [1.0]), [[0.0]], [1.0])


def test_labels_are_shortened_no_further_than_they_differ():
    names = [f"transformer.blocks.{i}.attention.query.weight" for i in range(3)]
    shown = Confusion.from_predictions(names, names).plot()
    written = [text.get_text() for text in shown.ax_.get_yticklabels()]
    assert len(set(written)) == 3
