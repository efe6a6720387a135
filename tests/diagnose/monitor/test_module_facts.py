"""What modules say of themselves."""

import pytest
from torch import nn

from castalia.diagnose.monitor.module_facts import has_dropout


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.GRU(3, 4), False),
        (nn.GRU(3, 4, num_layers=2, dropout=0.2), True),
        (nn.MultiheadAttention(4, 2), False),
        (nn.MultiheadAttention(4, 2, dropout=0.1), True),
        (nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5)), True),
    ],
    ids=["gru", "gru with dropout", "attention", "attention with dropout", "dropout"],
)
def test_only_modules_that_drop_numbers_have_dropout(module, expected):
    assert has_dropout(module) is expected
