"""Objectives around objectives ask the inner one for whatever they do not change."""

import pytest
import torch
from torch import nn

from castalia.nets.language import GPT
from castalia.objectives import (
    L1,
    L2,
    Adversarial,
    Augmented,
    CausalLM,
    CrossEntropy,
    Layered,
    Surrogate,
    ZeroOne,
)
from castalia.objectives import next_token as language
from castalia.objectives.objective import Wrapped
from castalia.objectives.vocabulary_loss import vocabulary_loss
from castalia.protocols import Batch, StepPlan


class Inner(CrossEntropy):
    """Remembers what it is asked."""

    def __init__(self):
        super().__init__()
        self.calls, self.carried = [], {"h": torch.ones(2)}

    def phases(self, net):
        self.calls.append("phases")
        return super().phases(net)

    def after_step(self, net):
        self.calls.append("after_step")

    def prepare(self, plan):
        self.calls.append(plan)

    def state_dict(self):
        return self.carried

    def load_state_dict(self, state):
        self.carried = dict(state)


WRAPPERS = {
    "Penalised": lambda inner: inner + L2(1e-3),
    "twice": lambda inner: inner + L2(1e-3) + L1(1e-3),
    "Surrogate": lambda inner: Surrogate(inner, ZeroOne()),
    "Augmented": lambda inner: Augmented(inner, lambda x, y: (x, y)),
    "Adversarial": lambda inner: Adversarial(inner, 0.1),
    "Layered": lambda inner: Layered(inner, lambda net: [(net.weight, 1.0)]),
}


def all_wrappers(kind=Wrapped):
    for found in kind.__subclasses__():
        if found.__module__.startswith("castalia.objectives."):  # strategies have their own tests
            yield found.__name__
        yield from all_wrappers(found)


def test_every_wrapper_of_the_library_is_tried_here():
    assert set(all_wrappers()) <= set(WRAPPERS)


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_hands_on_all_but_its_own(name):
    inner, net, plan = Inner(), nn.Linear(3, 2), StepPlan(second_order=False, compile="default")
    outer = WRAPPERS[name](inner)
    outer.prepare(plan)
    outer.after_step(net)
    outer.phases(net)
    assert plan in inner.calls
    assert "after_step" in inner.calls
    assert ("phases" in inner.calls) is (name != "Layered")
    assert outer.state_dict() is inner.carried
    outer.load_state_dict({"h": torch.zeros(2)})
    assert inner.carried["h"].tolist() == [0.0, 0.0]


def test_a_penalised_language_model_never_holds_the_scores_of_a_large_vocabulary(monkeypatch):
    asked = []
    monkeypatch.setattr(language, "has_triton", lambda device: True)
    monkeypatch.setattr(
        language, "vocabulary_loss", lambda *args: asked.append(1) or vocabulary_loss(*args)
    )
    objective = CausalLM() + L2(1e-4)
    objective.prepare(StepPlan(second_order=False))
    net = GPT(language.LARGE, context=5, dim=8, depth=1, heads=2)
    terms = objective.terms(net, Batch(torch.randint(4, (2, 5))), "train")
    terms["loss"].backward()
    assert asked == [1]
    assert set(terms) == {"loss", "l2"}
