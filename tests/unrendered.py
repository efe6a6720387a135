"""Figures of reports that no test looks at: made, but not rendered.

Matplotlib takes half the time of a short fit to write them; ``tests/method/test_report.py`` and
the tests of the displays have them rendered.
"""

from unittest.mock import patch

import pytest

from castalia.evaluate.displays import svg

EMPTY = '<svg width="1pt" height="1pt" viewBox="0 0 1 1"></svg>'


@pytest.fixture(scope="module", autouse=True)
def _unrendered():
    with patch.object(svg, "_draw", lambda figure: EMPTY):
        yield
