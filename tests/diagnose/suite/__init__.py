"""Trainings with one planted fault each, and healthy ones, on which the doctor is judged.

``calibration`` holds those that the thresholds were set on, ``held_out`` those that were looked at
once. See ``cases`` for how one is written down.
"""
