"""Texts as rows of a training: packed blocks for language models, padded rows for classifiers."""

from castalia.data.text.choosing import TOKENIZERS, choose_tokenizer
from castalia.data.text.documents import DocumentAdapter
from castalia.data.text.language import LanguageAdapter
from castalia.data.text.marked import SpanAdapter, WordAdapter, as_sentences
from castalia.data.text.padded import TextAdapter
from castalia.data.text.pairs import PairAdapter, as_pairs, sentence_pairs
from castalia.data.text.reading import as_texts, read_text
from castalia.data.text.rows import TokenRows, cut_blocks
from castalia.data.text.sentences import LETTERS, SentenceAdapter, spell

__all__ = [
    "LETTERS",
    "TOKENIZERS",
    "DocumentAdapter",
    "LanguageAdapter",
    "PairAdapter",
    "SentenceAdapter",
    "SpanAdapter",
    "TextAdapter",
    "TokenRows",
    "WordAdapter",
    "as_pairs",
    "as_sentences",
    "as_texts",
    "choose_tokenizer",
    "cut_blocks",
    "read_text",
    "sentence_pairs",
    "spell",
]
