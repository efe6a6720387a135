"""Tasks by prompting, without a gradient step: rows PRE of the course."""

from itertools import product

import numpy as np
import pytest

from castalia.data.prompts import FINAL_WORD, SUMMARISE, PromptTemplate, last_word_off
from castalia.lab import in_context_experiment as in_context
from castalia.models.language import (
    GPTLanguageModel,
    NGramLanguageModel,
    answer,
    choose,
    ending_scores,
)

SMALL = {"dim": 32, "depth": 1, "heads": 1, "dropout": 0.0, "tied": False, "lr": 5e-3}


def learnt(texts, epochs):
    """Train a small model on texts of one length."""
    length = len(texts[0].split())
    settings = {**SMALL, "tokenizer": "whitespace", "context": length + 1, "epochs": epochs}
    return GPTLanguageModel(**settings, batch_size=16, random_state=0).fit(texts)


def share(said, right):
    return np.mean([a == b for a, b in zip(said, right, strict=True)])


def test_the_prompt_alone_says_which_task_is_meant():
    templates = [PromptTemplate(f"{{text}}\n{ask}: {{answer}}") for ask in ("size", "colour")]
    templates.append(SUMMARISE)
    things = list(product(("big", "old", "shy"), ("red", "blue", "grey"), ("cat", "fox", "hen")))
    order = np.random.default_rng(0).permutation(len(things))
    tasks = [
        [(template(f"a {' '.join(things[i])} runs"), things[i][k]) for i in order]
        for k, template in enumerate(templates)
    ]
    seen = [prompt.answered(right) for task in tasks for prompt, right in task[:20]]
    model = learnt(seen * 10, epochs=9)
    for task in tasks:
        prompts, right = zip(*task[20:], strict=True)  # things that were never spoken of
        assert all(prompt.shots == 0 for prompt in prompts)
        assert share(answer(model, list(prompts), tokens=1), right) > 0.8


def test_the_likelier_ending_is_the_planted_one_once_lengths_are_even():
    effects = {"it rained": "the street was wet", "it froze": "the lake was hard ice"}
    told = [f"{cause} so {effect}" for cause, effect in effects.items()]
    model = NGramLanguageModel(order=4).fit(told * 10)
    endings = [f" {effect}" for effect in effects.values()]
    prompts = [f"{cause} so" for cause in effects]
    assert choose(model, prompts, endings) == endings
    assert choose(model, prompts, endings[::-1]) == endings  # wherever it stands
    # one rather unlikely word, or two rather likely ones: 0.4 > 0.6², but 0.4 < 0.6
    rare = NGramLanguageModel(order=1, smoothing="likelihood", boundaries=False).fit(
        ["a " * 6 + "b " * 4]
    )
    assert choose(rare, "a", [" b", " a a"], normalise=False) == " b"
    assert choose(rare, "a", [" b", " a a"]) == " a a"
    sums = ending_scores(rare, "a", [" b", " a a"], normalise=False)
    assert np.exp(sums) == pytest.approx([0.4, 0.36])


def test_a_network_finds_the_final_word_that_ngrams_do_not_see():
    random = np.random.default_rng(0)
    animals, words = ["cat", "dog", "fox", "hen"], ["big", "old", "red", "shy"]
    texts = [
        f"my {a} is {random.choice(words)} and {random.choice(words)} so i love my {a}"
        for a in random.choice(animals, 660)
    ]
    passages, right = zip(*map(last_word_off, texts[600:]), strict=True)
    prompts = [FINAL_WORD(passage) for passage in passages]
    network, counts = learnt(texts[:600], epochs=12), NGramLanguageModel(order=4).fit(texts[:600])
    assert share(answer(counts, prompts, tokens=1), right) < 0.4
    assert share(answer(network, prompts, tokens=1), right) > 0.8


def test_the_best_possible_answers_are_those_of_one_who_looks_things_up():
    prompts, right = in_context.ask(2000, 3)
    said = [
        dict(line.split(": ") for line in prompt.parts[:-1]).get(
            prompt.parts[-1].rstrip(":"), prompt.parts[-1].rstrip(":") + "-0"
        )
        for prompt in prompts
    ]
    assert share(said, right) == pytest.approx(in_context.best_possible(3), abs=0.04)
