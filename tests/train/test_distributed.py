"""Two processes take the step of one on the whole batch."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.processes import ALONE, run_code

from castalia import MLPRegressor, Training
from castalia.errors import InvalidParameter

SCRIPT = Path(__file__).with_name("together.py")
CASES = ["plain", "weights", "accumulation", "clipping", "values", "plateau", "decay"]
CASES += ["validation", "resumed"]


@pytest.fixture(scope="module")
def results(zygote, tmp_path_factory):
    """Run every case alone and in two processes; return both records and the single one."""
    folder = tmp_path_factory.mktemp("together")
    done = run_code(zygote, folder, ALONE, SCRIPT, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    names = ("alone", 0, 1, "masks-0", "masks-1")
    return [json.loads((folder / f"{name}.json").read_text()) for name in names]


def flat(record):
    parts = [*record["weights"].values(), record["losses"], record["predictions"]]
    return np.concatenate([np.ravel(np.array(part, dtype=float)) for part in parts])


@pytest.mark.parametrize("case", [*CASES, "average"])
def test_ddp_on_two_equals_one_process_on_the_whole_batch(results, case):
    alone, first = results[:2]
    np.testing.assert_allclose(flat(first[f"ddp {case}"]), flat(alone[case]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_fsdp_on_two_equals_one_process_on_the_whole_batch(results, case):
    alone, first = results[:2]
    np.testing.assert_allclose(flat(first[f"fsdp {case}"]), flat(alone[case]), rtol=0, atol=1e-10)


def test_both_processes_end_with_the_same_bits(results):
    first, second = results[1:3]
    assert first == second


def test_without_a_seed_the_processes_agree_on_one(results):
    first, second = results[1:3]
    assert first["unseeded"]["seed"] == second["unseeded"]["seed"]


def test_each_process_draws_its_own_dropout(results):
    assert results[3] != results[4]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_strategy_of_several_processes_asks_for_torchrun(strategy):
    with pytest.raises(InvalidParameter, match="needs several processes; start .* torchrun"):
        MLPRegressor(training=Training(strategy=strategy)).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"strategy": "fsdp", "average": "ema"}, "`average='ema'` is not available with .*fsdp"),
        ({"strategy": "ddp", "optimizer": "lbfgs"}, "'lbfgs' runs in one process only"),
    ],
)
def test_settings_that_several_processes_cannot_have_are_named(monkeypatch, settings, message):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidParameter, match=message):
        MLPRegressor(training=Training(**settings)).fit([[0.0], [1.0]], [0, 1])
