"""A training killed at random instants ends with the weights of one that was left alone."""

import json
from pathlib import Path

import pytest
from tests.processes import ALONE, run_code

from castalia.train import RunStore

SCRIPT = Path(__file__).with_name("lives.py")
KILLS = {1: 10, 2: 5}  # by number of processes; `make torture` has many more


@pytest.fixture(scope="module", params=[1, 2], ids=["single", "ddp"])
def lives(request, zygote, tmp_path_factory):
    """Run the script once and return its folder, its report and the number of processes."""
    folder = tmp_path_factory.mktemp("lives")
    done = run_code(zygote, folder, ALONE, SCRIPT, folder, request.param, KILLS[request.param])
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
