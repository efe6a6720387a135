"""Loops on small data of every kind, one fault each; the thresholds are not set on them."""
