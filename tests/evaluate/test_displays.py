import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, precision_recall_curve
from tests.processes import run_code

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate import (
    Calibration,
    Confusion,
    CoverageAccuracy,
    DoubleDescent,
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


def test_pyplot_is_never_imported(zygote, tmp_path):
    code = (
        "import sys; from castalia.evaluate import Residuals, to_svg;"
        "assert 'matplotlib' not in sys.modules;"
        "to_svg(Residuals.from_predictions([1.0, 2.0], [1.0, 2.0]).plot().figure_);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = run_code(zygote, tmp_path, code)
    assert done.returncode == 0, done.stderr


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


def test_labels_are_shortened_no_further_than_they_differ():
    names = [f"transformer.blocks.{i}.attention.query.weight" for i in range(3)]
    shown = Confusion.from_predictions(names, names).plot()
    written = [text.get_text() for text in shown.ax_.get_yticklabels()]
    assert len(set(written)) == 3


# ---- in scikit-learn's manner ----


def contrast(one, other):
    """WCAG 2.2, relative luminance and contrast ratio."""
    light = []
    for colour in (one, other):
        parts = np.array(to_rgb(colour))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(light) / min(light)


@pytest.mark.parametrize("right", [1, 40, 500, 2000])
def test_every_number_of_a_confusion_matrix_can_be_read_on_its_cell(right):
    shown = Confusion(np.array([[right, 300], [90, 60]]), ["a", "b"]).plot()
    cells = {
        tuple(np.round(np.add(p.get_xy(), 0.48))): p.get_facecolor() for p in shown.ax_.patches
    }
    assert len(shown.ax_.texts) == 4
    for text in shown.ax_.texts:
        shade = cells[text.get_position()]
        assert shade[3] == 1  # or the page would be seen through it
        assert contrast(text.get_color(), shade[:3]) >= 4.5


def test_a_saved_figure_has_a_white_background_and_one_in_a_page_has_none(tmp_path):
    for name in ("confusion", "calibration"):
        figure = DISPLAYS[name]().plot().figure_
        figure.savefig(tmp_path / "a.png")
        corner = np.asarray(Image.open(tmp_path / "a.png").convert("RGBA"))[0, 0]
        assert corner.tolist() == [255, 255, 255, 255]
        assert "#ffffff" not in to_svg(figure)


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_classification(200, random_state=0)
    names = np.array(["no", "yes"])[y]
    return LogisticRegression().fit(X[:100], names[:100]), X[100:], names[100:]


@pytest.mark.parametrize("kind", [Calibration, Confusion, CoverageAccuracy, PrecisionRecall])
def test_a_display_of_an_estimator_draws_on_axes_at_once_or_when_it_is_looked_at(kind, two_classes):
    mine = Figure().add_subplot()
    assert kind.from_estimator(*two_classes, ax=mine).ax_ is mine
    assert mine.has_data()
    later = kind.from_estimator(*two_classes)
    assert "ax_" not in vars(later)
    assert later.figure_ is later.ax_.figure
    assert later.ax_.has_data()


@pytest.mark.parametrize("kind", [Calibration, Confusion, CoverageAccuracy, PrecisionRecall])
def test_a_display_of_classes_refuses_a_regressor(kind):
    model = Ridge().fit(np.eye(3), [1.0, 2.0, 3.0])
    with pytest.raises(InvalidParameter, match="must be a fitted classifier with .* got Ridge"):
        kind.from_estimator(model, np.eye(3), [1, 2, 3])


@pytest.mark.parametrize("pos_label", ["no", "yes"])
def test_the_curve_of_a_class_is_that_of_scikit_learn(two_classes, pos_label):
    ours = PrecisionRecall.from_estimator(*two_classes, pos_label=pos_label, name="logistic")
    model, X, y = two_classes
    belief = model.predict_proba(X)[:, list(model.classes_).index(pos_label)]
    precision, recall, _ = precision_recall_curve(y, belief, pos_label=pos_label)
    found = ours.curves[pos_label]
    np.testing.assert_array_equal(found[0], recall)
    np.testing.assert_array_equal(found[1], precision)
    assert found[2] == average_precision_score(y == pos_label, belief)
    assert ours.chance == (y == pos_label).mean()
    legend = [text.get_text() for text in ours.ax_.get_legend().get_texts()]
    assert legend == [f"logistic (AP {found[2]:.3f})", "chance"]
    with pytest.raises(InvalidParameter, match="`pos_label` must be `no` or `yes`; got 'maybe'"):
        PrecisionRecall.from_estimator(*two_classes, pos_label="maybe")


@pytest.mark.parametrize("kind", [Calibration, CoverageAccuracy])
def test_a_model_s_name_is_in_the_legend(kind, two_classes):
    shown = kind.from_estimator(*two_classes, name="logistic")
    legend = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert any(text.startswith("logistic") for text in legend)


@pytest.mark.parametrize("x", [[30, 80, 2000], [5, 40, 300], [1e-6, 1e-3, 1e3], [1, 2, 3, 99]])
def test_ticks_of_a_log_axis_are_plain_numbers_that_do_not_overlap(x):
    shown = DoubleDescent(np.array(x), np.ones(len(x)), np.arange(1.0, len(x) + 1)).plot()
    shown.figure_.draw_without_rendering()
    low, high = shown.ax_.get_xlim()
    ticks = [t for t in shown.ax_.xaxis.get_ticklabels(which="both") if t.get_text()]
    boxes = [t.get_window_extent() for t in ticks if low <= t.get_position()[0] <= high]
    assert len(boxes) >= 2
    assert all(a.x1 < b.x0 for a, b in pairwise(sorted(boxes, key=lambda box: box.x0)))
    assert all(float(t.get_text()) == pytest.approx(t.get_position()[0]) for t in ticks)
