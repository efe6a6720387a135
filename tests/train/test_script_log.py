"""``castalia.log`` in scripts of their own, and trackers beside our loop."""

import json
import subprocess
import sys
from copy import deepcopy

import numpy as np
import pytest
import torch
from tests.processes import ENVIRONMENT

import castalia
from castalia.errors import InvalidParameter
from castalia.train import RunStore, TrackerCallback
from castalia.train.script_log import open_log

LOOP = """
import castalia
for i in range(4):
    castalia.log({"val/loss": 1.0 / (i + 1)}, loss=2.0 - i, epoch=i // 2, settings={"lr": 0.5})
"""


def script(folder, text, **environment):
    (folder / "mine.py").write_text(text)
    words = [sys.executable, "mine.py", "--fast"]
    return subprocess.run(
        words, cwd=folder, env=ENVIRONMENT | environment, capture_output=True, text=True
    )


@pytest.fixture
def log(tmp_path):
    castalia.log(run=tmp_path / "runs" / "one")
    yield open_log()
    open_log().close()


def test_a_script_of_two_lines_leaves_a_finished_run(tmp_path):
    done = script(tmp_path, LOOP)
    assert done.returncode == 0, done.stderr
    with RunStore(tmp_path / "castalia-runs") as store:
        (run,) = store.runs()
        assert (run["name"], run["status"], run["config"]["lr"]) == ("mine", "finished", 0.5)
        assert run["config"]["command"].endswith("mine.py --fast")
        opened = store.open_run(run["name"], run["fingerprint"], {})
        assert opened.metric("loss") == ([0, 1, 2, 3], [2.0, 1.0, 0.0, -1.0])
        assert opened.metric("val/loss")[1][-1] == 0.25
        assert store.select("SELECT DISTINCT epoch FROM metrics ORDER BY 1") == [(0,), (1,)]


@pytest.mark.parametrize(
    "end, status", [("1 / 0", "failed"), ("raise KeyboardInterrupt", "interrupted")]
)
def test_how_a_script_ends_is_how_its_run_ends(tmp_path, end, status):
    assert script(tmp_path, LOOP + end).returncode != 0
    with RunStore(tmp_path / "castalia-runs") as store:
        assert store.runs()[0]["status"] == status


def test_only_the_first_of_several_processes_writes(tmp_path):
    assert script(tmp_path, LOOP, RANK="1").returncode == 0
    assert not (tmp_path / "castalia-runs").exists()


def test_numbers_of_a_step_come_together_and_steps_go_on_from_the_last(log):
    castalia.log(loss=torch.tensor(0.5), step=7)
    castalia.log(accuracy=np.float32(0.25), step=7)
    castalia.log(loss=1)
    assert log.run.metric("loss") == ([7, 8], [0.5, 1.0])
    assert log.run.metric("accuracy") == ([7], [0.25])


def test_a_running_loop_is_there_for_others_to_read(log):
    castalia.log(loss=0.5)
    with RunStore(log.store.root) as other:
        assert other.runs()[0]["status"] == "running"
        assert other.select("SELECT count(*) FROM metrics")[0][0] > 0


def test_another_folder_begins_another_run_and_the_same_name_gets_a_number(log, tmp_path):
    castalia.log(loss=1.0, run=tmp_path / "runs" / "two")
    castalia.log(loss=1.0, run=tmp_path / "runs" / "one")
    with RunStore(tmp_path / "runs") as store:
        names = {run["name"]: run["status"] for run in store.runs()}
    assert names == {"one": "finished", "two": "finished", "one-2": "running"}


def test_what_is_no_number_is_named_and_nothing_of_the_call_is_kept(log):
    with pytest.raises(InvalidParameter, match="`loss` must be one number; got list"):
        castalia.log(step=3, other=1.0, loss=[1.0, 2.0])
    with pytest.raises(InvalidParameter, match="got Tensor"):
        castalia.log(loss=torch.zeros(2))
    assert log.run.metric("other") == ([], [])


class Writer:
    def __init__(self):
        self.seen = []

    def add_scalar(self, *words):
        self.seen.append(words)

    def add_text(self, *words):
        raise AssertionError

    def __deepcopy__(self, memo):
        raise TypeError("a writer has threads")


def test_a_tracker_gets_every_epoch_and_clones_send_to_the_same(tmp_path):
    callback = TrackerCallback(Writer())
    training = castalia.Training(callbacks=[callback], patience=None, validation=0)
    est = castalia.MLPRegressor(hidden=(2,), epochs=3, batch_size=2, training=training)
    deepcopy(est).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    losses = [words for words in callback.tracker.seen if words[0] == "loss"]
    assert [step for _, _, step in losses] == [2, 4, 6]
    assert all(isinstance(value, float) for _, value, _ in losses)
    with pytest.raises(InvalidParameter, match="TrackerCallback: the tracker must be"):
        TrackerCallback(json)


def test_a_first_call_that_is_refused_leaves_no_run(tmp_path):
    with pytest.raises(InvalidParameter, match="got str"):
        castalia.log(loss="high", run=tmp_path / "runs" / "one")
    assert not (tmp_path / "runs").exists()
