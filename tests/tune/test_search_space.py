from importlib import import_module

import pytest
from scipy.stats import loguniform, norm, randint, uniform
from sklearn import neural_network
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import castalia
from castalia import MLPClassifier, tune
from castalia.base import check_parameters
from castalia.catalog import SYSTEMS
from castalia.errors import InvalidParameter
from castalia.testing.toys import plane
from castalia.tune import Choice, RandomSearch, SearchSpace, Uniform, Whole
from castalia.tune.search_space import read_space
from castalia.tune.space import points_of

TINY = MLPClassifier(hidden=(4,), epochs=1)


def read(**space):
    return read_space(space, MLPClassifier(), "Search")


def test_a_space_of_scikit_learn_means_the_same_here():
    found = read(
        lr=loguniform(1e-4, 1e-1),
        dropout=uniform(0.1, 0.4),
        batch_size=randint(8, 65),
        hidden=[(8,), (16,)],
    )
    assert found["lr"] == Uniform(1e-4, 1e-1, log=True)
    assert found["dropout"] == Uniform(0.1, 0.5)
    assert found["batch_size"] == Whole(8, 64)
    assert found["hidden"] == Choice((8,), (16,))


def test_settings_of_the_training_can_be_searched():
    assert "training__weight_decay" in read(training__weight_decay=Uniform(1e-6, 1e-2, log=True))


@pytest.mark.parametrize(
    "space, message",
    [
        ({}, "must be a dict from parameter to domain, with one entry or more"),
        ({"lrr": [1]}, "must name parameters of MLPClassifier; got `lrr`. Did you mean `lr`"),
        ({"lr": norm(0, 1)}, "the domain of `lr` must be Uniform, Whole, Choice, a list"),
        ({"lr": []}, "the choice for `lr` must hold a value or more"),
        ({"lr": Uniform(1, 1)}, "the bounds of `lr` must ascend; got 1 and 1"),
        ({"lr": Uniform(0, 1, log=True)}, "must be above 0 on a log scale; got 0"),
    ],
    ids=["empty", "typo", "unknown", "nothing", "bounds", "log"],
)
def test_a_wrong_space_is_refused_in_a_sentence(space, message):
    with pytest.raises(InvalidParameter, match=message):
        read(**space)


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=list(SYSTEMS))
def test_every_estimator_of_the_catalogue_has_a_default_space_of_values_it_takes(system):
    package, _, name = system.path.partition(":")
    estimator = getattr(import_module(package), name)()
    space = SearchSpace.default(estimator)
    assert space
    for name, domain in read_space(space, estimator, "Search").items():
        for value in points_of(domain, 3):
            changed = clone(estimator).set_params(**({} if "__" in name else {name: value}))
            check_parameters(changed)


def test_a_search_without_a_space_takes_the_default_one():
    X, y = plane(60)
    search = RandomSearch(castalia.PolynomialRegression(), trials=3, cv=2, random_state=0).fit(X, y)
    assert set(search.best_params_) == set(SearchSpace.default(castalia.PolynomialRegression()))


def test_the_width_of_a_layer_is_a_number_where_an_estimator_has_one_layer():
    assert SearchSpace.default(castalia.BERT())["hidden"] == Choice(64, 128, 256, 512)
    assert (64, 64) in SearchSpace.default(MLPClassifier())["hidden"].values


def test_a_model_around_another_is_searched_by_the_settings_of_that_one():
    inner = MLPClassifier()
    around = SearchSpace.default(castalia.Bagging(estimator=inner))
    assert around == {f"estimator__{name}": d for name, d in SearchSpace.default(inner).items()}
    assert list(SearchSpace.default(castalia.Bagging())) == ["members"]


def test_a_pipeline_is_searched_by_its_steps_the_last_first():
    piped = make_pipeline(castalia.RandomFourierFeatures(), "passthrough", castalia.Ridge())
    assert list(SearchSpace.default(piped)) == [
        "ridge__alpha",
        "randomfourierfeatures__n_frequencies",
        "randomfourierfeatures__length_scale",
    ]


@pytest.mark.parametrize(
    "estimator, found",
    [
        (castalia.Bagging(members=2), "members"),
        (castalia.Bagging(estimator=TINY, members=2), "estimator__training__weight_decay"),
        (make_pipeline(StandardScaler(), TINY), "mlpclassifier__training__weight_decay"),
        (make_pipeline(StandardScaler(), castalia.KMeans()), "kmeans__n_clusters"),
        (castalia.KMeans(), "n_clusters"),
    ],
    ids=["Bagging", "Bagging of networks", "pipeline", "pipeline of clusters", "KMeans"],
)
def test_a_default_space_can_be_searched(estimator, found):
    X, y = plane(60)
    targets = (y > y.mean()).astype(int)
    search = RandomSearch(estimator, trials=1, cv=2, refit=False, random_state=0).fit(X, targets)
    assert found in search.best_params_


def test_an_estimator_of_scikit_learn_gets_no_values_that_it_refuses():
    space = SearchSpace.default(neural_network.MLPClassifier())
    assert "activation" not in space  # it has no gelu
    assert "alpha" in space


def test_the_rate_of_boosting_is_not_that_of_a_network():
    boost, net = castalia.GradientBoost(), MLPClassifier()
    assert SearchSpace.default(boost)["lr"].low > SearchSpace.default(net)["lr"].low
    assert "lr" not in SearchSpace.default(castalia.Perceptron())  # it only scales the weights


def test_settings_of_the_loop_are_left_out_where_a_direct_solver_works():
    assert list(SearchSpace.default(castalia.Ridge())) == ["alpha"]
    assert {"lr", "alpha"} <= set(SearchSpace.default(castalia.Ridge(solver="sgd")))


def test_a_grid_holds_the_first_settings_that_fit_in():
    space = SearchSpace({"lr": Uniform(0, 1), "hidden": [1, 2, 3], "depth": Whole(1, 3)})
    assert space.grid(12) == {
        "lr": Choice(0.0, 0.333333, 0.666667, 1.0),
        "hidden": space["hidden"],
    }
    assert space.grid(3) == {"lr": Choice(0.0, 0.333333, 0.666667)}
    assert SearchSpace({"depth": Whole(1, 3)}).grid(10) == {"depth": Choice(1, 2, 3)}


def test_the_old_names_still_work_and_warn():
    with pytest.warns(FutureWarning, match="default_space is now SearchSpace.default"):
        assert tune.default_space(castalia.Ridge()) == SearchSpace.default(castalia.Ridge())
    with pytest.warns(FutureWarning, match="grid_of is now SearchSpace.grid"):
        assert tune.grid_of({"a": [1, 2]}, 2) == {"a": Choice(1, 2)}
    with pytest.raises(AttributeError, match="has no attribute 'no_such'"):
        tune.no_such  # noqa: B018
