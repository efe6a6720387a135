"""Trainings with one planted fault each, and healthy ones, on which the doctor is judged.

``calibration`` holds those that the thresholds were set on; ``held_out``, ``second``, ``third``,
``programs``, ``fifth`` and ``sixth`` were written without knowledge of the rules, one after the
other, and each was looked at once before it was used to improve them. See ``cases`` for how one is
written.
"""
