"""What the loop promises: stopping, averaging, clipping, failing, resuming."""

import copy

import pytest
import torch
from torch import nn

from castalia import Callback, MLPRegressor, Training
from castalia.errors import Diverged
from castalia.objectives import Objective, SquaredError
from castalia.optim import OPTIMIZERS, closure_kind, constant, warmup
from castalia.testing import train_tensors
from castalia.testing.toys import sine
from castalia.train import EVENTS, RunStore
from castalia.train.strategy import Single

RANDOM = torch.Generator().manual_seed(0)
X = torch.randn(64, 3, generator=RANDOM, dtype=torch.float64)
Y = X[:, :1] - X[:, 1:2] ** 2


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()


def weights(net):
    return {k: v.detach().clone() for k, v in net.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[k], second[k]) for k in first)


class Watch(Callback):
    """Keeps what it sees: weights after every step and epoch, and the gradient's norm."""

    def __init__(self):
        self.steps, self.epochs, self.norms, self.rates, self.gradients = [], [], [], [], []

    def on_gradients(self, state):
        parts = [p.grad.flatten() for p in state.net.parameters()]
        self.norms.append(float(torch.cat(parts).norm()))

    def on_batch_end(self, state):
        self.steps.append(weights(state.net))
        self.rates.append(state.lr)
        self.gradients.append([p.grad.clone() for p in state.net.parameters()])

    def on_epoch_end(self, state):
        self.epochs.append(weights(state.net))


def fit(net=None, *, watch=None, objective=None, epochs=4, lr=0.05, run=None, data=(X, Y), **own):
    net = net if net is not None else network()
    validation = own.pop("held", None)
    callbacks = [watch] if watch is not None else []
    training = Training(**{"validation": 0, **own}, callbacks=callbacks)
    state = train_tensors(
        net,
        objective if objective is not None else SquaredError(),
        *data,
        validation=validation,
        training=training,
        epochs=epochs,
        lr=lr,
        run=run,
    )
    return net, state


# ---- early stopping ----


def test_early_stopping_restores_the_best_weights_exactly():
    watch = Watch()
    noisy = (X[:20], torch.randn(20, 1, generator=RANDOM, dtype=torch.float64))
    net, state = fit(
        watch=watch, held=noisy, validation=0.1, patience=4, epochs=200, data=(X[20:], Y[20:])
    )
    losses = [line["val_loss"] for line in state.history]
    best = losses.index(min(losses))
    assert state.best == {"epoch": best, "stage": 0, "val_loss": min(losses)}
    assert len(losses) == best + 1 + 4 < 200
    assert same(weights(net), watch.epochs[best])
    assert not same(weights(net), watch.epochs[-1])
    with torch.no_grad():
        again = float((net(noisy[0]) - noisy[1]).square().mean())
    assert again == pytest.approx(min(losses), abs=1e-12)


def test_validation_rows_never_touch_the_weights():
    first, second = Watch(), Watch()
    fit(watch=first, held=(X[:9], Y[:9]), epochs=3)
    fit(watch=second, held=(X[:9] + 5, -Y[:9]), epochs=3)
    assert all(same(a, b) for a, b in zip(first.steps, second.steps, strict=True))


def test_without_patience_the_last_weights_stay():
    watch = Watch()
    net, state = fit(watch=watch, held=(X, -Y), epochs=5)
    assert same(weights(net), watch.epochs[-1])
    assert state.stopped is None


# ---- epochs ----


class Seen(SquaredError):
    """Remembers which rows each batch held."""

    def __init__(self):
        self.batches = []

    def terms(self, net, batch, phase):
        self.batches.append(batch.y.flatten().tolist())
        return super().terms(net, batch, phase)


def test_an_epoch_sees_every_row_once_in_an_order_of_its_own():
    first, again = Seen(), Seen()
    for objective in (first, again):
        fit(objective=objective, epochs=2, data=(X[:50], Y[:50]))
    assert [len(batch) for batch in first.batches] == [16, 16, 16, 2] * 2
    epochs = [sum(first.batches[:4], []), sum(first.batches[4:], [])]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(Y[:50].flatten().tolist())
    assert epochs[0] != epochs[1]
    assert first.batches == again.batches


# ---- averages ----


def test_ema_weights_are_the_recursion_over_the_steps():
    watch, start = Watch(), weights(network())
    net, _ = fit(watch=watch, average=("ema", 0.6))
    for name, value in weights(net).items():
        shadow = start[name]
        for t, step in enumerate(watch.steps):
            decay = min(0.6, (1 + t) / (10 + t))
            shadow = decay * shadow + (1 - decay) * step[name]
        torch.testing.assert_close(value, shadow, rtol=0, atol=1e-12)


def test_swa_weights_are_the_mean_of_the_last_quarter_of_the_epochs():
    watch = Watch()
    net, _ = fit(watch=watch, average="swa", epochs=8)
    for name, value in weights(net).items():
        mean = (watch.epochs[6][name] + watch.epochs[7][name]) / 2
        torch.testing.assert_close(value, mean, rtol=0, atol=1e-12)


def test_validation_is_done_with_the_averaged_weights():
    net, state = fit(average=("ema", 0.9), held=(X, Y), epochs=3)
    with torch.no_grad():
        loss = float((net(X) - Y).square().mean())
    assert state.history[-1]["val_loss"] == pytest.approx(loss, abs=1e-12)


# ---- clipping and rates ----


def test_clipping_scales_gradients_above_the_bound_and_leaves_the_others_alone():
    free, bound = Watch(), Watch()
    fit(watch=free, epochs=1)
    clip = sorted(free.norms)[2]
    fit(watch=bound, epochs=1, clip=clip)
    assert free.norms[0] == bound.norms[0]  # reported before clipping
    for norm, gradient in zip(bound.norms, bound.gradients, strict=True):
        after = float(torch.cat([g.flatten() for g in gradient]).norm())
        if norm <= clip:
            assert after == norm
        else:
            assert after == pytest.approx(clip, rel=1e-5)
    assert min(bound.norms) <= clip < max(bound.norms)


def test_the_schedule_reaches_the_optimizer():
    watch, net = Watch(), network()
    before = weights(net)
    fit(
        net, watch=watch, epochs=2, optimizer="sgd", schedule=lambda k, total: 1.0 if k < 3 else 0.0
    )
    assert watch.rates == [0.05] * 3 + [0.0] * 5
    assert not same(before, watch.steps[2])
    assert same(watch.steps[2], watch.steps[-1])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_reduces_the_loss(name):
    rate = {"lbfgs": 1.0, "adadelta": 2.0, "sgd": 0.2}.get(name, 0.02)
    _, state = fit(optimizer=name, epochs=3 if name in ("lbfgs", "hessian_free") else 12, lr=rate)
    assert state.history[-1]["loss"] < 0.7 * state.history[0]["loss"]


def test_lbfgs_solves_least_squares():
    target = X @ torch.tensor([[1.0], [-2.0], [0.5]], dtype=torch.float64) + 0.3
    net = nn.Linear(3, 1).double()
    training = Training(optimizer="lbfgs", validation=0)
    train_tensors(net, SquaredError(), X, target, training=training, epochs=3, batch_size=64, lr=1)
    assert net.weight.flatten().tolist() == pytest.approx([1, -2, 0.5], abs=1e-4)
    assert net.bias.item() == pytest.approx(0.3, abs=1e-4)


# ---- divergence ----


class Breaks(Objective):
    def __init__(self, at):
        self.at, self.calls = at, 0

    def terms(self, net, batch, phase):
        self.calls += 1
        loss = (net(batch.x) - batch.y).square().mean()
        return {"loss": loss * (float("nan") if self.calls >= self.at else 1.0)}


@pytest.mark.parametrize("at, epoch", [(3, 0), (6, 1)])
def test_divergence_carries_step_epoch_term_and_rate(at, epoch):
    with pytest.raises(
        Diverged, match=rf"loss became nan in epoch {epoch + 1}, at step {at}"
    ) as hit:
        fit(objective=Breaks(at), lr=0.25)
    error = hit.value
    assert (error.step, error.epoch, error.term, error.lr) == (at, epoch, "loss", 0.25)
    assert isinstance(error, ArithmeticError)


def test_a_rate_far_too_high_is_told_with_a_remedy():
    X, y = sine()
    with pytest.raises(Diverged, match=r"Lower `lr`, clip gradients"):
        MLPRegressor(epochs=50, lr=1e6, training=Training(optimizer="sgd")).fit(X, y)


# ---- callbacks ----


class Order(Callback):
    def __init__(self):
        self.heard = []


for _event in EVENTS:
    setattr(Order, _event, lambda self, state, name=_event: self.heard.append(name))

BATCH = ["on_batch_start", "on_gradients", "on_batch_end"]
EPOCH = ["on_epoch_start", *BATCH * 4, "on_epoch_end"]


def test_the_events_fire_in_their_order():
    order = Order()
    fit(watch=order, epochs=2)
    assert order.heard == ["on_fit_start", *EPOCH * 2, "on_fit_end"]


def test_a_failure_is_the_last_event():
    order = Order()
    with pytest.raises(Diverged):
        fit(watch=order, objective=Breaks(1))
    epoch = ["on_epoch_start", *BATCH * 4]
    assert order.heard == ["on_fit_start", *epoch, "on_failure"]


def test_a_failure_leaves_the_network_as_other_code_expects_it(monkeypatch):
    released = []
    monkeypatch.setattr(Single, "release", lambda self, net: released.append(net))
    net = network()
    with pytest.raises(Diverged):
        fit(net, objective=Breaks(1))
    assert released == [net]


def test_a_callback_can_stop_the_training_after_the_epoch():
    class Stop(Callback):
        def on_batch_end(self, state):
            if state.epoch == 1:
                state.stop("enough")

    _, state = fit(watch=Stop(), epochs=9)
    assert len(state.history) == 2
    assert state.stopped == "enough"


def test_the_state_counts_epochs_and_steps():
    class Count(Callback):
        def __init__(self):
            self.seen = []

        def on_batch_end(self, state):
            self.seen.append((state.epoch, state.step, state.total, state.steps, state.epochs))

    count = Count()
    fit(watch=count, epochs=2)
    assert count.seen == [(e, s + 1, 4 * e + s + 1, 4, 2) for e in range(2) for s in range(4)]


# ---- interruption ----


class Interrupt(Callback):
    def __init__(self, total, error=KeyboardInterrupt):
        self.total, self.error = total, error

    def on_batch_end(self, state):
        if state.total == self.total:
            raise self.error


def status(folder):
    with RunStore(folder) as store:
        (run,) = store.runs()
        return run["status"]


def test_ctrl_c_keeps_the_last_checkpoint_and_the_same_call_goes_on(tmp_path):
    whole, one = fit(run=tmp_path / "whole" / "run", checkpoint_every=3)
    settings = {"run": tmp_path / "cut" / "run", "checkpoint_every": 3}
    with pytest.raises(KeyboardInterrupt):
        fit(watch=Interrupt(7), **settings)
    assert status(tmp_path / "cut") == "interrupted"
    names = [file.name for file in (tmp_path / "cut" / "run" / "checkpoints").iterdir()]
    assert "step-00000006.safetensors" in names
    first = Watch()
    resumed, other = fit(watch=first, **settings)
    assert len(first.steps) == 16 - 6
    assert same(weights(resumed), weights(whole))
    assert [line["loss"] for line in one.history] == [line["loss"] for line in other.history]
    assert status(tmp_path / "cut") == "finished"


def test_a_run_that_goes_on_reads_as_running_and_an_error_as_failed(tmp_path):
    class Look(Callback):
        def on_epoch_end(self, state):
            seen.append(status(tmp_path))

    seen = []
    with pytest.raises(RuntimeError):
        fit(watch=Interrupt(6, RuntimeError), run=tmp_path / "run")
    assert status(tmp_path) == "failed"
    fit(watch=Look(), run=tmp_path / "run")
    assert set(seen) == {"running"}


def test_a_finished_run_is_not_trained_again(tmp_path):
    net, _ = fit(run=tmp_path / "run")
    watch = Watch()
    again, state = fit(watch=watch, run=tmp_path / "run")
    assert watch.steps == []
    assert same(weights(net), weights(again))
    assert len(state.history) == 4


@pytest.mark.parametrize("total", [1, 2, 3, 5])
def test_a_training_cut_in_its_warm_up_goes_on_at_the_full_rate(tmp_path, total):
    settings = {"schedule": warmup(constant(), steps=3), "checkpoint_every": 1}
    whole, _ = fit(run=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        fit(watch=Interrupt(total + 1), run=tmp_path / "cut", **settings)
    resumed, _ = fit(run=tmp_path / "cut", **settings)
    assert same(weights(resumed), weights(whole))


@pytest.mark.parametrize("optimizer", [name for name in OPTIMIZERS if name != "lbfgs"])
def test_every_optimizer_resumes_bit_for_bit(tmp_path, optimizer):
    settings = {"optimizer": optimizer, "checkpoint_every": 1, "lr": 0.01}
    settings["weight_decay"] = 0.01 if closure_kind(OPTIMIZERS[optimizer][0]) is None else 0.0
    whole, _ = fit(epochs=2, run=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        fit(epochs=2, watch=Interrupt(6), run=tmp_path / "cut", **settings)
    resumed, _ = fit(epochs=2, run=tmp_path / "cut", **settings)
    assert same(weights(resumed), weights(whole))


def test_after_step_is_called_once_a_step():
    class Counts(SquaredError):
        calls = 0

        def after_step(self, net):
            self.calls += 1

    objective = Counts()
    fit(objective=objective, epochs=2, accumulate=3)
    assert objective.calls == 8


def test_training_leaves_the_network_in_evaluation_mode_and_a_copy_alike():
    net, _ = fit()
    assert not net.training
    assert same(weights(copy.deepcopy(net)), weights(net))


class LateNumber(SquaredError):
    """Validates to NaN in the first epoch."""

    epochs = 0

    def terms(self, net, batch, phase):
        terms = super().terms(net, batch, phase)
        if not net.training:
            self.epochs += 1
            return {"loss": terms["loss"] * (float("nan") if self.epochs == 1 else 1.0)}
        return terms


def test_a_first_validation_that_is_not_a_number_is_no_best():
    settings = Training(patience=2)
    state = train_tensors(
        network(), LateNumber(), X, Y, validation=(X, Y), training=settings, epochs=4, lr=1e-3
    )
    assert state.best["epoch"] == 3
    assert len(state.history) == 4


def test_the_work_of_a_step_counts_the_tokens_of_a_row():
    """A small network on long texts is no small step: it may use every thread."""
    from castalia.models.language import GPTLanguageModel

    model = GPTLanguageModel(dim=64, depth=2, heads=2, context=128, batch_size=32, epochs=1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model.fit(["a b c d " * 200])
    finally:
        torch.set_num_threads(before)
    assert model.settings_["threads"] == 2
