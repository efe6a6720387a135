"""Agents with networks: their gradients by hand, what they remember, and worlds they solve."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from torch.testing import assert_close

import castalia
from castalia import Callback, Training
from castalia.errors import InvalidData, InvalidParameter, MissingPackage
from castalia.models.control import (
    DQN,
    CartPole,
    GridWorld,
    PolicyGradient,
    RandomWalk,
    record,
    value_iteration,
)
from castalia.models.control.deep_q_agent import Memory, QLoss
from castalia.models.control.experience import Crew, Experience
from castalia.models.control.policy_gradient import PolicyLoss, advantages
from castalia.nets.control import ActorCritic, OnlineAndTarget
from castalia.protocols import Batch

MAP = GridWorld(["S..", ".HG"])
Q = {"epochs": 25, "steps": 16, "copies": 4, "updates": 20, "hidden": (16,), "batch_size": 32}
Q |= {"lr": 1e-2, "memory": 2000, "renew": 10, "ramp": 0.8, "discount": 0.9, "random_state": 0}
P = {"epochs": 25, "steps": 16, "hidden": (16,), "lr": 1e-2, "random_state": 0}


def test_an_advantage_is_the_discounted_sum_of_differences_within_its_episode():
    random = np.random.default_rng(0)
    d, on = random.normal(size=(6, 2)), (random.random((6, 2)) > 0.3).astype(float)
    found = advantages(d, on, 0.9, 0.8)
    for c in range(2):
        for t in range(6):
            total, factor = 0.0, 1.0
            for k in range(t, 6):
                total += factor * d[k, c]
                factor *= 0.72 * on[k, c]
            assert found[t, c] == pytest.approx(total)


def test_the_first_gradient_is_that_of_reinforce_and_far_ratios_have_none():
    net = ActorCritic(3, 2, hidden=(4,)).double()
    x, a = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1])
    gain = torch.randn(5, dtype=torch.float64)
    law = torch.log_softmax(net(x)[0], dim=1)[torch.arange(5), a]
    step = {"state": x, "action": a, "advantage": gain, "wanted": torch.zeros(5).double()}
    weights = list(net.actor.parameters())
    loss = PolicyLoss(0.2).terms(net, Batch({**step, "log_prob": law.detach()}), "")["loss"]
    found = torch.autograd.grad(loss, weights, retain_graph=True)
    assert_close(found, torch.autograd.grad(-(gain * law).mean(), weights, retain_graph=True))
    far = {**step, "advantage": gain.abs(), "log_prob": law.detach() - 1}  # likelier already
    loss = PolicyLoss(0.2).terms(net, Batch(far), "")["policy"]
    assert all((g == 0).all() for g in torch.autograd.grad(loss, weights))


def test_a_film_shows_an_episode_and_a_world_that_raises_or_shows_nothing_is_named(tmp_path):
    agent = SimpleNamespace(predict=lambda states: [1])
    steps = record(agent, CartPole(), tmp_path / "cart.gif", every=1)
    with Image.open(tmp_path / "cart.gif") as film:
        assert film.n_frames == steps + 1  # pushed one way, the pole falls within some steps
        first = np.asarray(film.convert("L"))
        film.seek(int(steps))
        assert (np.asarray(film.convert("L")) != first).any()
    assert record(agent, GridWorld(["SG"]), tmp_path / "grid.gif") == pytest.approx(0.99)
    world = CartPole()
    with pytest.raises(InvalidParameter, match="must have a `render` that returns an image"):
        record(agent, RandomWalk(3), tmp_path / "none.gif")
    world.step = lambda action: 1 / 0
    with pytest.raises(InvalidData, match=r"CartPole.step\(\d\)` raised ZeroDivisionError"):
        DQN(**Q).fit(world)
    world.reset = world.step
    with pytest.raises(
        InvalidData, match=r"PolicyGradient: .*CartPole.reset\(\)` raised TypeError"
    ):
        PolicyGradient(**P).fit(world)


def test_what_comes_next_is_chosen_by_the_new_network_and_valued_by_the_old_one():
    net = OnlineAndTarget(2, 3, hidden=(4,))
    with torch.no_grad():
        for p in net.target.parameters():
            p.add_(torch.randn_like(p))
    after = torch.randn(6, 2)
    best = net(after).argmax(dim=1)
    assert_close(QLoss(0.9).ahead(net, after), net.target(after)[torch.arange(6), best])
    single = QLoss(0.9, double=False).ahead(net, after)
    assert_close(single, net.target(after).amax(dim=1))
    loss = QLoss(0.9, renew=2)
    loss.after_step(net)
    assert not torch.equal(net(after), net.target(after))
    loss.after_step(net)
    assert torch.equal(net(after), net.target(after))
    with torch.no_grad():
        before = [p.add_(1).clone() for p in net.target.parameters()]
    QLoss(0.9, renew=1, blend=0.25).after_step(net)
    for old, new, mixed in zip(
        before, net.online.parameters(), net.target.parameters(), strict=True
    ):
        assert_close(mixed, 0.75 * old + 0.25 * new)


def test_a_final_state_is_worth_what_it_pays():
    net = OnlineAndTarget(1, 2, hidden=())
    one = torch.ones(1, 1)
    step = {"state": one, "after": one, "action": torch.tensor([1]), "reward": torch.tensor([2.0])}
    for goes_on in (0.0, 1.0):
        wanted = 2 + 0.5 * goes_on * net.target(one).amax()
        terms = QLoss(0.5).terms(net, Batch({**step, "goes_on": torch.tensor([goes_on])}), "")
        assert_close(terms["loss"], torch.nn.functional.smooth_l1_loss(net(one)[0, 1], wanted))


@pytest.mark.parametrize(
    "agent",
    [DQN(**Q), PolicyGradient(**P), PolicyGradient(**{**P, "epochs": 60}, method="a2c")],
    ids=["dqn", "ppo", "a2c"],
)
def test_the_best_way_through_a_grid_is_found(agent):
    best = value_iteration(MAP, agent.discount)
    agent.fit(MAP)
    way = [0, 1, 2]
    assert agent.predict(way).tolist() == best[way].argmax(axis=1).tolist()
    assert agent.score(MAP) == pytest.approx(0.97)
    assert agent.returns_[-20:].mean() > agent.returns_[:20].mean()
    assert "return" in agent.history_[-1]


def test_a_pole_falls_by_the_equations_and_an_agent_holds_it_longer():
    world = CartPole()
    world.reset(seed=0)
    x, v, a, w = world._state
    state = world.step(1)[0]
    t = (10 + 0.05 * w**2 * np.sin(a)) / 1.1
    turn = (9.8 * np.sin(a) - np.cos(a) * t) / (0.5 * (4 / 3 - 0.1 * np.cos(a) ** 2 / 1.1))
    gain = t - 0.05 * turn * np.cos(a) / 1.1
    np.testing.assert_allclose(
        state, [x + 0.02 * v, v + 0.02 * gain, a + 0.02 * w, w + 0.02 * turn], rtol=1e-5
    )
    agent = PolicyGradient(steps=32, epochs=10, discount=0.98, trace=0.8, lr=2e-3, random_state=0)
    agent.fit(world)
    assert agent.score(world, episodes=5) > 60  # at random 22; seeds 0 to 2: 162 to 362
    assert agent.steps_[-1] <= 10 * 32 * 8


def test_an_agent_is_cloned_saved_resumed_and_watched(tmp_path):
    training = Training(run=str(tmp_path / "run"), watch=True)
    agent = PolicyGradient(**{**P, "epochs": 3}, training=training).fit(MAP)
    assert agent.diagnosis_ is not None
    again = clone(agent).fit(MAP)  # the run is finished: nothing is trained
    assert_close(list(agent.module_.parameters()), list(again.module_.parameters()))
    castalia.save(agent, tmp_path / "agent")
    loaded = castalia.load(tmp_path / "agent")
    np.testing.assert_array_equal(loaded.predict(np.arange(6)), agent.predict(np.arange(6)))


def test_worlds_come_by_their_names_from_gymnasium_and_others_are_refused(monkeypatch):
    with pytest.raises(InvalidParameter, match="DQN: the world must have `reset`, `step`, an `obs"):
        DQN().fit(SimpleNamespace(observation_space=3))
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingPackage, match=r"pip install 'castalia\[control\]'"):
        DQN().fit("CartPole-v1")

    def made(name):
        if name != "Grid":
            raise KeyError(name)
        return MAP

    fake = SimpleNamespace(make=made, error=SimpleNamespace(Error=KeyError))
    monkeypatch.setitem(sys.modules, "gymnasium", fake)
    assert len(PolicyGradient(**{**P, "epochs": 1}).fit("Grid").history_) == 10
    with pytest.raises(InvalidParameter, match="must be one that Gymnasium knows; got 'Gird'"):
        DQN().fit("Gird")


@pytest.mark.parametrize(
    "result, said",
    [
        ((np.zeros(4), 1.0, False, {}), r"CartPole.step\(\d\)` returned \(array"),
        ((np.zeros(4), np.nan, False, False, {}), "a finite reward"),
        ((np.full(4, np.nan), 1.0, False, False, {}), "states must be finite numbers"),
    ],
    ids=["four results", "reward", "state"],
)
def test_a_world_that_returns_something_else_is_named(result, said):
    world = CartPole()
    world.step = lambda action: result
    with pytest.raises(InvalidData, match=said):
        DQN(epochs=1, steps=4, updates=1, hidden=(2,), random_state=0).fit(world)


def test_the_weights_of_the_best_trial_are_kept(monkeypatch):
    found = iter([3.0, 7.0, 5.0])
    seen = []

    def tried(memory, net):
        seen.append({k: v.clone() for k, v in net.state_dict().items()})
        return next(found)

    monkeypatch.setattr(Memory, "_tried", tried)
    agent = DQN(epochs=20, steps=4, updates=1, hidden=(4,), trials=2, random_state=0)
    agent.fit(CartPole())
    assert [line["trial"] for line in agent.history_ if "trial" in line] == [3.0, 7.0, 5.0]
    assert_close(agent.module_.state_dict(), seen[1])


def test_a_resumed_training_still_knows_its_best_trial(monkeypatch, tmp_path):
    found, seen = iter([9.0, 5.0, 7.0]), []

    def tried(memory, net):
        seen.append({k: v.clone() for k, v in net.state_dict().items()})
        return next(found)

    class Cut(Callback):
        def on_epoch_start(self, state):
            if state.epoch == 12:  # after the first trial of three
                raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "_tried", tried)
    kept = Training(run=str(tmp_path / "run"), checkpoint_every=11)
    agent = DQN(epochs=20, steps=4, updates=1, hidden=(4,), trials=2, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        agent.set_params(training=replace(kept, callbacks=[Cut()])).fit(CartPole())
    assert len(seen) == 1
    agent.set_params(training=kept).fit(CartPole())
    assert len(seen) == 3
    assert_close(agent.module_.state_dict(), seen[0])


class Ends(CartPole):
    """A world that is over after so many steps, instead of being cut."""

    def step(self, action):
        seen, reward, ended, cut, more = super().step(action)
        return seen, reward, ended or cut, False, more


@pytest.mark.parametrize("world", [CartPole(steps=5), Ends(steps=5)], ids=["cut", "ended"])
def test_a_remembered_step_has_the_rewards_of_some_and_where_they_lead(world):
    loss = QLoss(0.5)
    memory = Memory(
        Crew(world, 1, 0), Experience(4, 4, world), 0, steps=1, size=9, explore=1.0, ramp=0.5,
        trials=0, ahead=3, loss=loss,
    )  # fmt: skip
    memory.collect(OnlineAndTarget(4, 2, hidden=(2,)), np.random.default_rng(0), 0.0)
    assert memory.done == 1  # nothing can be learnt before the third step
    memory.steps = 2
    memory.collect(OnlineAndTarget(4, 2, hidden=(2,)), np.random.default_rng(1), 0.0)
    kept = {name: values[: memory.done] for name, values in memory.kept.items()}
    np.testing.assert_allclose(kept["reward"], [1.75, 1.75, 1.75, 1.5, 1.0])
    over = isinstance(world, Ends)
    np.testing.assert_allclose(
        kept["goes_on"], [0.25, 0.25, *([0, 0, 0] if over else [0.25, 0.5, 1.0])]
    )
    np.testing.assert_array_equal(kept["after"][0], kept["state"][3])
    np.testing.assert_array_equal(kept["after"][2], kept["after"][4])


def test_a_trial_is_the_mean_of_first_episodes():
    world = CartPole(steps=7)  # no pole falls as soon as that
    agent = DQN(epochs=2, steps=4, updates=1, hidden=(4,), trials=3, random_state=0).fit(world)
    assert agent.history_[-1]["trial"] == 7
