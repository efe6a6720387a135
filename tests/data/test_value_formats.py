"""Ways of writing numbers and dates, asked of one value by Python and of columns by Arrow."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from castalia.data.tables.type_inference import Guess
from castalia.data.tables.value_formats import FORMATS

VALUES = [
    *("", " ", "1", "-1", "+1.5", ".5", "1.", "1e3", "nan", "1,234", "1,23", "1.234,5", "1 234,5"),
    *("$1,234", " $ 5 ", "(5)", "($1,234.50)", "EUR 3", "3 €", "12%", " 12 % ", "12,5 %", "% 12"),
    *("31/12/2020", "12/31/2020", "1.2.2020", "2020/1/2", "2020-01", "5-Jan-2020", "Jan 5, 2020"),
    *("January 2020", "31/12/20 23:59", "31/12/2020 23:59:59", "12:30", "word", "1/2/3/4"),
    *("\u00a012%\u2003", "12%\n", "\n12%", "12%\n13%", "\u0661\u0662%", "\u0661/\u0662/2020", "x1"),
]


@pytest.mark.parametrize("value", VALUES)
def test_python_and_arrow_agree_on_what_a_format_admits(value):
    text = pc.utf8_trim_whitespace(pa.array([value]))
    for kind in FORMATS:
        matched = pc.match_substring_regex(text, kind.pattern)[0].as_py()
        assert kind.admits(value) == matched, kind.name


@pytest.mark.parametrize(
    "column, name",
    [
        (["12 %", None, " 7%"], "percentages"),
        ([None, "31/12/2020", "1/2/2020"], "dates written %d/%m/%Y"),
        (["1,5", "2"], "decimal comma"),
        (["$1,234", "5"], "currency"),
        (["12 %", "word"], ""),
        (["31/12/2020", "2020-12-31"], ""),
    ],
)
def test_the_first_value_alone_decides_nothing_that_others_would_not(column, name):
    guess = Guess()
    guess.add(pa.array(column, pa.string()))
    assert name in guess.format_note
    assert bool(guess.format_note) == bool(name)
