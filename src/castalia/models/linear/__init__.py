"""Linear models: least squares and its penalties, perceptrons, logistic regression."""

from castalia.models.linear.adaline import Adaline
from castalia.models.linear.adaptive_filter import AdaptiveFilter
from castalia.models.linear.basis_regression import BasisRegression, PolynomialRegression
from castalia.models.linear.bayesian_regression import MAPRegression
from castalia.models.linear.bridge import Bridge
from castalia.models.linear.lasso import Lasso
from castalia.models.linear.least_squares import LinearRegression
from castalia.models.linear.logistic import LogisticRegression, SoftmaxRegression
from castalia.models.linear.perceptron import Perceptron, enough_right
from castalia.models.linear.random_fourier_features import RandomFourierFeatures
from castalia.models.linear.ridge import Ridge
from castalia.models.linear.svm import LinearSVM

__all__ = [
    "Adaline",
    "AdaptiveFilter",
    "BasisRegression",
    "Bridge",
    "Lasso",
    "LinearRegression",
    "LinearSVM",
    "LogisticRegression",
    "MAPRegression",
    "Perceptron",
    "PolynomialRegression",
    "RandomFourierFeatures",
    "Ridge",
    "SoftmaxRegression",
    "enough_right",
]
