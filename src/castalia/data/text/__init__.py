"""Texts as rows of a training: packed blocks for language models, padded rows for classifiers."""

from castalia.data.text.conversation_adapter import ConversationAdapter
from castalia.data.text.document_adapter import DocumentAdapter
from castalia.data.text.language_adapter import LanguageAdapter
from castalia.data.text.layout_adapter import LAYOUTS, LayoutAdapter, as_choices
from castalia.data.text.named_tokenizers import TOKENIZERS, choose_tokenizer
from castalia.data.text.ngram_adapter import NGramAdapter
from castalia.data.text.pair_adapter import PairAdapter, as_pairs, sentence_pairs
from castalia.data.text.sentence_adapter import LETTERS, SentenceAdapter, spell
from castalia.data.text.stream_adapter import StreamAdapter
from castalia.data.text.text_adapter import TextAdapter
from castalia.data.text.text_inputs import as_texts
from castalia.data.text.text_readers import read_conll, read_folder, read_parallel
from castalia.data.text.text_tasks import TASKS, TextTask, text_task, translation_prompt
from castalia.data.text.token_corpus import Corpus
from castalia.data.text.token_label_adapters import SpanAdapter, WordAdapter, as_sentences
from castalia.data.text.token_rows import TokenRows, cut_blocks, real_lengths
from castalia.data.text.twin_adapter import TwinAdapter
from castalia.data.text.web_text import (
    clean_lines,
    clean_page,
    clean_pages,
    drop_repeated,
    is_prose,
)
from castalia.data.utf8_files import read_text

__all__ = [
    "LAYOUTS",
    "LETTERS",
    "TASKS",
    "TOKENIZERS",
    "ConversationAdapter",
    "Corpus",
    "DocumentAdapter",
    "LanguageAdapter",
    "LayoutAdapter",
    "NGramAdapter",
    "PairAdapter",
    "SentenceAdapter",
    "SpanAdapter",
    "StreamAdapter",
    "TextAdapter",
    "TextTask",
    "TokenRows",
    "TwinAdapter",
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
