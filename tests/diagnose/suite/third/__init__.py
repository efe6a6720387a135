"""Trainings as people post them, by somebody who saw neither rules nor older cases.

See ``evidence/RESULTS.md``.
"""
