"""Scores of translations; the work is in ``castalia.utils.bleu``, which models use too."""

from castalia.utils.bleu import Bleu, bleu, tokenize_13a

__all__ = ["Bleu", "bleu", "tokenize_13a"]
