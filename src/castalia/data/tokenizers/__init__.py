"""Tokenizers: texts to numbers and back, one face for all kinds."""

from castalia.data.tokenizers.bpe import BPETokenizer, ByteBPETokenizer
from castalia.data.tokenizers.character_tokenizer import CharTokenizer, character_ngrams
from castalia.data.tokenizers.pair_merges import Merge, apply_merges, learn_merges
from castalia.data.tokenizers.pretrained_tokenizer import PretrainedTokenizer
from castalia.data.tokenizers.sentencepiece import SentencePieceTokenizer
from castalia.data.tokenizers.special_tokens import sentinels
from castalia.data.tokenizers.text_normalisation import NORMALISATIONS, normalise
from castalia.data.tokenizers.token_batch import TokenBatch, pad_batch
from castalia.data.tokenizers.tokenizer import Tokenizer
from castalia.data.tokenizers.unigram import UnigramTokenizer
from castalia.data.tokenizers.vocabulary_files import has_tokenizer
from castalia.data.tokenizers.word_tokenizers import (
    RuleTokenizer,
    WhitespaceTokenizer,
    WordPunctTokenizer,
    split_words,
)
from castalia.data.tokenizers.wordpiece import WordPieceTokenizer
from castalia.data.utf8_files import read_lines

__all__ = [
    "NORMALISATIONS",
    "BPETokenizer",
    "ByteBPETokenizer",
    "CharTokenizer",
    "Merge",
    "PretrainedTokenizer",
    "RuleTokenizer",
    "SentencePieceTokenizer",
    "TokenBatch",
    "Tokenizer",
    "UnigramTokenizer",
    "WhitespaceTokenizer",
    "WordPieceTokenizer",
    "WordPunctTokenizer",
    "apply_merges",
    "character_ngrams",
    "has_tokenizer",
    "learn_merges",
    "normalise",
    "pad_batch",
    "read_lines",
    "sentinels",
    "split_words",
]
