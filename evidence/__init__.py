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
    "penn_treebank",
    "sentiment",
    "small_texts",
    "multi30k",
    "huggingface",
)
# Those of them that are trained on a GPU, in one call.
GPU = ("pictures", "camvid", "bccd", "shakespeare", "penn_treebank", "sentiment", "multi30k")
