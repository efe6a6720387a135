"""Trainings on real data beside published figures: ``python -m evidence [names…]``."""

NAMES = (
    "tables",
    "regression",
    "classical",
    "foetal_ecg",
    "doctor",
    "doctor_repair",
    "pictures",
    "camvid",
    "bccd",
    "ngrams",
    "word_vectors",
    "shakespeare",
    "multi30k",
)
