"""Trainings on which the doctor's thresholds are set."""
