import pytest
from tests.diagnose.script.fakes import FakeDoctor

from castalia.diagnose.script import Session


@pytest.fixture
def doctors(monkeypatch):
    """The fake doctors made in this test."""
    monkeypatch.setattr(FakeDoctor, "made", [])
    monkeypatch.setattr("castalia.diagnose.script.script_session.watch", FakeDoctor)
    return FakeDoctor.made


@pytest.fixture
def session(doctors):
    session = Session()
    session.start()
    yield session
    session.stop()
    assert session._notes == []
