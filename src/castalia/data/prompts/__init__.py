"""Prompts: tasks written as the beginning of a text, which a language model continues."""

from castalia.data.prompts.arithmetic_prompts import Sum, arithmetic_probe, compose, compute
from castalia.data.prompts.chat_template import CHATML, ChatTemplate
from castalia.data.prompts.prompt_formats import (
    ANSWER_QUESTION,
    FILL_BLANK,
    FINAL_WORD,
    FORMATS,
    SUMMARISE,
    TRANSLATE_LIST,
    TRANSLATE_TO,
    last_word_off,
    read_document,
)
from castalia.data.prompts.prompt_template import Prompt, PromptTemplate

__all__ = [
    "ANSWER_QUESTION",
    "CHATML",
    "FILL_BLANK",
    "FINAL_WORD",
    "FORMATS",
    "SUMMARISE",
    "TRANSLATE_LIST",
    "TRANSLATE_TO",
    "ChatTemplate",
    "Prompt",
    "PromptTemplate",
    "Sum",
    "arithmetic_probe",
    "compose",
    "compute",
    "last_word_off",
    "read_document",
]
