"""Trainings on which the doctor's thresholds are set; the other part of the suite is seen once."""
