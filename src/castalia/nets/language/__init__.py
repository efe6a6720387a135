"""Networks for language, folders of pre-trained ones, and text from them."""

from castalia.nets.language.bart import BART
from castalia.nets.language.bert import BERT
from castalia.nets.language.causal_classifier import CausalClassifier
from castalia.nets.language.decoding import Beams, Picker, beam_search, generate
from castalia.nets.language.elmo import ELMo, ELMoReader, SpelledTokens
from castalia.nets.language.encoder import TransformerEncoder
from castalia.nets.language.gpt import GPT
from castalia.nets.language.heads import (
    EncoderClassifier,
    EncoderSpans,
    EncoderTagger,
    SentenceVectors,
)
from castalia.nets.language.hierarchical import HierarchicalAttention
from castalia.nets.language.huggingface import (
    TaskFolder,
    load_pretrained,
    load_task,
    read_config,
    save_pretrained,
    save_task,
)
from castalia.nets.language.llama import Llama
from castalia.nets.language.ngram_bag import NGramBag
from castalia.nets.language.recurrent_lm import RecurrentLM
from castalia.nets.language.roberta import RoBERTa
from castalia.nets.language.seq2seq import Seq2Seq
from castalia.nets.language.t5 import T5
from castalia.nets.language.transformer import Transformer
from castalia.nets.language.window_network import WindowNetwork

__all__ = [
    "BART",
    "BERT",
    "GPT",
    "T5",
    "Beams",
    "CausalClassifier",
    "ELMo",
    "ELMoReader",
    "EncoderClassifier",
    "EncoderSpans",
    "EncoderTagger",
    "HierarchicalAttention",
    "Llama",
    "NGramBag",
    "Picker",
    "RecurrentLM",
    "RoBERTa",
    "SentenceVectors",
    "Seq2Seq",
    "SpelledTokens",
    "TaskFolder",
    "Transformer",
    "TransformerEncoder",
    "WindowNetwork",
    "beam_search",
    "generate",
    "load_pretrained",
    "load_task",
    "read_config",
    "save_pretrained",
    "save_task",
]
