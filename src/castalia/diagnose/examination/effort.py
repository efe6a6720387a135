"""How many rows, steps and trials the active examination spends."""

__all__ = [
    "MOST_COLUMNS",
    "MOST_NUMBERS",
    "MOST_ROWS",
    "RATE_LEAST",
    "RATE_STEPS",
    "TINY_RATES",
    "TINY_ROWS",
    "TINY_STEPS",
    "TREES",
]

MOST_ROWS = 2000  # rows of train and of validation that are read
MOST_NUMBERS = 20_000_000  # numbers in those rows: 80 MB of float32
MOST_COLUMNS = 200  # columns for scikit-learn's models; more are summed up by principal components
TREES = 200  # trees that boosting may grow, over all classes

TINY_ROWS = 16  # few enough for any network with more than a handful of weights
TINY_STEPS = 400  # healthy networks needed at most 150
TINY_RATES = (1e-2, 1e-3)  # for Adam; recurrent and normalised networks want the smaller one

RATE_STEPS = 150  # steps of one trial; below RATE_LEAST the trial says nothing
RATE_LEAST = 25
