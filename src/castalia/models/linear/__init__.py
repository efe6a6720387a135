"""Linear models: least squares and its penalties, perceptrons, logistic regression."""

from castalia.models.linear.basis import BasisRegression, PolynomialRegression
from castalia.models.linear.bayes import MAPRegression
from castalia.models.linear.bridge import Bridge
from castalia.models.linear.features import RandomFourierFeatures
from castalia.models.linear.lasso import Lasso
from castalia.models.linear.least_squares import LinearRegression
from castalia.models.linear.ridge import Ridge

__all__ = [
    "BasisRegression",
    "Bridge",
    "Lasso",
    "LinearRegression",
    "MAPRegression",
    "PolynomialRegression",
    "RandomFourierFeatures",
    "Ridge",
]
