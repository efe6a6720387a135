"""Remedies as a diff: the patched script is what a person would write."""

from dataclasses import replace
from textwrap import dedent

import pytest

from castalia.diagnose import Diagnosis, Remedy, finding
from castalia.diagnose.finding_record import SourceLine
from castalia.diagnose.script.source_patch import proposed_diff

SCRIPT = dedent("""\
    model = nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=1))
    opt = torch.optim.SGD(model.parameters(), lr=3.0)
    loader = DataLoader(rows, batch_size=32)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
    """)


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """Return the lines that a diff takes away and those it adds, for one finding."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(code, line, remedy="Remove it.", summary="A softmax too many."):
        found = finding(code, "error", 0.95, summary, remedy)
        found = replace(found, source=SourceLine("train.py", line))
        diff = proposed_diff(Diagnosis((found,))).splitlines()
        return [x[1:] for x in diff[2:] if x[0] == "-"], [x[1:] for x in diff[2:] if x[0] == "+"]

    return run


def test_a_rate_under_a_name_that_is_set_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source, edited in (
        ("lr = 3.0\nopt = SGD(p, lr=lr)\n", "+lr = 0.05"),
        ("opt, q = 1, 2\nopt = SGD(p, 3.0)\n", "+opt = SGD(p, 0.05)"),
        ("lr = 3.0\nlr = lr / 2; opt = SGD(p, lr=lr)\n", ""),
        ("def f(lr):\n    opt = SGD(p, lr=lr)\n", ""),
    ):
        (tmp_path / "train.py").write_text(source)
        remedy = Remedy("lr=3.0 → 0.05", {"lr": 0.05})
        found = finding("CST101", "error", 0.95, "It grows.", remedy)
        found = replace(found, source=SourceLine("train.py", 2))
        diff = proposed_diff(Diagnosis((found,))).splitlines()
        assert [line for line in diff[3:] if line[0] == "+"] == ([edited] if edited else [])


def test_a_rate(changed):
    removed, added = changed("CST101", 2, Remedy("lr=3.0 → 0.05", {"lr": 0.05}))
    assert removed == [SCRIPT.splitlines()[1]]
    assert added == ["opt = torch.optim.SGD(model.parameters(), lr=0.05)"]


def test_a_rate_without_a_number_is_no_diff(changed):
    assert changed("CST101", 2, "Lower the rate three to ten times.") == ([], [])


def test_a_reset_by_the_optimizer_that_steps(changed):
    assert changed("CST112", 6) == ([], ["    opt.zero_grad()"])


def test_a_softmax_too_many(changed):
    _, added = changed("CST301", 1)
    assert added == ["model = nn.Sequential(nn.Linear(4, 2), nn.Identity())"]


def test_a_missing_squeeze(changed):
    _, added = changed("CST304", 5)
    assert added == ["    loss = criterion(model(x).squeeze(-1), y)"]


def test_a_loader_that_does_not_shuffle(changed):
    _, added = changed("CST209", 3)
    assert added == ["loader = DataLoader(rows, batch_size=32, shuffle=True)"]


def test_what_is_not_on_that_line_is_left_alone(changed):
    assert changed("CST209", 5) == ([], [])
    assert changed("CST401", 5) == ([], [])
