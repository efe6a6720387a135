import pytest
from scipy.stats import loguniform, norm, randint, uniform

import castalia
from castalia import MLPClassifier
from castalia.errors import InvalidParameter
from castalia.tune import Choice, Uniform, Whole, default_space, grid_of
from castalia.tune.space import read_space


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


def test_every_estimator_with_settings_worth_searching_has_a_default_space():
    assert "lr" in default_space(MLPClassifier())


def test_a_model_around_another_is_searched_by_the_settings_of_that_one():
    inner = MLPClassifier()
    around = default_space(castalia.Bagging(estimator=inner))
    assert around == {f"estimator__{name}": d for name, d in default_space(inner).items()}
    assert default_space(castalia.Bagging()) == {}


def test_the_rate_of_boosting_is_not_that_of_a_network():
    assert (
        default_space(castalia.GradientBoost())["lr"].low > default_space(MLPClassifier())["lr"].low
    )
    assert "lr" not in default_space(castalia.Perceptron())  # it only scales the weights


def test_a_grid_holds_the_first_settings_that_fit_in():
    space = {"lr": Uniform(0, 1), "hidden": Choice(1, 2, 3), "depth": Whole(1, 3)}
    assert grid_of(space, 12) == {
        "lr": Choice(0.0, 0.333333, 0.666667, 1.0),
        "hidden": space["hidden"],
    }
    assert grid_of(space, 3) == {"lr": Choice(0.0, 0.333333, 0.666667)}
    assert grid_of({"depth": Whole(1, 3)}, 10) == {"depth": Choice(1, 2, 3)}
