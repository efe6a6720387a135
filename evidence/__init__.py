"""Trainings on real data beside published figures: ``python -m evidence [names…]``."""

NAMES = (
    "tables",
    "noise_tables",
    "regression",
    "classical",
    "snapshots",
    "defaults",
    "foetal_ecg",
    "doctor",
    "doctor_repair",
    "pictures",
    "cifar10",
    "camvid",
    "bccd",
    "ngrams",
    "word_vectors",
    "shakespeare",
    "muon",
    "penn_treebank",
    "sentiment",
    "small_texts",
    "multi30k",
    "huggingface",
)
# Those of them that are trained on a GPU, in one call.
GPU = (
    "pictures",
    "cifar10",
    "camvid",
    "bccd",
    "shakespeare",
    "muon",
    "penn_treebank",
    "sentiment",
    "multi30k",
)
