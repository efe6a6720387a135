"""The estimator contract, save and load."""
