"""Trainings on real data beside published figures: ``python -m evidence [names…]``."""

NAMES = ("tables", "regression", "foetal_ecg")
