"""Tasks by prompting: a fitted model continues a text, or says which ending is most likely.

No weight changes; what the model is to do stands in the prompt. An ending c of tokens c_1 … c_n
after a prompt x scores log p(c | x) = sum_i log p(c_i | x, c_<i), or that over n, so that long
endings are not at a disadvantage.  Shapes: N prompts, K endings of each.
References: 2019, Radford et al., Language models are unsupervised multitask learners; 2020, Brown
et al., Language models are few-shot learners, arXiv 2005.14165.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.data.prompts import Prompt
from castalia.errors import InvalidData
from castalia.models.language.prompts.prompt_readers import reader
from castalia.utils.text import shorten

__all__ = ["answer", "choose", "ending_scores"]


def choose(model: Any, prompt: Any, choices: Sequence[Any], *, normalise: bool = True) -> Any:
    """Return the choice that a model finds most likely after a prompt.

    Parameters
    ----------
    model
        A fitted language model, such as ``GPTLanguageModel``, ``RNNLanguageModel`` or ``T5``.
    prompt
        A ``Prompt`` or a string; or N of them, which gives a list of N choices.
    choices
        K answers to a ``Prompt``, or endings of a string with the space they begin with; for N
        prompts also N sequences of them.
    normalise
        Whether log-probabilities are divided by the number of tokens, or compared as they are,
        which favours short choices.

    Examples
    --------
    >>> from castalia.models.language import NGramLanguageModel, choose
    >>> model = NGramLanguageModel(order=2).fit(["the sky is blue", "the grass is green"])
    >>> choose(model, "the", [" grass is green", " green is grass"])
    ' grass is green'
    """
    scores = ending_scores(model, prompt, choices, normalise=normalise)
    best = np.atleast_2d(scores).argmax(axis=1).tolist()
    if scores.ndim == 1:
        return choices[best[0]]
    return [row[i] for row, i in zip(_for_each(choices, len(best)), best, strict=True)]


def ending_scores(
    model: Any, prompt: Any, choices: Sequence[Any], *, normalise: bool = True
) -> np.ndarray:
    """Return the log-probability of each choice after a prompt, (K,), or of N prompts, (N, K).

    A model that answers texts, such as ``T5``, also scores the end of the answer. Rows with fewer
    choices than others are filled with -inf.

    Examples
    --------
    >>> from castalia.models.language import NGramLanguageModel, ending_scores
    >>> counts = NGramLanguageModel(order=1, smoothing="likelihood", boundaries=False)
    >>> ending_scores(counts.fit(["a b b b"]), "a", [" a b", " b"], normalise=False).round(3)
    array([-1.674, -0.288])
    """
    prompts, several = _prompts("choose", prompt)
    rows = _for_each(choices, len(prompts))
    endings = [_endings(p, row) for p, row in zip(prompts, rows, strict=True)]
    scores = np.full((len(rows), max(map(len, rows))), -np.inf)
    for score, logs in zip(scores, reader(model).logs([*map(str, prompts)], endings), strict=True):
        score[: len(logs)] = [each.mean() if normalise else each.sum() for each in logs]
    if np.isnan(scores).any():
        raise InvalidData("choose: the model's log-probabilities must be numbers; got NaN.")
    return scores if several else scores[0]


def answer(model: Any, prompt: Any, *, tokens: int = 20) -> Any:
    """Return what a model writes behind a prompt, the most probable token at each step.

    Parameters
    ----------
    model
        A fitted language model.
    prompt
        A ``Prompt``, whose answer ends where the next example would begin, or a string; or several,
        which gives a list.
    tokens
        Most tokens to write; a model that answers texts, such as ``T5``, ends by itself.

    Examples
    --------
    >>> from castalia.models.language import NGramLanguageModel, answer
    >>> model = NGramLanguageModel(order=2).fit(["the sky is blue", "the grass is green"])
    >>> answer(model, "the sky", tokens=2)
    'is blue'
    """
    prompts, several = _prompts("answer", prompt)
    if not prompts:
        raise InvalidData("answer: there must be at least one prompt; got none.")
    written = reader(model).write([*map(str, prompts)], tokens)
    pairs = zip(prompts, written, strict=True)
    found = [p.read_answer(text) if isinstance(p, Prompt) else text.strip() for p, text in pairs]
    return found if several else found[0]


def _prompts(owner: str, prompt: Any) -> tuple[list[str | Prompt], bool]:
    """Return prompts in a list, and whether there were several; token ids are refused."""
    if isinstance(prompt, str | Prompt):
        return [prompt], False
    found = list(prompt) if np.iterable(prompt) else [prompt]
    for each in found:
        if not isinstance(each, str | Prompt):
            raise InvalidData(
                f"{owner}: a prompt must be a string or a Prompt; got {shorten(repr(each), 40)}. "
                "Of token ids make a text by `model.tokenizer_.decode`."
            )
    return found, True


def _for_each(choices: Sequence[Any], prompts: int) -> list[list[str]]:
    """Return the choices of each prompt."""
    if not prompts or isinstance(choices, str) or not len(choices):
        raise InvalidData(
            "choose: there must be at least one prompt, and a list of choices; got "
            f"{prompts} prompts and the choices {shorten(repr(choices))}."
        )
    if all(isinstance(choice, str) for choice in choices):
        return [list(choices)] * prompts
    if not all(isinstance(row, list | tuple | np.ndarray) for row in choices):
        raise InvalidData(
            f"choose: choices must be texts, or a list of texts for each prompt; got "
            f"{shorten(repr(choices))}."
        )
    if len(choices) != prompts:
        raise InvalidData(
            f"choose: there must be one list of choices for all prompts, or one for each of the "
            f"{prompts}; got {len(choices)}."
        )
    return [list(row) for row in choices]


def _endings(prompt: str | Prompt, choices: list[str]) -> list[str]:
    """Return what each choice adds to the text of a prompt."""
    wrong = [c for c in choices if not isinstance(c, str) or not c.strip()]
    if wrong or len(set(choices)) < len(choices) or not choices:
        raise InvalidData(
            "choose: choices must be different texts, none of them empty; got "
            f"{shorten(repr(choices))}."
        )
    return [prompt.lead + c for c in choices] if isinstance(prompt, Prompt) else choices
