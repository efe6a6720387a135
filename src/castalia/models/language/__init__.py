"""Language models, word vectors, and tasks by prompting."""

from castalia.models.language.causal.gpt_language_model import GPTLanguageModel
from castalia.models.language.causal.llama_language_model import LlamaLanguageModel
from castalia.models.language.causal.rnn_language_model import RNNLanguageModel
from castalia.models.language.causal.window_language_model import WindowLanguageModel
from castalia.models.language.embeddings.fasttext import FastText
from castalia.models.language.embeddings.glove import GloVe
from castalia.models.language.embeddings.word2vec import Word2Vec
from castalia.models.language.fasttext_classifier import FastTextClassifier
from castalia.models.language.ngrams.ngram_language_model import NGramLanguageModel
from castalia.models.language.pretrained.bert_classifier import BERTClassifier
from castalia.models.language.pretrained.bert_estimators import BERT, RoBERTa
from castalia.models.language.pretrained.bert_token_tasks import BERTQuestionAnswerer, BERTTagger
from castalia.models.language.pretrained.elmo_estimator import ELMo
from castalia.models.language.pretrained.elmo_tasks import ELMoClassifier, ELMoTagger
from castalia.models.language.pretrained.gpt_classifier import GPTClassifier
from castalia.models.language.pretrained.sentence_encoder import SentenceEncoder
from castalia.models.language.prompts.prompt_answers import answer, choose, ending_scores
from castalia.models.language.seq2seq.denoisers import BART, T5
from castalia.models.language.seq2seq.translators import Seq2Seq, Transformer
from castalia.models.language.text_classifiers import AttentionClassifier, TransformerClassifier

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
    "FastTextClassifier",
    "GPTClassifier",
    "GPTLanguageModel",
    "GloVe",
    "LlamaLanguageModel",
    "NGramLanguageModel",
    "RNNLanguageModel",
    "RoBERTa",
    "SentenceEncoder",
    "Seq2Seq",
    "Transformer",
    "TransformerClassifier",
    "WindowLanguageModel",
    "Word2Vec",
    "answer",
    "choose",
    "ending_scores",
]
