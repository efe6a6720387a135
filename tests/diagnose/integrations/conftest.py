import pytest
from tests.diagnose.script.fakes import FakeDoctor


@pytest.fixture
def doctors(monkeypatch):
    """The fake doctors made in this test."""
    monkeypatch.setattr(FakeDoctor, "made", [])
    monkeypatch.setattr("castalia.diagnose.integrations.guarded_doctor.watch", FakeDoctor)
    return FakeDoctor.made


@pytest.fixture
def said(caplog):
    """The levels at which the doctor has spoken so far."""
    caplog.set_level("INFO", logger="castalia.diagnose")
    return lambda: [r.levelname for r in caplog.records if r.name == "castalia.diagnose"]
