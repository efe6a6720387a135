"""Linear models."""

from castalia.catalog.records import System

__all__ = ["LINEAR"]

LINEAR = (
    System(
        name="LinearRegression",
        path="castalia.models.linear:LinearRegression",
        family="linear",
        tasks=("regression", "multioutput"),
        data="table",
        summary="Least squares: the hyperplane with the smallest squared error",
        reference="1805, Legendre, Nouvelles méthodes pour la détermination des orbites",
        small={"solver": "auto"},
        toy="plane",
        pass_mark=0.99,
        seeded=False,
        rows=("LIN-01", "LIN-03"),
    ),
)
