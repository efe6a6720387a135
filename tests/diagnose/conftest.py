"""Whatever a test here lets the package find must read well."""

import sys

import pytest
from tests.diagnose.wording import defects

from castalia.diagnose.finding_record import Finding


@pytest.fixture(autouse=True)
def findings_read_well(monkeypatch):
    """Hold the words of every finding that the package makes against ``defects``."""
    made, plain = [], Finding.__init__

    def kept(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        by, of = sys._getframe(1).f_code.co_name, sys._getframe(2).f_globals["__name__"]
        if by == "finding" and of.startswith("castalia."):  # not one that a test made up
            made.append(self)

    monkeypatch.setattr(Finding, "__init__", kept)
    yield
    wrong = [f"{one.code} {words}" for one in made for words in defects(one)]
    assert wrong == []
