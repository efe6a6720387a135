"""Tokenizers: texts to numbers and back, one face for all kinds."""

from castalia.data.tokenizers.base import Tokenizer
from castalia.data.tokenizers.batch import TokenBatch, pad_batch
from castalia.data.tokenizers.bpe import BPETokenizer, ByteBPETokenizer
from castalia.data.tokenizers.chars import CharTokenizer, character_ngrams
from castalia.data.tokenizers.merges import Merge, apply_merges, learn_merges
from castalia.data.tokenizers.normalising import NORMALISATIONS, normalise
from castalia.data.tokenizers.pretrained import PretrainedTokenizer
from castalia.data.tokenizers.sentencepiece import SentencePieceTokenizer
from castalia.data.tokenizers.sources import read_lines
from castalia.data.tokenizers.special import sentinels
from castalia.data.tokenizers.unigram import UnigramTokenizer
from castalia.data.tokenizers.wordpiece import WordPieceTokenizer
from castalia.data.tokenizers.words import (
    RuleTokenizer,
    WhitespaceTokenizer,
    WordPunctTokenizer,
    split_words,
)

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
    "learn_merges",
    "normalise",
    "pad_batch",
    "read_lines",
    "sentinels",
    "split_words",
]
