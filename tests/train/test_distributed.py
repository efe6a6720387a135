"""Two processes take the step of one on the whole batch."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from joblib import parallel_config
from tests.processes import ALONE, run_code

from castalia import MLPRegressor, Training
from castalia.errors import InvalidParameter
from castalia.train.strategy import join_processes

SCRIPT = Path(__file__).with_name("together.py")
CASES = ["plain", "weights", "accumulation", "clipping", "values", "plateau", "decay"]
CASES += ["validation", "resumed"]
FAMILIES = ["GPTLanguageModel", "BERTClassifier", "ConvNetClassifier", "ResNetClassifier"]
FAMILIES += ["RNNClassifier", "Autoencoder", "GraphClassifier", "NodeClassifier"]


@pytest.fixture(scope="module")
def results(zygote, tmp_path_factory):
    """Run every case alone and in two processes; return both records and the single one."""
    folder = tmp_path_factory.mktemp("together")
    done = run_code(zygote, folder, ALONE, SCRIPT, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    names = (
        "alone",
        0,
        1,
        "masks-0",
        "masks-1",
        "command-0",
        "command-1",
        "shrunk",
        "shards-0",
        "fields-0",
        "jointly-0",
        "jointly-1",
    )
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


def test_a_training_that_starts_its_processes_ends_as_one_in_one_process(results):
    first, second = results[-2:]
    np.testing.assert_allclose(flat(first), flat(results[0]["plain"]), rtol=0, atol=1e-10)
    assert "WORLD_SIZE" not in second  # the process may be used for other work


def test_more_processes_than_gpus_are_refused(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InvalidParameter, match="there are 3 processes or more, .* sees 2 GPUs"):
        join_processes(torch.device("cuda"))


def test_processes_that_cannot_all_run_at_a_time_are_refused():
    model = MLPRegressor(training=Training(workers=2))
    with parallel_config("sequential"), pytest.raises(InvalidParameter, match="room for 1"):
        model.fit([[0.0], [1.0]], [0, 1])


def test_both_processes_end_with_the_same_bits(results):
    first, second = results[1:3]
    assert first == second


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_trains_in_two_processes_as_in_one(results, name, strategy):
    alone, first = results[:2]
    pair = first[f"{strategy} {name}"]
    if isinstance(pair, str):
        assert name in ("RNNClassifier", "GraphClassifier", "NodeClassifier")
        assert strategy == "fsdp"
        assert pair.startswith("Training: `strategy='fsdp'`")
        assert pair.endswith("Use 'ddp'.")
        return
    np.testing.assert_allclose(pair["weights"], alone[name]["weights"], rtol=0, atol=1e-8)
    assert pair["loss"] == pytest.approx(alone[name]["loss"], abs=1e-9)


def test_a_run_goes_on_in_more_and_in_fewer_processes(results):
    whole = flat(results[0]["weights"])
    grown, (shrunk, warned) = results[1]["grown"], results[7]
    np.testing.assert_allclose(flat(grown), whole, rtol=0, atol=1e-10)
    np.testing.assert_allclose(flat(shrunk), whole, rtol=0, atol=1e-10)
    assert "goes on with another number of processes, 1 instead of 2" in " ".join(warned)
    assert "2 instead of 1" in " ".join(results[5]["warned"])
    assert not results[6]["warned"]  # the first process says it


def test_shards_of_four_processes_go_on_in_two_and_in_three_and_a_damaged_one_is_passed_over(
    results,
):
    whole, (model, again, warned) = flat(results[0]["validation"]), results[8]
    np.testing.assert_allclose(flat(model), whole, rtol=0, atol=1e-10)
    assert flat(again).tolist() == flat(model).tolist()  # of a run that is finished
    assert "step-00000005.safetensors` is damaged; the checkpoint before it is used" in warned[0]
    assert "3 instead of 2" in warned[1]


def test_hybrid_shards_offloaded_weights_and_recomputed_blocks_change_no_weight(results):
    *found, refused = results[9]
    for model in found:
        np.testing.assert_allclose(flat(model), flat(results[0]["decay"]), rtol=0, atol=1e-10)
    assert refused == "Training: `shard=3` must divide the number of processes, 4."


def test_recomputed_blocks_keep_less_and_end_at_the_same_weights():
    X = np.random.default_rng(0).normal(size=(64, 4))
    kept = {}
    for again in (False, True):
        sizes = []
        training = Training(recompute=again, step="auto" if again else "plain", validation=0)
        model = MLPRegressor(hidden=(32, 32), epochs=2, random_state=0, training=training)
        keep = lambda x, sizes=sizes: sizes.append(x.numel()) or x  # noqa: E731
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            model.fit(X, X[:, 0])
        kept[again] = sum(sizes), [p.detach() for p in model.module_.parameters()]
        assert not any("forward" in vars(module) for module in model.module_.modules())
    torch.testing.assert_close(kept[True][1], kept[False][1])
    assert kept[True][0] < kept[False][0]


def test_the_command_line_prints_and_fits_baselines_once_and_divides_files(results):
    first, second = results[5:7]
    assert first["code"] == second["code"] == 0, first["printed"]
    assert "Baselines" in first["printed"]
    assert second["printed"] == ""
    assert (first["baselines"] > 2, second["baselines"]) == (True, 0)
    assert "predictions in answers/0.csv" in first["answered"]
    assert "predictions in answers/2.csv" in first["answered"]
    assert second["answered"].splitlines() == ["16 predictions in answers/1.csv"]


def test_the_process_that_has_a_nan_and_the_slow_one_are_named(results):
    first, second = (found["faults"] for found in results[5:7])
    assert all("process 1 works" in words for words in first[:2])  # fsdp, ddp
    assert first[2:] == second
    assert "process 0 has 48, process 1 47. Read the same files" in second[0]
    assert "those of process 1 are others than those of process 0" in second[1]
    for words in second[2:4]:  # ddp, fsdp
        assert "the loss became nan in process `1` in epoch 1" in words


def test_without_a_seed_the_processes_agree_on_one(results):
    first, second = results[1:3]
    assert first["unseeded"]["seed"] == second["unseeded"]["seed"]


def test_each_process_draws_its_own_dropout(results):
    assert results[3][0] != results[4][0]


def test_gradients_travel_while_others_are_computed(results):
    ((buckets, early),) = results[3][1]
    assert buckets == 4
    assert early == 4 * 12  # steps


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_strategy_of_several_processes_asks_for_torchrun(strategy):
    with pytest.raises(InvalidParameter, match="needs several processes; start .* torchrun"):
        MLPRegressor(training=Training(strategy=strategy)).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"strategy": "fsdp", "average": "ema"}, "`average='ema'` is not available with .*fsdp"),
        ({"strategy": "ddp", "offload": True}, "`offload=True` needs strategy 'fsdp'; got 'ddp'"),
        ({"recompute": True, "optimizer": "newton", "strategy": "single"}, "second derivatives"),
        ({"strategy": "single", "workers": 2}, "`workers=2` needs strategy 'ddp'"),
        ({"strategy": "ddp", "optimizer": "lbfgs"}, "'lbfgs' runs in one process only"),
    ],
)
def test_settings_that_several_processes_cannot_have_are_named(monkeypatch, settings, message):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidParameter, match=message):
        MLPRegressor(training=Training(**settings)).fit([[0.0], [1.0]], [0, 1])
