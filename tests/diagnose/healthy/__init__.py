"""Trainings in which nothing is wrong, of kinds that a doctor may mistake."""
