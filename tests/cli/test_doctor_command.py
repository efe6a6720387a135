"""``castalia doctor``: anybody's script, unchanged, with the exit code it has without us."""

import json
import random
import re
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from tests.processes import ENVIRONMENT

from castalia.train.runs import RunStore

SOURCE = Path(__file__).parents[2] / "src"

TRAINING = """
import sys
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.body(x)

def train(net, steps=5):
    X, y = torch.randn(40, 4), torch.arange(40) % 2
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(X), y)
        loss.backward()
        optimizer.step()
    return net

torch.manual_seed(0)
"""
NOTHING = "castalia doctor: no training was seen in this process"


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def doctor(zygote, tmp_path):
    """Write a script and run it under the doctor; options come as words, arguments after them."""
    logs = tmp_path / "logs"
    logs.mkdir()
    folder = tmp_path / "work"
    folder.mkdir()

    def run(script, *words, args=(), name="train.py"):
        if script is not None:
            (folder / name).write_text(dedent(script))
        order = ["doctor", *words, name, *args]
        out, err = logs / "out", logs / "err"
        code = zygote(order, folder, out, err)
        return Done(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))

    run.folder = folder
    return run


def found(folder):
    return json.loads((folder / "diagnosis.json").read_text(encoding="utf-8"))


# ---- a script that trains ----


def test_a_script_is_run_diagnosed_and_its_diagnosis_is_written(doctor):
    done = doctor(TRAINING + "train(Net()); print('trained')")
    assert done.code == 0, done.err
    assert done.out.startswith("trained\n\nDiagnosis of train.py")
    assert done.err == ""
    assert found(doctor.folder)["subject"] == "train.py"
    assert "train.py" in (doctor.folder / "diagnosis.html").read_text(encoding="utf-8")
    assert sorted(p.name for p in doctor.folder.iterdir() if p.name != "__pycache__") == [
        "diagnosis.html",
        "diagnosis.json",
        "train.py",
    ]


def test_files_go_where_they_are_wanted_even_if_the_script_goes_elsewhere(doctor):
    script = TRAINING + "train(Net())\nimport os; os.chdir('/')"
    assert doctor(script, "--out", "a/b").code == 0
    assert found(doctor.folder / "a" / "b")["subject"] == "train.py"


def test_quiet_prints_nothing_and_no_files_writes_nothing(doctor):
    done = doctor(TRAINING + "train(Net())", "--quiet", "--no-files")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert [p.name for p in doctor.folder.iterdir()] == ["train.py"]


def test_a_module_can_be_run(doctor):
    package = doctor.folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text(TRAINING)
    (package / "fit.py").write_text("from package.model import *\ntrain(Net())\nprint(sys.argv)")
    done = doctor(None, "--no-files", "-m", args=["-m", "--out", "x"], name="package.fit")
    assert done.code == 0, done.err
    assert done.out.startswith(f"['{package / 'fit.py'}', '-m', '--out', 'x']\n")
    assert "Diagnosis of package.fit" in done.out


def test_a_pair_of_networks_is_diagnosed_together(doctor):
    script = """
    class Critic(Net): pass
    nets = Net(), Critic()
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    for i in range(4):
        for net, optimizer in zip(nets, optimizers):
            net(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    """
    done = doctor(TRAINING + dedent(script))
    assert done.code == 0, done.err
    assert done.out.count("Diagnosis of") == 1


def test_the_model_can_be_copied_pickled_and_saved_while_it_is_watched(doctor):
    script = """
    import copy, io, pickle
    net = Net()
    train(net)
    twin = copy.deepcopy(net)
    X = torch.randn(3, 4)
    assert torch.equal(twin(X), net(X))
    assert torch.equal(pickle.loads(pickle.dumps(net))(X), net(X))
    file = io.BytesIO()
    torch.save(net, file)
    assert len(file.getvalue()) < 20_000
    train(net)
    """
    assert doctor(TRAINING + dedent(script)).err == ""


# ---- how it ends ----


def test_a_crash_shows_the_script_s_traceback_alone_and_exits_with_1(doctor):
    script = TRAINING + dedent("""
    net = Net()
    train(net)
    def check(y):
        try:
            F.cross_entropy(net(torch.randn(3, 4)), y)
        except IndexError as error:
            raise RuntimeError('no') from error
    check(torch.tensor([0, 1, 2]))
    """)
    done = doctor(script)
    assert done.code == 1
    assert "Diagnosis of train.py" in done.out
    assert done.err.startswith("Traceback (most recent call last):\n")
    assert done.err.endswith("RuntimeError: no\n")
    assert str(SOURCE) not in done.err
    files = [line.split('"')[1] for line in done.err.splitlines() if line.startswith("  File")]
    assert [Path(file).name for file in files] == [
        "train.py",
        "functional.py",
        "train.py",
        "train.py",
    ]
    assert "cross_entropy` raised IndexError" in str(found(doctor.folder)["notes"])


def test_a_crash_on_another_machine_s_device_passes_through_and_nothing_was_watched(doctor):
    done = doctor("import torch\ntorch.zeros(1, device='no such device')")
    assert done.code == 1
    assert "RuntimeError" in done.err
    assert str(SOURCE) not in done.err
    assert done.out.startswith(NOTHING)
    assert found(doctor.folder)["notes"][0].startswith("No training was seen")


@pytest.mark.parametrize("code, expected", [("", 0), ("7", 7), ("None", 0), ("'bye'", 1)])
def test_sys_exit_gives_its_code_after_the_diagnosis(doctor, code, expected):
    done = doctor(TRAINING + f"train(Net())\nsys.exit({code})")
    assert done.code == expected
    assert done.err == ("bye\n" if expected == 1 else "")
    assert "Diagnosis of train.py" in done.out


def test_an_interrupt_brings_the_diagnosis_and_exit_code_130(doctor):
    script = TRAINING + "import os, signal\ntrain(Net())\nos.kill(os.getpid(), signal.SIGINT)"
    done = doctor(script + "\nwhile True: pass")
    assert done.code == 130
    assert "Diagnosis of train.py" in done.out
    assert done.err == ""


def test_a_script_that_handles_its_interrupt_ends_as_it_likes(doctor):
    script = TRAINING + "import os, signal\n"
    script += "try:\n    train(Net())\n    os.kill(os.getpid(), signal.SIGINT)\n    input()\n"
    script += "except KeyboardInterrupt:\n    sys.exit(3)"
    assert doctor(script).code == 3


def test_a_syntax_error_looks_as_ever(doctor):
    done = doctor("x = = 1")
    plain = subprocess.run(
        [sys.executable, "train.py"], cwd=doctor.folder, capture_output=True, text=True, check=False
    )
    assert (done.code, done.err) == (plain.returncode, plain.stderr)


def test_the_script_s_own_excepthook_is_called(doctor):
    script = "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0"
    done = doctor(script, "--no-files")
    assert done.code == 1
    assert done.out.startswith("hook ZeroDivisionError\n")


def test_a_failing_diagnosis_leaves_the_exit_code_alone(doctor):
    script = TRAINING + dedent("""
    import castalia.diagnose.script.script_session as ours
    def fail(*args): raise RuntimeError("oh")
    ours.Session.diagnosis = fail
    train(Net())
    sys.exit(4)
    """)
    done = doctor(script)
    assert done.code == 4
    assert done.err == "castalia doctor: the diagnosis failed (RuntimeError: oh).\n"


def test_a_closed_output_is_no_error(doctor):
    done = doctor(TRAINING + "train(Net())\nsys.stdout.close()")
    assert done.code == 0
    assert found(doctor.folder)["subject"] == "train.py"


# ---- processes ----


def test_workers_of_a_loader_and_forks_run_unwatched_and_silent(doctor):
    script = TRAINING + dedent("""
    import os
    from torch.utils.data import DataLoader, TensorDataset
    def wrapped(rows):
        return F.cross_entropy.__name__, hasattr(F.cross_entropy, "__wrapped__")
    if __name__ == "__main__":
        train(Net())
        loader = DataLoader(range(4), num_workers=2, collate_fn=wrapped,
                            multiprocessing_context="fork")
        print(set(loader), wrapped([]), flush=True)
        child = os.fork()
        if child == 0:
            train(Net())
            sys.exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    done = doctor(script)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[:2] == ["{('cross_entropy', False)} ('cross_entropy', True)", "5"]
    assert done.out.count("Diagnosis") == 1


@pytest.mark.slow
def test_a_script_that_spawns_its_training_says_that_nothing_was_watched_here(doctor):
    script = TRAINING + dedent("""
    import torch.multiprocessing as mp
    def work(rank):
        train(Net())
        print("worker", rank, "castalia" in sys.modules, flush=True)
    if __name__ == "__main__":
        mp.spawn(work, nprocs=1)
    """)
    done = doctor(script)
    assert done.code == 0, done.err
    first, second = done.out.splitlines()
    assert first == "worker 0 False"
    assert second.startswith(NOTHING)


def test_only_the_first_of_several_ranks_speaks(doctor):
    script = "import os\nos.environ['RANK'] = '1'\n" + TRAINING + "train(Net())"
    done = doctor(script)
    assert (done.code, done.out) == (0, "")
    assert not (doctor.folder / "diagnosis.json").exists()


# ---- scripts that are none ----


def test_a_script_without_training_gets_one_line(doctor):
    done = doctor("print('hello')\nraise SystemExit(6)")
    assert done.code == 6
    first, second = done.out.splitlines()
    assert first == "hello"
    assert second.startswith(NOTHING)


@pytest.mark.parametrize(
    "words, name, said",
    [
        ([], "trian.py", "the script must be a file; got 'trian.py'. Did you mean `train.py`?"),
        (["-m"], "no.such", "`-m` must be followed by a module; got 'no.such'."),
        ([], ".", "a folder must hold `__main__.py` to be run; got '.'."),
        (["--mute", "207"], "train.py", "`--mute` must be a code such as CST207; got 207."),
        (["--out", "train.py"], "train.py", "`--out` must be a folder; got 'train.py', a file."),
    ],
)
def test_what_cannot_be_run_is_said_in_one_sentence(doctor, words, name, said):
    (doctor.folder / "train.py").write_text("print('run')")
    done = doctor(None, *words, name=name)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"castalia: doctor: {said}\n"


# ---- as python would, in a fresh process ----


def fresh(folder, *words):
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


WORLD = """
import os, random, sys
names = ("__name__", "__file__", "__package__", "__doc__", "__cached__")
print({name: globals()[name] for name in names}, __spec__ and (__spec__.name, __spec__.origin))
print(sys.argv, sys.path[:2], __loader__.__class__, sys.modules["__main__"].__dict__ is globals())
print(sorted(k for k in os.environ if k not in ("_", "LINES", "COLUMNS")))
random.seed(0)
import helper
print(random.random(), "torch" in sys.modules, helper.__file__, __builtins__.__name__)
1 / 0
"""


TARGETS = (["./train.py"], ["-m", "train"], ["-m", "package"], ["package"])


@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
def test_a_script_sees_the_same_world_as_without_us(tmp_path, target):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for path in (tmp_path / "train.py", package / "__main__.py"):
        path.write_text(WORLD)
    for path in (tmp_path / "helper.py", package / "helper.py"):
        path.write_text("")
    plain = fresh(tmp_path, *target, "a", "--help")
    watched = fresh(tmp_path, "-m", "castalia.doctor", "--no-files", "-q", *target, "a", "--help")
    assert plain[0] == 1
    assert watched[:2] == plain[:2]
    assert own_frames(watched[2]) == own_frames(plain[2])


def own_frames(trace):
    """Leave out the frames with which `python -m` itself begins."""
    return [line for line in trace.splitlines() if "<frozen runpy>" not in line]


def test_a_fresh_training_is_bit_equal_though_names_and_settings_are_the_script_s_own(
    tmp_path, capsys
):
    start = "import os, random\nos.environ['OMP_NUM_THREADS'] = '2'\nrandom.seed(1)\n"
    world = "import sklearn\nprint(sklearn.mine, torch.get_num_threads(), random.random())\n"
    weights = "print([p.sum().item().hex() for p in train(Net()).parameters()], torch.rand(1))"
    (tmp_path / "train.py").write_text(start + TRAINING + world + weights)
    (tmp_path / "sklearn.py").write_text("mine = True")
    watched = fresh(tmp_path, "-m", "castalia.doctor", "--quiet", "--no-files", "train.py")
    with torch.random.fork_rng():  # the plain training, in this process
        exec(TRAINING + weights, {"__name__": "plain"})
    plain = f"True 2 {random.Random(1).random()}\n{capsys.readouterr().out}"
    assert watched == (0, plain, "")


# ---- for CI, and while it runs ----

FAULTY = TRAINING.replace("        optimizer.zero_grad()\n", "")


def test_fail_on_gives_exit_code_3_and_files_for_ci(doctor):
    done = doctor(
        FAULTY + "train(Net(), 30)",
        *("--no-files", "--fail-on", "error", "--patch"),
        *("--junit", "ci/doctor.xml", "--sarif", "ci/doctor.sarif"),
    )
    assert done.code == 3
    line = next(i for i, text in enumerate(FAULTY.splitlines(), 1) if "backward" in text)
    assert f"train.py:{line}  loss.backward()" in done.out
    assert "+        optimizer.zero_grad()" in done.out
    assert f'line="{line}"' in (doctor.folder / "ci" / "doctor.xml").read_text()
    log = json.loads((doctor.folder / "ci" / "doctor.sarif").read_text())
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"]["startLine"] == line
    assert place["artifactLocation"]["uri"] == "train.py"


def test_fail_on_is_silent_about_a_healthy_training_and_keeps_the_script_s_own_code(doctor):
    mild = "train(Net(), 3)\nsys.exit(7)"
    assert doctor(TRAINING + mild, "--no-files", "--fail-on", "error").code == 7
    assert doctor(TRAINING + "train(Net(), 3)", "--no-files", "--fail-on", "error").code == 0


def test_a_severity_is_checked_before_the_script_runs(doctor):
    done = doctor("print('ran')", "--fail-on", "everything")
    assert done.code == 2
    assert "`--fail-on` must be 'error' or 'warning'; got 'everything'" in done.err
    assert "ran" not in done.out


def test_a_certain_error_is_printed_while_the_script_runs_and_may_end_it(doctor):
    overflow = TRAINING.replace("lr=0.1", "lr=1e38") + "train(Net(), 400)\nprint('the end')"
    done = doctor(overflow, "--no-files")
    assert done.code == 0
    assert "castalia doctor: CST105 non-finite" in done.err
    assert "the end" in done.out
    stopped = doctor(overflow, "--no-files", "--stop-on", "error")
    assert stopped.code == 3
    assert "the end" not in stopped.out
    assert "CST105" in stopped.out  # the diagnosis still comes


# ---- a page while it runs ----


def test_a_live_script_that_fails_is_a_failed_run_with_its_own_numbers_and_the_doctors(doctor):
    text = "import castalia\n" + TRAINING + "train(Net(), 40)\ncastalia.log(mine=3.0)\n1 / 0"
    done = doctor(text, args=["--live"])  # as people write it; before the script, it is the same
    assert done.code == 1, done.err
    address = re.search(r"http://127.0.0.1:\d+/run\?run=train&token=\S+", done.err)
    assert address, done.err
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address[0])
    with RunStore(doctor.folder / "castalia-runs") as store:
        (run,) = store.runs()
        opened = store.open_run("train", run["fingerprint"], {})
        assert run["status"] == "failed"
        assert opened.metric("mine") == ([0], [3.0])
        assert opened.metric("batch_loss")[0] == list(range(40))
        layers = {"gradient_norm/body.0", "update_over_weight/body.2", "active_share/body.0"}
        assert layers <= set(opened.keys())
    kept = json.loads((opened.folder / "diagnosis.json").read_text(encoding="utf-8"))
    assert kept["findings"] == found(doctor.folder)["findings"]
    assert (opened.folder / "report.html").is_file()


def test_an_option_of_the_script_that_is_called_live_is_its_own_where_the_doctors_is_given(doctor):
    script = "import sys\nprint(sys.argv[1:])"
    assert "['--live']" in doctor(script, "--no-live", args=["--live"]).out
    assert "['--live', '3']" in doctor(script, args=["--live", "3"]).out
