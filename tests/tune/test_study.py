"""The record of a search: who runs which trial, and what a dead worker leaves."""

import os
import sys
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from evidence.torture.search_kills import kill_searches

from castalia import Callback, MLPRegressor, Training
from castalia.errors import InvalidParameter
from castalia.tune import Choice, RandomSearch, Uniform
from castalia.tune.proposals import Proposals
from castalia.tune.study import Study, TakenOver
from castalia.tune.trial_record import COMPLETE, FAIL, Trial
from castalia.tune.trial_table import TrialTable
from castalia.tune.worker_lease import STALE, has_lapsed, worker_name

GRID = {"a": Choice(1, 2, 3), "b": Choice("x", "y")}


def study(path=None, space=GRID, sampler="grid", together=1):
    proposals = Proposals(space, sampler=sampler, seed=0, metric="score", owner="Search")
    table = None if path is None else TrialTable(path, "one", "Search")
    return Study(proposals, table, together)


def end(found, trial, score=0.5):
    trial.folds.append({"score": score})
    found.close(trial, COMPLETE)


@pytest.mark.parametrize("stored", [False, True])
def test_every_point_is_handed_out_once_and_in_the_order_of_the_grid(tmp_path, stored):
    found = study(tmp_path / "s.db" if stored else None)
    taken = [found.take(6) for _ in range(6)]
    assert found.take(6) is None
    points = [tuple(found.settings(trial).values()) for trial in taken]
    assert points == [(1, "x"), (1, "y"), (2, "x"), (2, "y"), (3, "x"), (3, "y")]
    for trial in reversed(taken):
        end(found, trial)
    assert [trial.number for trial in found.ended()] == list(range(6))


def test_two_workers_never_take_the_same_trial(tmp_path):
    first, second = study(tmp_path / "s.db"), study(tmp_path / "s.db")
    numbers = [(first if i % 2 else second).take(6).number for i in range(6)]
    assert sorted(numbers) == list(range(6))
    assert first.take(6) is None
    assert second.take(6) is None


def test_a_trial_is_begun_with_its_settings_in_one_statement(tmp_path):
    """Killed right after, it can be taken over with them; there is no moment without."""
    taken = study(tmp_path / "s.db", {"a": Uniform(0, 1)}, "tpe").take(3)
    (row,) = TrialTable(tmp_path / "s.db", "one", "Search").read()
    assert row == taken
    assert set(row.params) == {"a"}


def leave(path, holder, beat):
    """Leave a trial with one finished fold as a worker did that is no more."""
    table = TrialTable(path, "one", "Search")
    trial = Trial(0, {"a": 0, "b": 0}, [{"score": 0.25}], holder=holder, beat=beat)
    assert table.insert(trial)
    return table


@pytest.mark.parametrize(
    "holder, age, free",
    [
        ("elsewhere:1:5:ab", 0.0, False),
        ("elsewhere:1:5:ab", STALE + 1, True),
        (f"{os.uname().nodename}:{2**22 + 1}:5:ab", 0.0, True),
        (f"{os.uname().nodename}:{os.getpid()}:5:ab", 0.0, sys.platform == "linux"),
        (worker_name(), 0.0, False),
        ("", 0.0, True),
    ],
    ids=["other host", "silent host", "no process", "number given again", "alive", "let go"],
)
def test_a_trial_is_taken_over_when_its_worker_is_gone(tmp_path, holder, age, free):
    leave(tmp_path / "s.db", holder, time.time() - age)
    trial = study(tmp_path / "s.db").take(1)
    assert (trial is not None) == free
    if trial is not None:
        assert trial.folds == [{"score": 0.25}]


def test_a_worker_that_lost_a_trial_writes_no_more_of_it(tmp_path):
    slow = study(tmp_path / "s.db")
    trial = slow.take(1)
    old = replace(trial, beat=trial.beat - 2 * STALE)
    assert slow.table.take_over(trial, slow.worker)  # as if the beat were long ago
    assert has_lapsed(old)
    other = study(tmp_path / "s.db")
    assert other.table.take_over(trial, other.worker)
    mine = replace(trial, holder=slow.worker, folds=[{"score": 0.1}])
    with pytest.raises(TakenOver):
        slow.close(mine, COMPLETE)
    end(other, trial, 0.9)
    slow.refresh()
    assert slow.ended()[0].folds == [{"score": 0.9}]


def test_what_an_error_interrupts_is_free_at_once(tmp_path):
    first = study(tmp_path / "s.db")
    with suppress(KeyboardInterrupt), first.at_work():
        assert first.take(1) is not None
        raise KeyboardInterrupt
    assert study(tmp_path / "s.db").take(1) is not None


def test_the_beat_of_a_worker_is_written_down(tmp_path):
    found = study(tmp_path / "s.db")
    taken = found.take(1)
    found.table.beat(found.worker)
    assert found.table.read()[0].beat > taken.beat


def test_proposals_of_a_round_do_not_depend_on_what_ends_first():
    space, points = {"a": Uniform(0, 1)}, []
    for order in ((0, 1), (1, 0)):
        found = study(None, space, "tpe", together=2)
        for start in range(0, 14, 2):
            taken = [found.take(start + 2), found.take(start + 2)]
            for i in order:
                end(found, taken[i], taken[i].params["a"])
        points.append([t.params["a"] for t in found.ended()])
    assert points[0] == points[1]
    assert len(set(points[0])) == 14


def test_a_failed_trial_keeps_its_reason(tmp_path):
    found = study(tmp_path / "s.db")
    found.close(found.take(1), FAIL, "no such thing")
    (trial,) = study(tmp_path / "s.db").ended()
    assert (trial.state, trial.reason) == (FAIL, "no such thing")


def test_a_folder_is_no_study(tmp_path):
    with pytest.raises(InvalidParameter, match="`study` must be a file; got the folder"):
        TrialTable(tmp_path, "one", "Search")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_searches_that_are_killed_lose_nothing():
    counts = kill_searches(seed=0, kills=7, each=2)
    assert counts["kills"] >= 7
    assert counts["searches"] >= 4  # one of every kind
    assert (counts["lost"], counts["twice"], counts["different"]) == (0, 0, 0)
    assert counts["repeated"] <= counts["kills"]


def test_a_trial_that_was_cut_off_goes_on_from_its_last_checkpoint(tmp_path):
    epochs = []

    class Cut(Callback):
        def on_epoch_start(self, state):
            epochs.append(state.epoch)
            if len(epochs) == 8:
                raise KeyboardInterrupt

    kept = Training(run=tmp_path / "runs/trial", checkpoint_every=1, callbacks=[Cut()], watch=False)
    model = MLPRegressor(hidden=(2,), epochs=5, random_state=0, training=kept)
    rows, study = np.arange(20.0)[:, None], tmp_path / "study.sqlite"
    search = RandomSearch(model, {"lr": [1e-2, 1e-1]}, trials=2, cv=0.25, study=study, refit=False)
    with pytest.raises(KeyboardInterrupt):
        search.fit(rows, rows[:, 0])
    search.fit(rows, rows[:, 0])
    assert epochs == [0, 1, 2, 3, 4, 0, 1, 2, 1, 2, 3, 4]  # the checkpoint is in epoch 1
