"""Dense networks on tables."""

from castalia.catalog.records import System

__all__ = ["DENSE"]

_BACKPROP = (
    "1986, Rumelhart, Hinton, Williams, Learning representations by back-propagating errors, "
    "Nature 323"
)
_TABULAR = (
    "2024, Holzmüller, Grinsztajn, Steinwart, Better by default: strong pre-tuned MLPs and boosted "
    "trees on tabular data, arXiv 2407.04491"
)

DENSE = (
    System(
        name="MLPClassifier",
        path="castalia.models.dense:MLPClassifier",
        family="dense",
        tasks=("classification", "multilabel"),
        data="table",
        summary="Multi-layer perceptron that classifies the rows of a table",
        reference=_BACKPROP,
        small={"hidden": (16,), "epochs": 60, "lr": 1e-2},
        toy="moons",
        pass_mark=0.93,
        rows=("NN-03", "LOSS-05"),
    ),
    System(
        name="MLPRegressor",
        path="castalia.models.dense:MLPRegressor",
        family="dense",
        tasks=("regression", "multioutput"),
        data="table",
        summary="Multi-layer perceptron that predicts numbers from the rows of a table",
        reference=_BACKPROP,
        small={"hidden": (16,), "epochs": 60, "lr": 1e-2},
        toy="sine",
        pass_mark=0.85,
    ),
    System(
        name="TabularClassifier",
        path="castalia.models.dense:TabularClassifier",
        family="dense",
        tasks=("classification", "multilabel"),
        data="table",
        summary="Perceptrons side by side that classify the rows of a table",
        reference=_TABULAR,
        small={"hidden": (16,), "members": 4, "epochs": 60, "lr": 1e-2},
        toy="moons",
        pass_mark=0.93,
    ),
    System(
        name="TabularRegressor",
        path="castalia.models.dense:TabularRegressor",
        family="dense",
        tasks=("regression", "multioutput"),
        data="table",
        summary="Perceptrons side by side that predict numbers from the rows of a table",
        reference=_TABULAR,
        small={"hidden": (16,), "members": 4, "epochs": 60, "lr": 1e-2},
        toy="sine",
        pass_mark=0.85,
    ),
    System(
        name="DistributionRegressor",
        path="castalia.models.dense:DistributionRegressor",
        family="dense",
        tasks=("regression", "density"),
        data="table",
        summary="Dense network that gives a distribution of the target for every row",
        reference=(
            "1994, Nix, Weigend, Estimating the mean and variance of the target probability "
            "distribution, ICNN"
        ),
        small={"hidden": (16,), "epochs": 60, "lr": 1e-2},
        toy="sine",
        pass_mark=0.80,
    ),
)
