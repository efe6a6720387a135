"""Linear models."""

from castalia.catalog.records import System

__all__ = ["LINEAR"]


def _regression(name: str, summary: str, reference: str, **rest: object) -> System:
    """Return the record of a linear regression; chance plays no part in its fit."""
    defaults = {
        "name": name,
        "path": f"castalia.models.linear:{name}",
        "family": "linear",
        "tasks": ("regression", "multioutput"),
        "data": "table",
        "summary": summary,
        "reference": reference,
        "toy": "plane",
        "pass_mark": 0.99,
        "seeded": False,
    }
    return System(**{**defaults, **rest})  # type: ignore[arg-type]


LINEAR = (
    _regression(
        "LinearRegression",
        "Least squares: the hyperplane with the smallest squared error",
        "1805, Legendre, Nouvelles méthodes pour la détermination des orbites",
        small={"singular": "min_norm"},
        rows=("LIN-01", "LIN-02", "LIN-03", "LIN-04", "LIN-15", "LIN-16", "LIN-33"),
    ),
    _regression(
        "Ridge",
        "Least squares that pays for the square of every weight",
        "1970, Hoerl, Kennard, Ridge regression, Technometrics 12",
        small={"alpha": 0.1},
        rows=("LIN-05", "LIN-06", "REG-29"),
    ),
    _regression(
        "Lasso",
        "Least squares that pays for the size of every weight, and sets many to zero",
        "1996, Tibshirani, Regression shrinkage and selection via the lasso, JRSS B 58",
        small={"alpha": 0.01},
        rows=("LIN-07",),
    ),
    _regression(
        "Bridge",
        "Least squares that pays for any power of every weight, or bounds their sum",
        "1993, Frank, Friedman, A statistical view of some chemometrics regression tools",
        small={"q": 1.5, "alpha": 0.01},
        rows=("LIN-08", "LIN-09"),
    ),
    _regression(
        "MAPRegression",
        "Bayesian linear regression: the most probable weights, and error bars",
        "2006, Bishop, Pattern recognition and machine learning, section 3.3",
        small={"prior": 10.0, "noise": 0.1},
        rows=("LIN-10", "LIN-11"),
    ),
    _regression(
        "PolynomialRegression",
        "Least squares on powers and products of the inputs",
        "1815, Gergonne, Application de la méthode des moindres quarrés",
        small={"degree": 2, "singular": "min_norm"},
        rows=("LIN-12", "LIN-13"),
    ),
    _regression(
        "BasisRegression",
        "Ridge regression on Gaussian bumps, waves or powers of the inputs",
        "2006, Bishop, Pattern recognition and machine learning, section 3.1",
        small={"basis": "gaussian", "size": 8},
        toy="sine",
        pass_mark=0.95,
        rows=("LIN-14",),
    ),
    _regression(
        "RandomFourierFeatures",
        "Random waves of the inputs, whose inner products tend to the Gaussian kernel",
        "2007, Rahimi, Recht, Random features for large-scale kernel machines",
        tasks=("features",),
        small={"n_frequencies": 200},
        pass_mark=0.9,
        seeded=True,
        rows=("REG-38",),
    ),
)
