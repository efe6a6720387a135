"""Searches against scikit-learn's; those that are killed are in ``test_study.py``."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, HalvingRandomSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import castalia
from castalia import MLPClassifier
from castalia.errors import CastaliaWarning, InvalidData, InvalidParameter
from castalia.tune import BayesianSearch, GridSearch, RandomSearch, Uniform

X = np.random.default_rng(0).normal(size=(60, 3))
y = X @ [1.0, -1.0, 0.5] + 0.3 * np.random.default_rng(1).normal(size=60)
LABELS = (y > 0).astype(int)


@dataclass
class Bowl(RegressorMixin, BaseEstimator):
    """Scores by its parameters alone: a function to be maximised."""

    a: float = 0.0
    b: float = 0.0

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def score(self, X, y=None):
        # Branin's function, turned over; its maximum is -0.397887.
        a, b = self.a, self.b
        wave = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
        return -float(wave**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


BRANIN = {"a": Uniform(-5, 10), "b": Uniform(0, 15)}


def test_a_grid_search_finds_what_scikit_learn_finds():
    grid = {"alpha": [0.01, 1.0, 100.0], "fit_intercept": [True, False]}
    ours = GridSearch(Ridge(), grid, cv=KFold(3)).fit(X, y)
    theirs = GridSearchCV(Ridge(), grid, cv=KFold(3)).fit(X, y)
    assert len(ours.cv_results_["params"]) == 6
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-12)
    assert ours.predict(X) == pytest.approx(theirs.predict(X))


def test_the_searches_of_scikit_learn_work_on_our_estimators():
    model = MLPClassifier(hidden=(4,), epochs=3, random_state=0)
    space = {"lr": [1e-3, 1e-2, 1e-1]}
    for search in (
        GridSearchCV(model, space, cv=2),
        RandomizedSearchCV(model, space, n_iter=2, cv=2, random_state=0),
        HalvingRandomSearchCV(model, space, cv=2, random_state=0, min_resources=30),
    ):
        assert search.fit(X, LABELS).best_params_["lr"] in space["lr"]


def best(kind, trials, **settings):
    scores = []
    for seed in range(3):
        search = kind(Bowl(), BRANIN, trials=trials, cv=2, random_state=seed, prune=False)
        scores.append(search.set_params(**settings).fit(X, y).best_score_)
    return np.median(scores)


def test_bayesian_search_needs_fewer_trials_than_random_search_on_branin():
    assert best(BayesianSearch, 20, sampler="gp") > best(RandomSearch, 50) + 0.05


def test_the_same_seed_proposes_the_same_settings():
    first = BayesianSearch(Bowl(), BRANIN, trials=14, cv=2, random_state=3).fit(X, y)
    second = BayesianSearch(Bowl(), BRANIN, trials=14, cv=2, random_state=3).fit(X, y)
    assert first.cv_results_["params"] == second.cv_results_["params"]


def test_a_trial_that_falls_behind_is_given_up_after_a_fold():
    space = {"alpha": [1e-3, 1e-2, 0.1, 1.0, 1e6, 0.1]}
    search = GridSearch(Ridge(), space, cv=5, prune=True).fit(X, y)
    table = search.cv_results_
    assert table["state"] == ["complete"] * 4 + ["pruned", "complete"]
    assert search.pruned_ == 1
    assert np.isfinite(table["split0_test_score"][4])
    assert np.isnan(table["split1_test_score"][4])
    assert table["rank_test_score"][4] == 6
    plain = GridSearch(Ridge(), space, cv=5).fit(X, y)
    assert plain.best_params_ == search.best_params_
    assert plain.best_score_ == search.best_score_


def test_with_one_fold_nothing_is_given_up():
    space = {"alpha": [1e-3, 1e-2, 0.1, 1.0, 1e6]}
    assert GridSearch(Ridge(), space, cv=0.3, prune=True).fit(X, y).pruned_ == 0


def test_the_user_s_training_record_is_left_alone():
    from castalia import Training

    training = Training(validation=0.2)
    model = MLPClassifier(hidden=(4,), epochs=2, training=training)
    BayesianSearch(model, {"lr": [1e-2, 1e-3]}, trials=2, cv=2, random_state=0).fit(X, LABELS)
    assert training.callbacks == ()
    assert training.validation == 0.2


@dataclass
class Touchy(ClassifierMixin, BaseEstimator):
    """Fails for some settings."""

    bad: bool = False

    def fit(self, X, y):
        if self.bad:
            raise ValueError("this setting cannot be")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_a_failing_trial_is_told_and_the_search_goes_on():
    search = GridSearch(Touchy(), {"bad": [True, False]}, cv=2)
    with pytest.warns(CastaliaWarning, match="1 of 2 trials failed; .*this setting cannot be"):
        search.fit(X, LABELS)
    assert search.best_params_ == {"bad": False}


def test_a_search_in_which_everything_fails_says_why():
    with pytest.raises(InvalidData, match="no trial came to an end. .*this setting cannot be"):
        GridSearch(Touchy(), {"bad": [True]}, cv=2).fit(X, LABELS)


def test_too_few_rows_for_the_folds_are_refused():
    with pytest.raises(InvalidData, match="the rows cannot be split"):
        GridSearch(Ridge(), {"alpha": [1.0]}, cv=5).fit(X[:3], y[:3])


def test_a_grid_without_a_space_takes_points_of_the_default_one():
    found = GridSearch(castalia.Ridge(), cv=2).fit(X, y)
    assert len(found.cv_results_["params"]) == 4
    assert {p["alpha"] for p in found.cv_results_["params"]} <= {1e-6, 0.000464159, 0.215443, 100.0}
    piped = make_pipeline(StandardScaler(), castalia.LogisticRegression())
    few = GridSearch(piped, trials=3, cv=2).fit(X, LABELS)
    assert list(few.best_params_) == ["logisticregression__C"]
    assert len(few.cv_results_["params"]) == 3


def test_a_grid_wants_choices():
    with pytest.raises(InvalidParameter, match="`alpha` is an interval. Use RandomSearch"):
        GridSearch(Ridge(), {"alpha": Uniform(0, 1)}).fit(X, y)


def test_another_search_in_the_same_file_starts_its_own_study(tmp_path):
    file = tmp_path / "studies.sqlite"
    one = GridSearch(Ridge(), {"alpha": [0.1, 1.0]}, cv=2, study=file).fit(X, y)
    other = GridSearch(Ridge(), {"alpha": [0.1, 1.0]}, cv=2, study=file).fit(X, y + X[:, 0])
    assert one.best_score_ != other.best_score_


def test_a_score_that_is_not_a_number_fails_the_trial_and_the_search_ends():
    def score(est, X, y):
        return np.nan if est.alpha == 1 else 0.5

    with pytest.warns(CastaliaWarning, match="1 of 2 trials failed.*fold 0 is not a number"):
        found = GridSearch(Ridge(), {"alpha": [1, 2]}, scoring=score).fit(X, y)
    assert found.best_params_ == {"alpha": 2}


@pytest.mark.parametrize(
    "search, message",
    [
        (GridSearch(Ridge(), {"alpha": [1]}, scoring="r2x"), "got 'r2x'. Did you mean `r2`"),
        (GridSearch(Ridge(), {"alpha": [1]}, scoring=3), "`scoring` must be a name"),
        (GridSearch(Ridge, {"alpha": [1]}), "`estimator` must be an estimator"),
        (GridSearch(None, {"alpha": [1]}), "`estimator` must be an estimator.*got None"),
        (RandomSearch(DummyRegressor()), "must be given for DummyRegressor"),
        (
            GridSearch(make_pipeline(Ridge()), {"ridge__alhpa": [1]}),
            "got `ridge__alhpa`. Did you mean `ridge__alpha`",
        ),
        (RandomSearch(Ridge(), study="nowhere://at/all"), "'nowhere://at/all' cannot be opened"),
    ],
    ids=["typo", "no score", "class", "none", "no space", "nested", "address"],
)
def test_what_cannot_be_searched_is_said_before_the_first_trial(search, message):
    with pytest.raises(InvalidParameter, match=message):
        search.fit(X, y)


def test_a_file_that_is_no_study_is_named(tmp_path):
    (tmp_path / "notes.db").write_text("not a database at all")
    with pytest.raises(InvalidParameter, match=r"notes.db' cannot be opened: .*not a database"):
        GridSearch(Ridge(), {"alpha": [1]}, study=tmp_path / "notes.db").fit(X, y)


def test_the_best_estimator_answers_for_the_search():
    search = GridSearch(castalia.LinearSVM(), {"alpha": np.array([0.1, 1.0])}, cv=2)
    search.fit(X, LABELS)
    own = search.best_estimator_.decision_function(X)
    np.testing.assert_array_equal(search.decision_function(X), own)
    assert search.n_features_in_ == 3
    assert not hasattr(search, "predict_log_proba")
    alone = GridSearch(Ridge(), {"alpha": [1]}, cv=2, refit=False).fit(X, y)
    with pytest.raises(NotFittedError, match="refit=True"):
        alone.predict(X)
    with pytest.raises(InvalidParameter, match="Save its `best_estimator_`"):
        castalia.save(GridSearch(Ridge(), {"alpha": [1]}, cv=2).fit(X, y), "nowhere")


def test_linear_models_are_searched_by_what_their_solver_uses():
    found = RandomSearch(castalia.LogisticRegression(), trials=3, cv=2, random_state=0)
    assert list(found.fit(X, LABELS).best_params_) == ["C"]
    looped = castalia.Ridge(solver="sgd", epochs=1)
    wanted = ["lr", "batch_size", "alpha", "training__weight_decay"]
    found = RandomSearch(looped, trials=2, cv=2, random_state=0).fit(X, y)
    assert list(found.best_params_) == wanted
    assert found.best_estimator_.training.optimizer == "sgd"


WEIGHT = np.random.default_rng(2).integers(0, 4, 60).astype(float)


@pytest.mark.filterwarnings("ignore:.*(does not support sample_weight|takes no weights)")
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error", "neg_max_error"])
def test_weights_go_to_the_fits_and_to_the_scores_as_in_scikit_learn(scoring):
    grid = {"alpha": [0.01, 10.0, 1000.0]}
    ours = GridSearch(Ridge(), grid, cv=KFold(3), scoring=scoring)
    theirs = GridSearchCV(Ridge(), grid, cv=KFold(3), scoring=scoring)
    ours.fit(X, y, sample_weight=WEIGHT)
    theirs.fit(X, y, sample_weight=WEIGHT)
    for column in ("mean_test_score", "split2_test_score"):
        np.testing.assert_allclose(ours.cv_results_[column], theirs.cv_results_[column])
    np.testing.assert_allclose(ours.best_estimator_.coef_, theirs.best_estimator_.coef_)
    plain = GridSearch(Ridge(), grid, cv=KFold(3), scoring=scoring).fit(X, y)
    assert not np.allclose(
        plain.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"]
    )


def test_a_score_of_ones_own_is_weighted_if_it_asks_for_weights():
    seen = []

    def weighed(model, X, y, sample_weight=None):
        seen.append(sample_weight.sum())
        return model.score(X, y, sample_weight)

    found = GridSearch(Ridge(), {"alpha": [1.0]}, cv=KFold(3), scoring=weighed).fit(X, y, WEIGHT)
    assert sum(seen) == WEIGHT.sum()
    assert found.score(X, y, WEIGHT) == pytest.approx(found.best_estimator_.score(X, y, WEIGHT))

    def plain(model, X, y):
        return model.score(X, y)

    other = GridSearch(Ridge(), {"alpha": [1.0]}, cv=KFold(3), scoring=plain)
    with pytest.warns(CastaliaWarning, match="takes no weights, so the fits are weighted and"):
        other.fit(X, y, WEIGHT)
    assert other.best_score_ != found.best_score_
    np.testing.assert_array_equal(other.best_estimator_.coef_, found.best_estimator_.coef_)


def test_a_pipeline_gets_its_weights_in_the_last_step():
    grid = {"ridge__alpha": [0.1, 100.0]}
    piped = GridSearch(make_pipeline(StandardScaler(), Ridge()), grid, cv=2).fit(X, y, WEIGHT)
    scaled = StandardScaler().fit_transform(X)
    alone = Ridge(alpha=piped.best_params_["ridge__alpha"]).fit(scaled, y, WEIGHT)
    np.testing.assert_allclose(piped.best_estimator_[-1].coef_, alone.coef_)


def test_other_weights_are_another_study(tmp_path):
    file = tmp_path / "studies.sqlite"
    settings = {"cv": 2, "study": file}
    plain = GridSearch(Ridge(), {"alpha": [1.0]}, **settings).fit(X, y)
    weighted = GridSearch(Ridge(), {"alpha": [1.0]}, **settings).fit(X, y, WEIGHT + 1)
    assert plain.best_score_ != weighted.best_score_


def test_weights_of_no_use_are_refused_before_the_first_fit():
    with pytest.raises(InvalidParameter, match="None for Bowl, whose fit takes no weights; got 60"):
        GridSearch(Bowl(), {"a": [1.0]}).fit(X, y, WEIGHT)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(59,\), expected \(60,\)"):
        GridSearch(Ridge(), {"alpha": [1.0]}).fit(X, y, WEIGHT[1:])
    with pytest.raises(InvalidData, match="GridSearch: `sample_weight` must be at least 0"):
        GridSearch(Ridge(), {"alpha": [1.0]}).fit(X, y, -WEIGHT)


def test_a_network_is_searched_with_weights_in_a_data_set(tmp_path):
    frame = {"a": X[:, 0], "b": X[:, 1], "up": np.where(LABELS, "yes", "no")}
    data = castalia.data.read(pd.DataFrame(frame), target="up")
    model = MLPClassifier(hidden=(4,), epochs=3, random_state=0)
    search = RandomSearch(model, {"lr": [0.01, 0.1]}, trials=2, cv=2, random_state=0)
    weighted = search.fit(data, sample_weight=np.where(LABELS, 5.0, 0.1))
    assert (weighted.predict(data.features()) == "yes").mean() > 0.9


def test_the_share_of_each_setting_in_the_scores_is_told():
    @dataclass
    class Slope(Bowl):
        def score(self, X, y=None):
            return self.a + 0.01 * self.b

    space = {"a": Uniform(0, 1), "b": Uniform(0, 1)}
    found = RandomSearch(Slope(), space, trials=12, cv=2, prune=False, random_state=0).fit(X, y)
    assert list(found.importances_) == ["a", "b"]
    assert found.importances_["a"] > 0.75
    assert sum(found.importances_.values()) == pytest.approx(1)
    few = RandomSearch(Slope(), space, trials=5, cv=2, random_state=0).fit(X, y)
    assert few.importances_ == {}


def test_a_sitting_ends_in_time_and_the_next_goes_on(tmp_path):
    told = []
    settings = {"trials": 5, "cv": 2, "prune": False, "study": tmp_path / "s.db", "random_state": 0}
    first = RandomSearch(Bowl(), BRANIN, seconds=1e-9, callback=told.append, **settings).fit(X, y)
    assert len(first.cv_results_["params"]) == 1  # one at least comes to an end
    second = RandomSearch(Bowl(), BRANIN, callback=told.append, **settings).fit(X, y)
    assert len(second.cv_results_["params"]) == 5
    assert [trial["number"] for trial in told] == [1, 2, 3, 4, 5]
    assert told[0]["params"] == second.cv_results_["params"][0]
    assert told[0]["score"] == second.cv_results_["mean_test_score"][0]
    whole = RandomSearch(Bowl(), BRANIN, trials=5, cv=2, prune=False, random_state=0).fit(X, y)
    assert whole.cv_results_["params"] == second.cv_results_["params"]
