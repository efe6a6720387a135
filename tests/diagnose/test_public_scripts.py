"""The list of public scripts, and its runner on a script written here."""

import json
from pathlib import Path

import pytest
from evidence.scripts import Job, Runner, chosen
from evidence.scripts_faults import FAULTS
from evidence.scripts_list import HALVES, SOURCE_FAULTS, Script, prepare, scripts
from evidence.scripts_packages import PACKAGES
from evidence.scripts_records import judged, record_name, unpack
from evidence.scripts_report import _planted, is_first, is_same
from tests.processes import run_code

from castalia.diagnose import NAMES

ROOT = Path(__file__).parents[2]
WITHOUT = ("scan", "plain")
SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(EPOCHS):
    model.train()
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "clones" / "somebody" / "something"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    edits = (("EPOCHS", "12"),)
    script = Script("own", "somebody/something", "", "train.py", "tune", "tables", "", edits=edits)
    return script, tmp_path / "clones", tmp_path / "out"


def test_the_list_covers_the_kinds_and_names_what_exists():
    found = scripts()
    kinds = {one.kind for one in found}
    wanted = {"vision", "text", "audio", "graphs", "GAN", "VAE", "RL"}
    assert len(found) >= 60
    assert wanted | {"HF Trainer", "Lightning", "accelerate", "timm"} <= kinds
    for one in found:
        assert one.half in HALVES, one.name
        assert len(one.commit) == 40, one.name
        assert set(one.fine) <= set(NAMES), one.name
        assert set(one.faults) <= set(FAULTS), one.name
        ours = {name for name in one.stand_ins if not name.startswith("mock:")}
        assert ours <= set(PACKAGES), one.name


def test_faults_name_codes_that_exist():
    assert len(FAULTS) >= 20
    assert set(SOURCE_FAULTS) <= set(FAULTS)
    assert all(set(one.right) <= set(NAMES) for one in FAULTS.values())


def test_an_edit_that_finds_nothing_is_an_error(own):
    script, clones, out = own
    changed = Script(**{**vars(script), "edits": (("nowhere", "x"),)})
    with pytest.raises(ValueError, match="train.py must hold 'nowhere'"):
        prepare(changed, clones, out)


def test_a_fault_of_the_source_is_an_edit(own):
    script, clones, out = own
    assert "zero_grad" not in prepare(script, clones, out, "no_zero_grad").read_text()


def test_faults_are_spread_evenly_over_what_they_fit():
    found = [one for one in scripts() if one.half == "tune"][:6]
    scan = {"code": 0, "traits": ["optimizer", "layers", "decay"]}
    results = {one.name: {"scan": scan} for one in found}
    (asked,) = chosen(found, results, ["frozen", "dropout"])  # the second does not fit
    assert [job.what for job in asked] == ["frozen"] * 6
    jobs, others = chosen(found, results, rounds=2)
    counts = {job.what: sum(other.what == job.what for other in jobs) for job in jobs}
    assert len(jobs) == 18
    assert max(counts.values()) - min(counts.values()) <= 1
    pairs = {(job.script.name, job.what) for job in (*jobs, *others)}
    assert len(pairs) == len(jobs) + len(others) > 18


def test_times_are_not_compared_and_other_words_are():
    runs = {what: {"code": 0, "weights": "w", "out": "loss 0.5 (0.1s)"} for what in WITHOUT}
    assert is_same({**runs, "doctor": {**runs["plain"], "out": "loss 0.5 (0.2s)"}})
    assert not is_same({**runs, "doctor": {**runs["plain"], "out": "loss 0.6 (0.1s)"}})
    assert not is_same({**runs, "doctor": {**runs["plain"], "weights": "v"}})


ORDER = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from evidence.scripts_start import Run
child = os.fork()
if child == 0:
    sys.exit(Run(json.loads(sys.argv[2])).run())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Forked(Runner):
    """Lets the tests' own warm process run the orders."""

    def _ordered(self, order):
        return {"code": self.fork(json.dumps(order)).returncode}


def test_the_runner_compares_and_plants(own, zygote, tmp_path):
    script, clones, out = own
    runner = Forked(Path(clones), Path(out), 100)
    runner.fork = lambda *words: run_code(zygote, tmp_path, ORDER, ROOT, *words)
    runner.all([Job(script, what) for what in ("scan", "doctor", "other_parameters")])
    runner.close()
    runs = runner.results["own"]
    runs["plain"] = runs["scan"]
    assert runs["plain"]["code"] == 0, runs["plain"]["error"]
    assert {"loader", "optimizer", "layers", "ReLU", "cross_entropy of rows"} <= {
        *runs["scan"]["traits"]
    }
    assert is_same(runs)
    assert not [one for one in runs["doctor"]["findings"] if one["severity"] == "error"]
    assert is_first(script, "other_parameters", runner.results)
    kept = runner.records / record_name("own", "other_parameters")
    assert judged(kept).codes == tuple(runs["other_parameters"]["codes"])
    kept.unlink()
    unpack(runner.records)  # from the archive
    assert judged(kept).codes == tuple(runs["other_parameters"]["codes"])
    runs["doctor"]["out"] += "something else"
    assert not is_same(runs)


def test_a_fault_is_harmless_where_as_much_is_learnt():
    fine = {"code": 0, "weights": "w", "losses": [3.0, *[0.01] * 9]}

    def planted(last, name="zero_weights", as_it_is="u"):
        faulty = {"code": 0, "weights": "v", "losses": [3.0, *[last] * 9], "findings": []}
        runs = {"scan": fine, "doctor": {"weights": as_it_is}, name: faulty}
        return _planted(Script("own", "", "", "", "tune", "", ""), runs)

    assert planted(0.02) == []  # twice the loss, of which all but nothing is gone
    assert planted(0.5) == ["zero_weights"]
    assert planted(0.5, as_it_is="v") == []  # draws other numbers in the scan
    assert planted(0.0, "in_order") == ["in_order"]  # whose loss is of other batches
