"""Texts as rows of a training: packed blocks for language models, padded rows for classifiers."""

from castalia.data.text.choosing import TOKENIZERS, choose_tokenizer
from castalia.data.text.cleaning import (
    clean_lines,
    clean_page,
    clean_pages,
    drop_repeated,
    is_prose,
)
from castalia.data.text.corpus import Corpus
from castalia.data.text.documents import DocumentAdapter
from castalia.data.text.language import LanguageAdapter
from castalia.data.text.layouts import LAYOUTS, LayoutAdapter, as_choices
from castalia.data.text.marked import SpanAdapter, WordAdapter, as_sentences
from castalia.data.text.padded import TextAdapter
from castalia.data.text.pairs import PairAdapter, as_pairs, sentence_pairs
from castalia.data.text.readers import read_conll, read_folder, read_parallel
from castalia.data.text.reading import as_texts, read_text
from castalia.data.text.rows import TokenRows, cut_blocks, real_lengths
from castalia.data.text.sentences import LETTERS, SentenceAdapter, spell
from castalia.data.text.tasks import TASKS, TextTask, text_task, translation_prompt

__all__ = [
    "LAYOUTS",
    "LETTERS",
    "TASKS",
    "TOKENIZERS",
    "Corpus",
    "DocumentAdapter",
    "LanguageAdapter",
    "LayoutAdapter",
    "PairAdapter",
    "SentenceAdapter",
    "SpanAdapter",
    "TextAdapter",
    "TextTask",
    "TokenRows",
    "WordAdapter",
    "as_choices",
    "as_pairs",
    "as_sentences",
    "as_texts",
    "choose_tokenizer",
    "clean_lines",
    "clean_page",
    "clean_pages",
    "cut_blocks",
    "drop_repeated",
    "is_prose",
    "read_conll",
    "read_folder",
    "read_parallel",
    "read_text",
    "real_lengths",
    "sentence_pairs",
    "spell",
    "text_task",
    "translation_prompt",
]
