"""Which contender is recommended, and how sure that is."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tests.method.small import quick_plan

from castalia.method import evaluate, run
from castalia.method.answer_scores import Answers, score_basis
from castalia.method.fit_verdict import decide
from castalia.method.kinds import open_data
from castalia.method.problem import Problem, pose_problem
from castalia.method.split_interval import RowsTested, split_interval
from castalia.method.task import Task
from castalia.method.train_test_split import Part, RowKeys


def problem_of(y, parts=3, share=0.2, metric="accuracy"):
    """Return a problem whose rows are cut into parts with rows of their own."""
    rows, size = np.arange(len(y)), int(share * len(y))
    cuts = [rows[i * size : (i + 1) * size] for i in range(parts)]
    made = [Part(f"split-{i}", np.setdiff1d(rows, cut), cut, i) for i, cut in enumerate(cuts)]
    classes = np.unique(y) if metric == "accuracy" else np.array([])
    kind = "classification" if len(classes) else "regression"
    task = Task(kind, "", y, classes)
    system = SimpleNamespace(name="MLPClassifier")
    holder = SimpleNamespace(task=task, parts=made, system=system, warnings=(), keys=RowKeys())
    return Problem(holder, metric, True)


def entry(problem, key, name, right, seconds=1.0):
    """Return a contender that is right on a share of the rows of each part."""
    parts, rng = [], np.random.default_rng(len(name))
    for part in problem.parts:
        truth = problem.task.codes[part.test]
        wrong = rng.permutation(len(truth)) >= round(right * len(truth))
        parts.append(Answers(np.where(wrong, 1 - truth, truth), seconds=seconds))
    role = "model" if key == "model" else "blend" if key == "blend" else "baseline"
    note = "always the commonest class" if key == "guess" else ""
    return problem.entry(key, parts, name, role, note)


def verdict(guess, boosting, network, blend=None, rows=1000):
    problem = problem_of(np.tile([0, 1], rows // 2))
    baselines = [
        entry(problem, "guess", "Guessing", guess),
        entry(problem, "boosting", "Gradient boosting", boosting, 0.1),
    ]
    model = entry(problem, "model", "MLPClassifier", network, 2.0)
    blended = entry(problem, "blend", "Blend", blend) if blend else None
    return decide(problem, baselines, model, blended)


def test_a_clear_win_is_said_with_both_scores():
    found = verdict(0.5, 0.8, 0.99)
    assert (found.outcome, found.recommended) == ("better", "model")
    assert found.words.startswith(
        "The network is worth using here: accuracy 0.990 against 0.800 for the best baseline, "
        "gradient boosting (gain +0.190, 95 % interval"
    )


def test_a_small_difference_is_no_win():
    found = verdict(0.5, 0.95, 0.955)
    assert (found.outcome, found.recommended) == ("equal", "boosting")
    assert "does as well as the network" in found.words
    assert "trains faster (100 ms against 2.0 s): use it." in found.words


def test_a_clear_loss_says_what_to_use():
    found = verdict(0.5, 0.95, 0.75)
    assert (found.outcome, found.recommended) == ("worse", "boosting")
    assert found.words.startswith("Use gradient boosting, not the network: accuracy 0.750 against")


def test_a_baseline_that_chance_explains_is_not_recommended():
    found = verdict(0.508, 0.558, 0.53, rows=400)  # a case of labels drawn without X
    assert (found.outcome, found.recommended) == ("none", "guess")
    assert found.words.startswith(
        "Nothing here predicts the target: the best of 2 models, gradient boosting, has accuracy"
    )
    assert "Use guessing (always the commonest class)" in found.words


def test_few_rows_that_are_answered_rightly_are_too_few_to_tell():
    found = verdict(0.5, 0.5, 1.0, rows=10)  # two test rows in each of three parts
    assert (found.outcome, found.recommended) == ("none", "guess")
    assert found.words.startswith(
        "Too few test rows to tell whether anything here predicts the target: the best of 2 "
        "models, MLPClassifier, has accuracy 1.000 against 0.500 for guessing (gain +0.500"
    )
    assert found.words.endswith("use guessing (always the commonest class).")
    worse = verdict(0.5, 0.5, 0.0, rows=10)
    assert worse.words.startswith("Nothing here predicts the target")


def regression(rows, *away):
    """Return the verdict on guessing, boosting and a network that are off by so much."""
    y = np.random.default_rng(0).normal(size=rows)
    problem = problem_of(y, metric="r2")
    rng = np.random.default_rng(1)
    entries = []
    for (key, name), (by, noise) in zip(CONTENDERS, away, strict=True):
        off = by + noise * rng.normal(size=rows)
        answers = [Answers((y + off)[part.test], seconds=1.0) for part in problem.parts]
        role = "model" if key == "model" else "baseline"
        entries.append(problem.entry(key, answers, name, role, "always the mean"))
    *baselines, model = entries
    return decide(problem, baselines, model)


CONTENDERS = (
    ("guess", "Guessing"),
    ("boosting", "Gradient boosting"),
    ("model", "MLPRegressor"),
)


def test_less_than_one_number_for_all_rows_is_not_recommended_however_bad_guessing_is():
    found = regression(300, (4.0, 0.0), (3.0, 0.0), (2.0, 0.0))
    assert (found.outcome, found.recommended) == ("none", "guess")
    assert "below 0 one number for all test rows is nearer" in found.words
    assert regression(300, (4.0, 0.0), (3.0, 0.0), (0.5, 0.0)).recommended == "model"


def test_of_few_rows_below_zero_nothing_predicts_and_above_it_they_are_too_few():
    below = regression(20, (2.0, 0.0), (3.0, 0.0), (0.0, 2.0))
    assert (below.outcome, below.recommended) == ("none", "guess")
    assert below.words.startswith("Nothing here predicts the target")
    above = regression(20, (0.0, 1.2), (3.0, 0.0), (0.0, 0.8))
    assert (above.outcome, above.recommended) == ("none", "guess")
    assert above.words.startswith("Too few test rows to tell")


def test_a_blend_is_recommended_only_beyond_its_interval():
    assert verdict(0.5, 0.9, 0.9, blend=0.905).recommended == "boosting"
    found = verdict(0.5, 0.8, 0.8, blend=0.95)
    assert found.recommended == "blend"
    assert found.words.startswith("Use the blend")
    assert verdict(0.5, 0.51, 0.51, blend=0.52).recommended == "guess"


def uneven_table(rows=600, seed=0):
    """Return rows of which 3 in 100 are rare, and more often so where x is large."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, rows))
    rare = np.argsort(-(x + 0.7 * noise))[: 3 * rows // 100]
    y = np.full(rows, "usual")
    y[rare] = "rare"
    return pa.table({"x": x, "other": rng.normal(size=rows), "y": y})


def test_a_rare_class_that_can_be_predicted_is_seen(tmp_path):
    found = run(quick_plan(uneven_table(), "y", run=tmp_path / "run", cv=3))
    assert found.summary["metric"] == "roc_auc"
    assert found.summary["outcome"] != "none"
    assert any("ROC AUC decides" in note for note in found.summary["notes"])
    assert evaluate(found.folder, uneven_table(seed=1)).metric == "roc_auc"
    by_accuracy = pose_problem(open_data(quick_plan(uneven_table(), "y", metric="accuracy")))
    assert by_accuracy.metric == "accuracy"


def test_a_score_of_classes_rests_on_the_rarest():
    problem = problem_of(np.r_[np.zeros(95, int), np.ones(5, int)], parts=1, share=1.0)
    rows = np.arange(100)
    assert score_basis("accuracy", problem.task, rows) is None
    assert score_basis("roc_auc", problem.task, rows) == 10
    none = split_interval(lambda i: 1.0, RowsTested.of([rows]), counted=True, basis=10)
    assert none.low < 0.75


def test_few_rows_that_are_all_right_make_no_score_certain():
    right = np.ones(24)
    found = split_interval(
        lambda i: right[i].mean(), RowsTested.of([np.arange(24)], 0.25), counted=True
    )
    assert found.low < 0.9
    none = split_interval(lambda i: 0.0, RowsTested.of([np.arange(24)], 0.25), counted=True)
    assert none.low < -0.1 < 0.1 < none.high  # "0.000 to 0.000" was printed here


def test_over_one_part_the_interval_is_students_but_for_the_split():
    from scipy.stats import t

    values = np.random.default_rng(0).normal(size=50)
    tested = RowsTested.of([np.arange(50)])
    found = split_interval(lambda i: values[i].mean(), tested)
    low, high = t.interval(0.95, 49, values.mean(), values.std(ddof=1) / np.sqrt(50))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_parts_that_differ_widen_the_interval_as_nadeau_and_bengio_say():
    from scipy.stats import t

    level = np.repeat([0.0, 1.0, 5.0], 200)  # no spread within a part, so only parts differ
    tested = RowsTested.of(list(np.arange(600).reshape(3, 200)), 0.25)
    found = split_interval(lambda i: level[i].mean(), tested)
    spread = np.var([0, 1, 5], ddof=1)
    reach = t.ppf(0.975, 2) * np.sqrt((1 / 3 + 0.25) * spread)
    assert found.high - found.mean == pytest.approx(reach, rel=0.05)


def test_more_seeds_on_the_same_rows_are_no_more_rows():
    values = np.random.default_rng(0).normal(size=50)
    once = split_interval(lambda i: values[i].mean(), RowsTested.of([np.arange(50)], 0.25))
    both = np.concatenate([values, values])
    twice = split_interval(lambda i: both[i].mean(), RowsTested.of([np.arange(50)] * 2, 0.25))
    assert twice.high - twice.low == pytest.approx(once.high - once.low, rel=0.02)


def test_many_rows_are_left_out_in_blocks():
    values = np.random.default_rng(0).normal(size=5000)
    tested = RowsTested.of([np.arange(5000)])
    found = split_interval(lambda i: values[i].mean(), tested)
    assert found.high - found.low == pytest.approx(2 * 1.96 / np.sqrt(5000), rel=0.1)


@pytest.mark.parametrize("target", ["label", "amount"])
def test_noise_is_answered_by_guessing(tmp_path, target):
    rng = np.random.default_rng(3)
    rows = ["a,b,c,label,amount"]
    for a, b, c in rng.normal(size=(80, 3)):
        rows.append(f"{a:.3f},{b:.3f},{c:.3f},{rng.choice(['no', 'yes'])},{rng.normal():.3f}")
    (tmp_path / "noise.csv").write_text("\n".join(rows) + "\n")
    found = run(quick_plan(tmp_path / "noise.csv", target, seeds=2, run=tmp_path / "run"))
    assert found.summary["recommended"] == "guess"
    assert found.verdict.startswith("Nothing here predicts the target")


def test_windows_of_time_may_differ_and_errors_that_follow_each_other_count_once():
    rng = np.random.default_rng(0)
    tests = list(np.arange(300).reshape(3, 100))
    trend = np.repeat([1.0, 3.0, 5.0], 100) + rng.normal(size=300)
    windows = RowsTested.of(tests, 0.5, np.arange(300))
    assert split_interval(lambda i: trend[i].mean(), windows).low > 2.5
    assert split_interval(lambda i: trend[i].mean(), RowsTested.of(tests, 0.5)).low < 0
    runs = np.repeat(rng.normal(size=30), 10)  # ten rows in a row err alike
    wide = split_interval(lambda i: runs[i].mean(), windows)
    narrow = split_interval(lambda i: runs[i].mean(), RowsTested.of(tests))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
