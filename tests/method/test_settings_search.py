"""The whole search on a table: spaces, resuming, judging rows, and what is left on disk."""

import numpy as np
import pytest
from tests.method.small import quick_plan, write_table

import castalia
from castalia.errors import InvalidData, InvalidParameter
from castalia.method import FitResult, Narrator, TunePlan, predict, tune
from castalia.method.kinds import open_data
from castalia.method.problem import pose_problem
from castalia.method.settings_search import folds, pose_search
from castalia.method.tune_plan import parse_space
from castalia.tune import Choice, Uniform, Whole


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("data") / "fruit.csv")


class Record(Narrator):
    def __init__(self, stop=None):
        self.trials, self.stop = [], stop

    def trial(self, number, of, words):
        self.trials.append((number, of, words))
        if number == self.stop:
            raise KeyboardInterrupt


def ridge(table, run, trials=4, **settings):
    fit = quick_plan(table, "price", model="ridge", settings={}, seeds=None, run=run)
    return TunePlan(fit=fit, trials=trials, folds=2, **settings)


def prepared(table, target="price", fit=None, **settings):
    plan = quick_plan(table, target, **{"settings": {}, **(fit or {})})
    return pose_search(TunePlan(fit=plan, **settings), pose_problem(open_data(plan)))


@pytest.fixture(scope="module")
def tuned(table, tmp_path_factory):
    record = Record()
    return tune(ridge(table, tmp_path_factory.mktemp("runs") / "fruit"), record), record


def test_the_best_settings_are_fitted_and_left_as_a_fit_leaves_them(tuned, table):
    result, record = tuned
    assert [number for number, _, _ in record.trials] == [1, 2, 3, 4]
    assert record.trials[0][1] == 4
    assert "alpha=" in record.trials[0][2]
    assert result.fit.model.is_dir()
    assert castalia.load(result.fit.model).alpha == result.best["alpha"]
    assert FitResult.load(result.fit.folder).summary == result.fit.summary
    assert len(predict(result.fit.folder, table)) == 80
    assert "--set alpha=" in result.fit.report.reproduce


def test_the_best_trials_come_in_order_with_the_score_that_was_searched_for(tuned):
    result, _ = tuned
    scores = [trial["score"] for trial in result.trials]
    assert scores == sorted(scores, reverse=True)
    assert result.trials[0]["params"] == result.best
    assert result.trials[0]["score"] == result.score
    assert result.counts["complete"] + result.counts["pruned"] == 4


def test_a_finished_search_is_not_done_again_and_more_trials_go_on_from_it(tuned, table):
    first, _ = tuned
    record = Record()
    again = tune(ridge(table, first.fit.folder), record)
    assert record.trials == []
    assert (again.best, again.fit.summary) == (first.best, first.fit.summary)
    more = tune(ridge(table, first.fit.folder, trials=6), record)
    assert [number for number, _, _ in record.trials] == [5, 6]
    assert more.fit.folder == first.fit.folder
    assert more.score >= first.score


def test_an_interrupted_search_goes_on_and_ends_alike(tuned, table, tmp_path):
    whole, record = tuned
    with pytest.raises(KeyboardInterrupt):
        tune(ridge(table, tmp_path / "cut"), Record(stop=2))
    rest = Record()
    resumed = tune(ridge(table, tmp_path / "cut"), rest)
    assert rest.trials == record.trials[2:]
    assert (resumed.best, resumed.score) == (whole.best, whole.score)


def test_another_search_in_the_same_folder_gets_a_folder_of_its_own(tuned, table):
    first, _ = tuned
    other = tune(ridge(table, first.fit.folder, trials=1, search="random"))
    assert other.fit.folder.name == "fruit-2"


def test_the_test_rows_judge_no_setting(table):
    work = prepared(table)
    (kept, held), *_ = folds(work)
    assert len(work.train) == 64
    assert len(kept) + len(held) == 64
    assert set(work.train).isdisjoint(work.problem.tested)


def test_groups_and_time_split_the_rows_that_judge_too(table):
    data = castalia.read(table)
    work = prepared(table, fit={"time": "when"})
    ((kept, held),) = folds(work)
    when = data.column("when")[work.train]
    assert when[kept].max() <= when[held].min()
    work = prepared(table, fit={"group": "site"})
    ((kept, held),) = folds(work)
    site = data.column("site")[work.train]
    assert set(site[kept]).isdisjoint(site[held])


def test_an_error_is_shown_as_an_error_and_made_small(table, tmp_path):
    fit = quick_plan(table, "price", model="ridge", settings={}, metric="rmse", run=tmp_path / "r")
    space = {"alpha": Choice(0.01, 1e5)}
    result = tune(TunePlan(fit=fit, search="grid", trials=2, folds=2, space=space))
    assert result.best == {"alpha": 0.01}
    assert 0 < result.trials[0]["score"] < result.trials[1]["score"]


def test_a_network_is_searched_in_the_table_as_it_is(table, tmp_path):
    settings = {"epochs": 2, "hidden": (8,)}
    fit = quick_plan(table, settings=settings, run=tmp_path / "r")
    space = {"lr": Choice(0.001, 0.01), "weight_decay": Choice(0.0, 0.1)}
    result = tune(TunePlan(fit=fit, search="random", trials=2, folds=2, space=space))
    assert set(result.best) == {"lr", "training__weight_decay"}
    model = castalia.load(result.fit.model)
    assert (model.lr, model.epochs) == (result.best["lr"], 2)
    assert model.training.weight_decay == result.best["training__weight_decay"]


def test_settings_that_are_set_are_not_searched(table):
    names = set(prepared(table, "kind").space)
    assert {"lr", "hidden", "training__weight_decay"} <= names
    fewer = prepared(table, "kind", fit={"settings": {"lr": 0.01, "weight_decay": 0.1}})
    assert names - set(fewer.space) == {"lr", "training__weight_decay"}


def test_an_ensemble_is_searched_by_the_settings_of_its_network(table):
    assert "estimator__lr" in prepared(table, "kind", fit={"model": "bagging"}).space
    given = {"hidden": Choice(8, (8, 8)), "members": Choice(2, 3)}
    found = prepared(table, "kind", fit={"model": "bagging"}, space=given).space
    assert found == {"estimator__hidden": Choice((8,), (8, 8)), "members": Choice(2, 3)}


def test_a_grid_takes_as_many_settings_as_trials_allow(table):
    space = prepared(table, "kind", search="grid", trials=20).space
    assert list(space) == ["lr", "batch_size"]
    assert int(np.prod([len(domain.values) for domain in space.values()])) == 16


@pytest.mark.parametrize(
    "word, domain",
    [
        ("lr=0.1..0.5", Uniform(0.1, 0.5)),
        ("lr=1e-4..0.1", Uniform(1e-4, 0.1, log=True)),
        ("members=1..5", Whole(1, 5)),
        ("hidden=32|64,64", Choice(32, (64, 64))),
        ("activation=relu|tanh", Choice("relu", "tanh")),
        ("dropout=0", Choice(0)),
    ],
)
def test_words_become_domains(word, domain):
    (found,) = parse_space([word]).values()
    assert found == domain


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda t: parse_space(["lr"]), "`--try` must be NAME=LOW..HIGH .*; got 'lr'"),
        (lambda t: parse_space(["lr=2..1"]), "a range of `--try` must be LOW..HIGH; got 'lr=2..1'"),
        (lambda t: parse_space(["lr=a..b"]), "a range of `--try` must be LOW..HIGH"),
        (lambda t: prepared(t, search="bayes"), "`search` must be .*Did you mean `bayesian`"),
        (lambda t: prepared(t, trials=0), "`trials` must be a whole number of at least 1; got 0"),
        (lambda t: prepared(t, folds=1), "`folds` must be a whole number of at least 2; got 1"),
        (lambda t: prepared(t, seconds=0), "`seconds` must be above 0; got 0"),
        (lambda t: prepared(t, fit={"cv": 3}), "`cv` of the fit must be None"),
        (
            lambda t: prepared(t, fit={"model": "ridge"}, space={"alhpa": Choice(1)}),
            "`alhpa` must be a setting of Ridge .*Did you mean `alpha`",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_search_that_cannot_be_is_refused_before_any_work(table, make, words):
    with pytest.raises(InvalidParameter, match=words):
        make(table)


def test_more_folds_than_rows_are_refused(table):
    work = prepared(table, "kind", folds=50)
    with pytest.raises(InvalidData, match="64 training rows must suffice for 50 folds"):
        folds(work)
