"""Epochs of word vectors: events, history, checkpoints, and a kill that changes nothing."""

import numpy as np
import pytest
import torch

from castalia import Callback, FastText, GloVe, Training, Word2Vec
from castalia.errors import Diverged, InvalidParameter
from castalia.train import checkpoint_pace

WORDS = ["red", "green", "blue", "dog", "cat", "cow", "one", "two", "three", "four"]
TEXTS = [" ".join(np.random.default_rng(i).choice(WORDS, 12)) for i in range(60)]
COMMON = {"dim": 8, "min_count": 1, "epochs": 3, "random_state": 0}
MODELS = {
    "skip-gram": lambda **more: Word2Vec(subsample=0.02, batch_size=64, **COMMON, **more),
    "cbow": lambda **more: Word2Vec(model="cbow", subsample=0, batch_size=64, **COMMON, **more),
    "tree": lambda **more: Word2Vec(
        output="hierarchical", subsample=0, batch_size=64, **COMMON, **more
    ),
    "fasttext": lambda **more: FastText(buckets=50, subsample=0, batch_size=64, **COMMON, **more),
    "glove": lambda **more: GloVe(batch_size=8, **COMMON, **more),
}


class Events(Callback):
    """Writes down every event; a subclass of one with all of them listens to all."""

    def __init__(self):
        self.seen = []

    def on_fit_start(self, state):
        self.seen.append("fit")

    def on_epoch_start(self, state):
        self.seen.append(f"epoch {state.epoch}")

    def on_batch_start(self, state):
        self.seen.append("batch")

    def on_batch_end(self, state):
        assert state.lr > 0
        assert state.loss is None or torch.isfinite(state.loss)

    def on_epoch_end(self, state):
        self.seen.append(f"loss {len(state.history)}")

    def on_fit_end(self, state):
        assert all(table.isfinite().all() for table in state.net.parameters())
        self.seen.append("end")

    def on_failure(self, state):
        self.seen.append("failure")


class Kill(Callback):
    """Ctrl-C after some steps, or in the second epoch."""

    def __init__(self, after):
        self.after = after

    def on_batch_end(self, state):
        in_second_epoch = self.after is None and (state.epoch, state.step) == (1, 2)
        if state.total == self.after or in_second_epoch:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "every, after, kept", [(None, None, None), (1, 9, 8), (4, 13, 12), (2, 2, 0)]
)
def test_a_run_that_was_killed_ends_with_the_bits_of_one_that_was_not(
    name, every, after, kept, tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoint_pace, "SECONDS", 0.0)  # a checkpoint after every epoch
    monkeypatch.setattr(checkpoint_pace, "SHARE", np.inf)
    whole, rest = Events(), Events()
    undisturbed = MODELS[name](training=Training(callbacks=[whole])).fit(TEXTS)
    settings = {"run": tmp_path / "run", "checkpoint_every": every}
    with pytest.raises(KeyboardInterrupt):
        MODELS[name](training=Training(callbacks=[Kill(after)], **settings)).fit(TEXTS)
    resumed = MODELS[name](training=Training(callbacks=[rest], **settings)).fit(TEXTS)
    assert np.array_equal(resumed.vectors_, undisturbed.vectors_)
    assert resumed.losses_.tolist() == undisturbed.losses_.tolist()
    skipped = whole.seen.count("batch") - rest.seen.count("batch")
    first = whole.seen.index("loss 1") - 2  # steps of the first epoch
    assert skipped == (kept if every else first)


@pytest.mark.parametrize("name", ["cbow", "glove"])
def test_callbacks_get_their_events_in_order(name):
    events = Events()
    model = MODELS[name](training=Training(callbacks=[events])).fit(TEXTS)
    steps = (len(events.seen) - 2) // 3 - 2
    epochs = [[f"epoch {i}", *["batch"] * steps, f"loss {i + 1}"] for i in range(3)]
    assert events.seen == ["fit", *sum(epochs, []), "end"]
    assert steps > 3
    assert [line["loss"] for line in model.history_] == model.losses_.tolist()
    assert model.losses_[-1] < model.losses_[0]
    assert model.n_iter_ == 3
    assert {"epoch", "loss", "lr", "seconds"} <= set(model.history_[0])


def test_a_callback_can_end_the_training_after_an_epoch():
    class Stop(Callback):
        def on_epoch_end(self, state):
            state.stop("enough")

    model = MODELS["skip-gram"](training=Training(callbacks=[Stop()])).fit(TEXTS)
    assert (model.n_iter_, model.stopped_) == (1, "enough")


def test_a_finished_run_is_read_and_not_trained_again(tmp_path):
    first = MODELS["glove"](training=Training(run=tmp_path / "run")).fit(TEXTS)
    events = Events()
    again = MODELS["glove"](training=Training(run=tmp_path / "run", callbacks=[events])).fit(TEXTS)
    assert events.seen == []
    assert np.array_equal(first.vectors_, again.vectors_)
    assert again.history_ == first.history_
    assert again.run_ == str(tmp_path / "run")


def test_progress_is_shown(capsys):
    MODELS["glove"](training=Training(verbose=True)).fit(TEXTS)
    assert "train: epoch 3/3, loss " in capsys.readouterr().err


def test_a_failure_reaches_callbacks_and_names_the_rate():
    class Failures(Callback):
        seen = 0

        def on_failure(self, state):
            self.seen += 1

    failures = Failures()
    with pytest.raises(Diverged, match=r"GloVe: the loss must stay finite.*lr=1e\+30"):
        GloVe(lr=1e30, **COMMON, training=Training(callbacks=[failures])).fit(TEXTS)
    assert failures.seen == 1


def test_settings_that_word_vectors_do_not_obey_are_refused():
    said = "may set `callbacks`, `run`, `checkpoint_every` and `verbose`; got clip=1.0"
    with pytest.raises(InvalidParameter, match=said):
        Word2Vec(**COMMON, training=Training(clip=1.0)).fit(TEXTS)


def test_settings_are_reached_by_their_nested_names(tmp_path):
    model = Word2Vec(**COMMON).set_params(training__run=tmp_path / "run").fit(TEXTS)
    assert model.run_ == str(tmp_path / "run")
