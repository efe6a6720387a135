"""The README's Python runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they write runs and models
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) == 5
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["doctor"].diagnosis().codes[0] == "CST301"
    names["doctor"].close()
    assert names["search"].best_score_ > 0.9
    new = (names["digits"].images[1400:], names["digits"].target[1400:])
    assert names["pictures"].score(*new) > 0.95
    assert (tmp_path / "digits-model" / "model.json").is_file()
    assert (tmp_path / "gradient.svg").is_file()
