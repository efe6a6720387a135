"""Trainings written by somebody who had not read the rules; see ``evidence/RESULTS.md``."""
