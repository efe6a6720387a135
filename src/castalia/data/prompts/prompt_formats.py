r"""The formats in which the GPT papers put tasks, as templates.

| task | a solved example |
|---|---|
| translation | ``cheese = fromage`` or ``(translate to French, cheese, fromage)`` |
| questions | ``Q: What is 48 plus 76?\nA: 124`` |
| summary | the article, then ``TL;DR:`` and the summary |
| reading | a document, a dialogue of questions and answers, and a question |
| final word | a passage without its last word |
| blank | ``Alice met her friend ____. -> Bob`` |

References: 2019, Radford et al., Language models are unsupervised multitask learners; 2020, Brown
et al., Language models are few-shot learners, arXiv 2005.14165.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from castalia.data.prompts.prompt_template import Prompt, PromptTemplate
from castalia.errors import InvalidData

__all__ = [
    "ANSWER_QUESTION",
    "FILL_BLANK",
    "FINAL_WORD",
    "FORMATS",
    "SUMMARISE",
    "TRANSLATE_LIST",
    "TRANSLATE_TO",
    "last_word_off",
    "read_document",
]

TRANSLATE_LIST = PromptTemplate("{source} = {target}")
TRANSLATE_TO = PromptTemplate("(translate to {language}, {source}, {target})")
ANSWER_QUESTION = PromptTemplate("Q: {question}\nA: {answer}", separator="\n\n")
SUMMARISE = PromptTemplate("{text}\nTL;DR: {summary}", separator="\n\n")
FINAL_WORD = PromptTemplate("{passage} {word}", separator="\n\n")
FILL_BLANK = PromptTemplate("{passage} ____. -> {word}")

FORMATS: dict[str, PromptTemplate] = {
    "translate-list": TRANSLATE_LIST,
    "translate-to": TRANSLATE_TO,
    "question": ANSWER_QUESTION,
    "summarise": SUMMARISE,
    "final-word": FINAL_WORD,
    "blank": FILL_BLANK,
}

_DIALOGUE = PromptTemplate("Q: {question}\nA: {answer}")


def read_document(document: str, question: str, dialogue: Sequence[Any] = ()) -> Prompt:
    """Return the prompt of reading comprehension: document, dialogue so far, question.

    Parameters
    ----------
    document
        What the answer is to be found in.
    question
        The question.
    dialogue
        Earlier questions with their answers, which the question may refer to.

    Examples
    --------
    >>> print(read_document("Ann is in Rome.", "Where?", [("Who is away?", "Ann")]))
    Ann is in Rome.
    Q: Who is away?
    A: Ann
    Q: Where?
    A:
    """
    return _DIALOGUE(question, examples=dialogue, instruction=document)


def last_word_off(text: str) -> tuple[str, str]:
    """Cut a passage before its last word, for ``FINAL_WORD``.

    Examples
    --------
    >>> last_word_off("the cat sat on the mat")
    ('the cat sat on the', 'mat')
    """
    passage, _, word = text.rstrip().rpartition(" ")
    if not passage.strip():
        raise InvalidData(f"last_word_off: a passage must hold two words or more; got {text!r}.")
    return passage.rstrip(), word
