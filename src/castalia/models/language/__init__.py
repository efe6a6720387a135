"""Language models."""

from castalia.models.language.bert import BERT, RoBERTa
from castalia.models.language.bert_classifier import BERTClassifier
from castalia.models.language.bert_marks import BERTQuestionAnswerer, BERTTagger
from castalia.models.language.denoisers import BART, T5
from castalia.models.language.ngram import NGramLanguageModel
from castalia.models.language.translators import Seq2Seq, Transformer

__all__ = [
    "BART",
    "BERT",
    "T5",
    "BERTClassifier",
    "BERTQuestionAnswerer",
    "BERTTagger",
    "NGramLanguageModel",
    "RoBERTa",
    "Seq2Seq",
    "Transformer",
]
