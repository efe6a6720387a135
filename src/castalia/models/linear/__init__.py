"""Linear models: least squares and its penalties, perceptrons, logistic regression."""

from castalia.models.linear.least_squares import LinearRegression

__all__ = ["LinearRegression"]
