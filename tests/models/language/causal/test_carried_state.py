"""The state that a recurrent language model carries from step to step."""

from dataclasses import replace

import pytest
import torch

from castalia import Callback, Training
from castalia.models.language import RNNLanguageModel
from castalia.objectives import L2, CarriedLM

TEXTS = ["the cat sat on the mat and the dog on the log " * 4] * 5
PLAIN = Training(watch=False, verbose=False, validation=0)


class Interrupt(Callback):
    """Ctrl-C in the middle of the second epoch."""

    def on_batch_end(self, state):
        if state.epoch == 1 and state.step == 8:
            raise KeyboardInterrupt


def fit(training, cell="lstm"):
    model = RNNLanguageModel(
        hidden=6, cell=cell, context=8, batch_size=4, epochs=2, lr=1e-2, random_state=0
    )
    return model.set_params(training=training).fit(TEXTS)


def same(one, other):
    pairs = zip(one.module_.parameters(), other.module_.parameters(), strict=True)
    return all(torch.equal(p, q) for p, q in pairs)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_training_cut_inside_an_epoch_carries_its_state_on_to_the_same_bits(cell, tmp_path):
    kept = replace(PLAIN, run=tmp_path / "run", checkpoint_every=5)
    with pytest.raises(KeyboardInterrupt):
        fit(replace(kept, callbacks=[Interrupt()]), cell)
    assert same(fit(kept, cell), fit(PLAIN, cell))


def test_the_doctor_leaves_the_carried_state_alone():
    assert same(fit(replace(PLAIN, watch=True)), fit(PLAIN))


def test_a_wrapped_objective_carries_the_state_of_its_inner():
    inner = CarriedLM(2)
    wrapped = inner + L2(0.1)
    wrapped.load_state_dict({"0": torch.ones(1, 2, 3)})
    assert torch.equal(inner.state[0], torch.ones(1, 2, 3))
    assert wrapped.state_dict().keys() == {"0"}
    wrapped.load_state_dict({})
    assert not inner.state[0].any()
