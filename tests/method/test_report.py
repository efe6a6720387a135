import math
import re
import runpy
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from castalia.errors import CheckpointMismatch, DamagedFile, InvalidParameter
from castalia.method.report import Contender, RunReport, render, write

samples = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("sample_report.py"))))

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Collects tags, ids, links and headings, and checks that tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.ids, self.fetched, self.text = [], [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.fetched += [found[k] for k in ("src", "href", "action", "data") if k in found]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module", name="_unrendered")
def _rendered():
    """Pages are looked at here, figures and all."""


@pytest.fixture(scope="module")
def classification():
    return samples.classification_report()


@pytest.fixture(scope="module")
def regression():
    return samples.regression_report()


@pytest.fixture(scope="module")
def page(classification):
    return render(classification)


def bare(**changes):
    return RunReport("Title", "classification", "target", **changes)


def test_report_survives_json_unchanged(classification, regression, page):
    for report in (classification, regression):
        again = RunReport.from_json(report.to_json())
        assert again == report
        assert again.to_json() == report.to_json()
    assert render(RunReport.from_json(classification.to_json())) == page


def test_json_is_strict_and_keeps_numbers_that_are_not_finite():
    report = bare(settings={"a": math.nan, "b": math.inf, "c": [-math.inf]})
    text = report.to_json()
    assert "NaN" not in text
    assert "Infinity" not in text
    again = RunReport.from_json(text).settings
    assert math.isnan(again["a"])
    assert again["b"] == math.inf
    assert again["c"] == [-math.inf]


def test_rich_values_become_plain_on_construction():
    report = bare(
        y_true=np.array([0, 1]),
        probability=np.float32([[0.5, 0.5]]),
        settings={"path": Path("a/b"), "hidden": (1, np.int64(2)), 3: {"b", "a"}},
    )
    assert report.y_true == [0, 1]
    assert report.probability == [[0.5, 0.5]]
    assert report.settings == {"path": "a/b", "hidden": [1, 2], "3": ["a", "b"]}


def test_foreign_text_is_refused():
    with pytest.raises(DamagedFile, match="must be JSON"):
        RunReport.from_json("not json")
    with pytest.raises(DamagedFile, match="written by `to_json`"):
        RunReport.from_json("[1, 2]")
    with pytest.raises(CheckpointMismatch, match="the format must be 1; got 99"):
        RunReport.from_json('{"format": 99}')
    with pytest.raises(InvalidParameter, match="'baseline', 'model' or 'blend'; got 'rival'"):
        Contender("x", "rival", {})


def test_the_page_shows_rows_with_the_answers_the_model_gave_them():
    mistakes = [
        {"index": 7, "truth": "Gentoo", "prediction": "Adelie", "confidence": 0.93, "loss": 2.66,
         "row": {"bill": 48.5, "island": "Dream"}},
        {"index": 31, "truth": "Adelie", "prediction": "Chinstrap", "confidence": 0.61,
         "loss": 0.94, "row": {"bill": 41.25, "island": "Biscoe"}},
    ]  # fmt: skip
    words = Page(render(bare(mistakes=mistakes))).words
    assert "Test row Actual Predicted Confidence Loss bill island" in words
    assert "7 Gentoo Adelie 93.0% 2.66 48.5 Dream" in words
    assert "31 Adelie Chinstrap 61.0% 0.94 41.25 Biscoe" in words
    assert "The 2 worst, with their values" in words
    assert "Worst mistakes" not in Page(render(bare())).words


def test_page_shows_every_part(classification, page):
    assert len(classification.mistakes) >= 3
    words = Page(page).words
    for text in (
        classification.title,
        classification.verdict,
        *classification.advice,
        "Gradient boosting",
        "Learning curves",
        "Confusion",
        "Precision and recall",
        "Calibration",
        "Worst mistakes",
        "bill_length_mm",
        "Shuffled labels give chance",
        "still-improving",
        "training.optimizer",
        classification.reproduce,
    ):
        assert text in words, text


def test_the_verdict_comes_before_the_scores_and_the_settings_last(page):
    order = [page.index(f'id="{name}"') for name in ("verdict", "scores", "answers", "details")]
    assert order == sorted(order)


def test_regression_page_shows_residuals_and_states_the_comparison(regression):
    words = Page(render(regression)).words
    assert "Residuals" in words
    assert "Confusion" not in words
    assert "MLPRegressor reaches" in words
    assert "the best baseline, Gradient boosting" in words


def test_page_is_well_formed_with_unique_ids_and_headings(page):
    read = Page(page)
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    assert read.tags.count("h1") == 1
    assert read.tags.count("table") == read.tags.count("caption")
    levels = [int(t[1]) for t in read.tags if re.fullmatch(r"h[1-6]", t)]
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))


def test_figures_have_words_for_those_who_cannot_see_them(page):
    assert page.count("<svg") >= 6
    assert page.count("<svg") == len(re.findall(r'<svg[^>]*role="img" aria-label="[^"]+', page))


def test_page_loads_nothing(page):
    read = Page(page)
    assert all(target.startswith("#") for target in read.fetched)
    assert not {"script", "link", "iframe", "img", "object"} & set(read.tags)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert set(re.findall(r"https?://[^\"'\s<)]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_page_is_light_and_dark_and_prints(page):
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"' {{ 7*7 }} $a^$"


def test_nothing_in_the_data_becomes_markup():
    contenders = [
        Contender(EVIL, "model", {"accuracy": 0.5, EVIL: 1.0}, [0.4, 0.6], 1.0, EVIL),
        Contender("b" + EVIL, "baseline", {"accuracy": 0.4}),
    ]
    row = {"name": EVIL, "kind": EVIL, "missing": EVIL, "unique": EVIL, "detail": EVIL}
    report = RunReport(
        EVIL,
        "classification",
        EVIL,
        created=EVIL,
        data={
            "rows": 4,
            "columns": [row | {"note": EVIL}],
            "balance": {EVIL: 3, "ok": 1},
            "split": {EVIL: 3},
            "notes": [EVIL],
        },
        contenders=contenders,
        metric="accuracy",
        interval_note=EVIL,
        verdict=EVIL,
        advice=[EVIL],
        preflight=[dict.fromkeys(("name", "measured", "expected", "message"), EVIL)],
        history=[{"epoch": 1, "loss": 1.0, EVIL: EVIL}],
        y_true=[EVIL, "ok", EVIL, "ok"],
        y_pred=[EVIL, EVIL, EVIL, "ok"],
        probability=[[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]],
        classes=[EVIL, "ok"],
        mistakes=[{"index": EVIL, "truth": EVIL, "prediction": EVIL, "row": {EVIL: EVIL}}],
        settings={EVIL: {EVIL: EVIL}},
        environment={EVIL: EVIL},
        reproduce=EVIL,
        findings=[dict.fromkeys(("code", "name", "severity", "message", "remedy"), EVIL)],
    )
    page = render(report)
    read = Page(page)
    assert not {"script", "img"} & set(read.tags)
    assert read.open == []
    assert "49" not in re.sub(r"<svg.*?</svg>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert "could not be drawn" not in page


def test_an_empty_report_is_still_a_page():
    read = Page(render(bare()))
    assert read.open == []
    assert "svg" not in read.tags
    assert "Title" in read.words


def test_one_seed_shows_no_interval_and_no_false_comparison():
    report = bare(
        metric="accuracy",
        contenders=[Contender("Net", "model", {"accuracy": 0.9}, [math.nan, math.nan])],
    )
    words = Page(render(report)).words
    assert "nan" not in words
    assert "Bars:" not in words
    assert "No intervals are known" in words
    assert "there is no baseline to compare it with" in words


def test_no_probabilities_no_curves_from_them(classification):
    parts = vars(classification) | {"probability": None, "history": []}
    words = Page(render(RunReport(**parts))).words
    assert "Confusion" in words
    assert "a stated confidence" not in words
    assert "Learning curves" not in words


def test_a_figure_that_cannot_be_drawn_does_not_cost_the_report(caplog):
    report = bare(
        y_true=["a", "b"],
        y_pred=["a", "b"],
        probability=[[math.nan, 1], [0, 1]],
        classes=["a", "b"],
        history=[{"epoch": 1, "loss": math.nan}],
    )
    words = Page(render(report)).words
    assert "Confusion" in words
    assert words.count("This figure could not be drawn") == 4
    assert "no epoch has a finite loss" in caplog.text


def test_fifty_classes_and_a_hundred_columns_stay_readable():
    rng = np.random.default_rng(0)
    classes = [f"class {i:02}" for i in range(50)]
    truth = rng.integers(0, 50, 400)
    said = np.where(rng.random(400) < 0.5, truth, rng.integers(0, 50, 400))
    names = [f"column {i:03} " + "x" * 500 for i in range(100)]
    report = bare(
        data={
            "rows": 400,
            "columns": [{"name": n, "detail": "y" * 5000} for n in names],
            "balance": dict.fromkeys(classes, 8),
        },
        y_true=[classes[i] for i in truth],
        y_pred=[classes[i] for i in said],
        classes=classes,
        mistakes=[
            {"index": 0, "truth": 1, "prediction": 2, "row": dict.fromkeys(names, "z" * 999)}
        ],
    )
    page = render(report)
    words = Page(page).words
    assert "the 15 classes confused most often; 35 are left out" in words
    assert "35 more classes" in words
    assert "88 more columns are not shown" in words
    assert "The other 88 columns" in words
    assert max(len(word) for word in words.split()) <= 160
    assert len(page) < 300_000


def test_the_better_score_is_marked_in_the_direction_of_the_metric():
    report = RunReport(
        "T",
        "regression",
        "y",
        metric="rmse",
        contenders=[
            Contender("Mean", "baseline", {"rmse": 12345.6}),
            Contender("Ridge", "baseline", {"rmse": 20.0}),
            Contender("Net", "model", {"rmse": 25.0}),
        ],
    )
    page = render(report)
    assert "<strong>20.00</strong>" in page
    assert page.count("<strong>") == 1
    assert "12,346" in page
    assert "the baseline is better" in page
    assert "+5.000" in page


def test_write_leaves_one_whole_file(tmp_path):
    report = bare()
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write(report, path) == path
    assert path.read_text(encoding="utf-8") == render(report)
    assert list(tmp_path.iterdir()) == [path]
