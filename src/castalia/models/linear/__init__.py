"""Linear models: least squares and its penalties, perceptrons, logistic regression."""

from castalia.models.linear.adaline import Adaline
from castalia.models.linear.adaptive_filter import AdaptiveFilter
from castalia.models.linear.least_squares import LinearRegression
from castalia.models.linear.logistic import LogisticRegression, SoftmaxRegression
from castalia.models.linear.perceptron import Perceptron, enough_right
from castalia.models.linear.svm import LinearSVM

__all__ = [
    "Adaline",
    "AdaptiveFilter",
    "LinearRegression",
    "LinearSVM",
    "LogisticRegression",
    "Perceptron",
    "SoftmaxRegression",
    "enough_right",
]
