"""A training killed at random instants ends with the weights of one that was left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from castalia.train import RunStore

SCRIPT = Path(__file__).with_name("lives.py")
KILLS = {1: 20, 2: 8}  # by number of processes


@pytest.fixture(scope="module", params=[1, 2], ids=["single", "ddp"])
def lives(request, tmp_path_factory):
    """Run the script once and return its folder, its report and the number of processes."""
    folder = tmp_path_factory.mktemp("lives")
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), str(request.param), str(KILLS[request.param])],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1]), request.param


def record(folder, run, rank):
    found = json.loads((folder / f"{run}-{rank}.json").read_text())
    for line in found["history"]:
        del line["seconds"]
    return found


def test_the_kills_happened_inside_epochs_and_inside_checkpoint_writes(lives):
    _, report, processes = lives
    kills, number = report["kills"], KILLS[processes]
    assert [kill["codes"] for kill in kills] == [[-9] * processes] * number
    assert sum(kill["inside"] > 0 for kill in kills) >= number / 2
    assert sum(kill["writing"] for kill in kills) >= number / 8
    assert len({kill["step"] for kill in kills}) >= number / 2
    assert report["last"] == [0] * processes


def test_weights_and_history_equal_those_of_the_uninterrupted_training_bit_for_bit(lives):
    folder, _, processes = lives
    for rank in range(processes):
        assert record(folder, "killed", rank) == record(folder, "whole", rank)


def test_the_stored_curves_have_no_gap_and_no_double(lives):
    folder, _, _ = lives
    with RunStore(folder) as store:
        curves = {
            name: store.open_run(name, run["fingerprint"], {}).metric("loss")
            for name in ("whole", "killed")
            for run in store.runs(name)
        }
        assert {run["status"] for run in store.runs()} == {"finished"}
        assert [run["name"] for run in store.runs()] == ["whole", "killed"]
    assert curves["killed"] == curves["whole"]
