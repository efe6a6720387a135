"""Trainings with one planted fault each, and healthy ones, on which the doctor is judged.

A folder holds one kind of training, a file in it the faults of one kind or the healthy trainings on
one kind of data. ``PARTS`` of ``cases`` says what each folder holds and when the doctor met it;
``cases`` also shows how one is written.
"""
