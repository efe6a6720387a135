"""Recipes of pretraining, compared in equal steps."""

import inspect

import numpy as np

from castalia import Training
from castalia.models.language import BERT, RoBERTa
from castalia.objectives import MaskedLM, NextSentence
from castalia.train import Callback

TINY = {"context": 16, "dim": 32, "depth": 1, "heads": 2, "dropout": 0.0, "tokenizer": "whitespace"}
TINY |= {"epochs": 12, "batch_size": 32, "lr": 1e-2}


class Steps(Callback):
    """Counts the steps of a training."""

    count = 0

    def on_batch_end(self, state):
        self.count += 1


def neighbours(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of sentences of four words; the second says the words of the first in another case."""
    random = np.random.default_rng(seed)
    drawn = random.integers(12, size=(n, 4))
    return [(" ".join(f"a{k}" for k in row), " ".join(f"b{k}" for k in row)) for row in drawn]


def pretrain(next_sentence: bool) -> tuple[BERT, Steps]:
    steps = Steps()
    training = Training(validation=0, callbacks=[steps])
    settings = {**TINY, "next_sentence": next_sentence, "training": training, "random_state": 0}
    return BERT(**settings).fit(neighbours(320)), steps


def test_masked_tokens_alone_learn_at_least_as_much_in_equal_steps():
    """RoBERTa's finding: judging pairs costs context, half of which is then a stranger's."""
    (alone, steps), (both, other) = pretrain(False), pretrain(True)
    assert steps.count == other.count == 12 * 10
    new = neighbours(200, seed=1)
    assert alone.score(new) > both.score(new) + 0.05
    assert {"masked", "next_sentence"} <= set(both.history_[-1])
    assert "next_sentence" not in alone.history_[-1]


def test_the_recipe_of_roberta_has_no_pairs_to_judge():
    model = RoBERTa(**{**TINY, "tokenizer": None, "epochs": 1}).fit([a for a, _ in neighbours(40)])
    assert isinstance(model._objective(model.spec_), MaskedLM)
    assert "next_sentence" not in inspect.signature(RoBERTa).parameters
    assert (model.module_.pooler, model.module_.segments.num_embeddings) == (None, 1)
    judge = BERT(**{**TINY, "epochs": 1}, next_sentence=True).fit(neighbours(40))
    assert isinstance(judge._objective(judge.spec_), NextSentence)
