"""Language models, word vectors, and tasks by prompting."""

from castalia.models.language.bert import BERT, RoBERTa
from castalia.models.language.bert_classifier import BERTClassifier
from castalia.models.language.bert_marks import BERTQuestionAnswerer, BERTTagger
from castalia.models.language.classifiers import AttentionClassifier, TransformerClassifier
from castalia.models.language.denoisers import BART, T5
from castalia.models.language.elmo import ELMo
from castalia.models.language.elmo_tasks import ELMoClassifier, ELMoTagger
from castalia.models.language.fasttext import FastText
from castalia.models.language.glove import GloVe
from castalia.models.language.gpt import GPTLanguageModel
from castalia.models.language.gpt_classifier import GPTClassifier
from castalia.models.language.ngram import NGramLanguageModel
from castalia.models.language.prompting import answer, choose, ending_scores
from castalia.models.language.recurrent import RNNLanguageModel
from castalia.models.language.translators import Seq2Seq, Transformer
from castalia.models.language.window import WindowLanguageModel
from castalia.models.language.word2vec import Word2Vec

__all__ = [
    "BART",
    "BERT",
    "T5",
    "AttentionClassifier",
    "BERTClassifier",
    "BERTQuestionAnswerer",
    "BERTTagger",
    "ELMo",
    "ELMoClassifier",
    "ELMoTagger",
    "FastText",
    "GPTClassifier",
    "GPTLanguageModel",
    "GloVe",
    "NGramLanguageModel",
    "RNNLanguageModel",
    "RoBERTa",
    "Seq2Seq",
    "Transformer",
    "TransformerClassifier",
    "WindowLanguageModel",
    "Word2Vec",
    "answer",
    "choose",
    "ending_scores",
]
