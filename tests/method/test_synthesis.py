"""``castalia fit --generate`` and ``castalia sample``: drawn, judged, written and refused."""

import json
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

import castalia
from castalia.cli import app
from castalia.data import read
from castalia.errors import InvalidParameter
from castalia.evaluate import sample_fidelity
from castalia.method.synthesis.sample_files import write_samples

RANDOM = np.random.default_rng(0)
QUICK = ("--set", "epochs=2", "--set", "hidden=16", "--set", "sample_steps=3", "-q")


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table with columns of every kind, a folder of images, and a run of each."""
    place = tmp_path_factory.mktemp("synthesis")
    rng = np.random.default_rng(0)
    lines = ["id,size,count,colour,day,unit"]
    for i in range(120):
        colour = "=red" if i % 3 else "blue"
        gap = "" if i % 10 == 0 else f"{rng.normal():.2f}"
        lines.append(f"k{i:04d},{gap},{i % 7},{colour},2024-01-{1 + i % 28:02d},cm")
    (place / "rows.csv").write_text("\n".join(lines) + "\n")
    for kind, shade in (("dark", 40), ("light", 200)):
        (place / "shades" / kind).mkdir(parents=True)
        for i in range(12):
            pixels = np.clip(rng.normal(shade, 20, (8, 8)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(place / "shades" / kind / f"{i}.png")
    done = call("fit", place / "rows.csv", "--generate", "--run", place / "table", *QUICK)
    assert done.exit_code == 0, done.output
    (place / "said.txt").write_text(done.output)
    images = ("--set", "epochs=1", "--set", "width=2", "--set", "conditional=true", "-q")
    done = call("fit", place / "shades", "--generate", "--run", place / "images", *images)
    assert done.exit_code == 0, done.output
    castalia.save(castalia.MLPClassifier(hidden=(4,)), place / "mlp")
    return place


def test_a_fit_draws_rows_of_the_same_columns_and_reports_on_them(place):
    said, drawn = (place / "said.txt").read_text(), read(place / "table" / "samples.csv")
    assert len(drawn) == 120
    assert drawn.columns == ["size", "count", "colour", "day"]
    assert "Not drawn: id" in said
    assert "unit" in said
    kinds = {column.name: column.kind for column in drawn.schema}
    assert (kinds["count"], kinds["day"]) == ("numeric", "date")
    size = [v for v in drawn.column("size") if v == v]
    assert all(v == round(v, 2) for v in size)  # as many decimals as the table has
    page = (place / "table" / "report.html").read_text()
    assert "Fidelity and privacy" in page
    assert "Columns drawn each by itself" in page
    found = json.loads((place / "table" / "result.json").read_text())["summary"]
    assert set(found["fidelity"]) == {"drawn", "real", "shuffled"}
    assert set(found["marginals"]) >= {"size", "size is missing", "count", "colour", "day"}


def test_a_finished_run_is_not_trained_again(place):
    again = call("fit", place / "rows.csv", "--generate", "--run", place / "table", *QUICK)
    assert "This run is finished" in again.output


def test_every_format_holds_the_same_rows_and_a_seed_repeats_them(place, tmp_path):
    for ending in ("csv", "parquet", "jsonl"):
        done = call(
            "sample", place / "table", "-n", 300, "--seed", 3, "-o", tmp_path / f"x.{ending}"
        )
        assert done.exit_code == 0, done.output
    table = pq.read_table(tmp_path / "x.parquet")
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [row["count"] for row in lines] == table["count"].to_pylist()
    text = (tmp_path / "x.csv").read_text().splitlines()
    assert len(text) == 301
    assert any("'=red" in line for line in text)  # a spreadsheet runs none of it
    few = call("sample", place / "table", "-n", 5, "--seed", 3)
    assert few.stdout.splitlines() == text[:6]
    other = call("sample", place / "table", "-n", 5, "--seed", 4)
    assert other.stdout != few.stdout


def test_images_are_drawn_into_a_grid_or_an_array(place, tmp_path):
    with Image.open(place / "images" / "samples.png") as grid:
        assert min(grid.size) > 300
    done = call("sample", place / "images", "-n", 6, "-o", tmp_path / "x.npz", "--label", "dark")
    assert done.exit_code == 0, done.output
    assert np.load(tmp_path / "x.npz")["images"].shape == (6, 8, 8)
    page = (place / "images" / "report.html").read_text()
    assert "Nearest in training" in page
    assert "network or --model vae" not in page  # which drew them


class Endless:
    """A model of many rows; it sees how many of its blocks are alive."""

    conditional, adapter_ = False, type("", (), {"shape": (2,)})
    blocks, most = 1000, 0

    def sample_blocks(self, n, y=None, *, random_state=None):
        alive = []
        for _ in range(self.blocks):
            block = pa.table({"a": np.zeros(1000), "b": ["x"] * 1000})
            alive = [seen for seen in alive if seen() is not None] + [weakref.ref(block)]
            self.most = max(self.most, len(alive))
            yield block


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_million_rows_are_written_block_by_block(tmp_path, ending):
    model = Endless()
    model.blocks = 1000 if ending == "csv" else 50
    write_samples(model, 1, tmp_path / f"x.{ending}")
    assert model.most <= 3
    if ending == "csv":
        assert (tmp_path / "x.csv").read_bytes().count(b"\n") == 1_000_001


def test_a_draw_that_fails_leaves_no_file(tmp_path):
    class Failing(Endless):
        def sample_blocks(self, *args, **kwargs):
            yield from list(super().sample_blocks(*args, **kwargs))[:2]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_samples(Failing(), 1, tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


def test_copies_are_found_and_natural_ones_are_not_blamed():
    X = RANDOM.normal(size=(200, 3))
    copied = sample_fidelity(X[:150], np.repeat(X[:50], 2, axis=0), X[150:])
    assert copied.copied
    assert "training rows seem to be copied" in copied.lines()[-1]
    assert not sample_fidelity(X[:150], RANDOM.normal(size=(100, 3)), X[150:]).copied
    few = RANDOM.integers(0, 3, size=(600, 2)).astype(float)  # nine different rows
    found = sample_fidelity(few[:300], few[300:450], few[450:])
    assert found.scores["copies"] == found.scores["real_copies"] == 1.0
    assert not found.copied


def test_pixels_that_hardly_vary_do_not_decide_how_far_images_are():
    images = RANDOM.integers(0, 256, (90, 3, 3)).astype(np.uint8)
    images[:, 0] = 0
    images[0, 0, 0] = 1  # of a rare speck
    drawn = images[30:60].copy()
    drawn[:, 0, 0] = 4
    found = sample_fidelity(images[:30], drawn, images[60:]).scores
    assert found["nearest"] == pytest.approx(1, abs=0.2)
    assert np.isfinite(list(found.values())).all()


def test_distances_of_categories_are_shares(tmp_path):
    real, drawn = (pa.table({"a": ["x"] * n + ["y"] * (100 - n)}) for n in (80, 50))
    assert sample_fidelity(real, drawn).marginals == {"a": pytest.approx(0.3)}


WRONG = [
    (("fit", "{0}/rows.csv", "--generate", "--target", "count"), "`target` must be left out with"),
    (("fit", "{0}/rows.csv", "--generate", "--model", "mlp"), "`model` must draw rows or images"),
    (("fit", "{0}/rows.csv", "--generate", "--set", "hiden=3"), "Did you mean `hidden`"),
    (("fit", "{0}/rows.csv", "--generate", "--set", "conditional=true"), "images in folders of"),
    (("fit", "{0}/few.csv", "--generate"), "must have 10 rows at least"),
    (("sample", "{0}/table", "-n", "0"), "`n` must be a whole number from 1; got 0"),
    (("sample", "{0}/table", "-o", "{0}/x.png"), "must end in `.csv`, `.parquet` or `.jsonl` for"),
    (("sample", "{0}/images"), "images need --out, a file in `.png` or `.npz`"),
    (("sample", "{0}/images", "-o", "{0}/x.png", "--label", "red"), "got 'red'"),
    (("sample", "{0}/table", "--label", "red"), "`y` must be None without conditional=True"),
    (("sample", "{0}/mlp"), "must hold a model that draws rows or images"),
    (("sample", "{0}/nothing"), "nothing"),
    (("predict", "{0}/table", "{0}/rows.csv"), "draws rows and predicts none"),
    (("cure", "{0}/table"), "must be a fit that predicts"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_a_mistake_gets_one_sentence(place, words, said):
    (place / "few.csv").write_text("a,b\n1.5,2\n2.5,7\n")
    done = call(*(word.format(place) for word in words))
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert "bug" not in done.output
    assert not (place / "x.png").exists()


def test_a_table_of_one_value_a_column_is_refused(place):
    (place / "flat.csv").write_text("a,b\n" + "1,x\n" * 20)
    done = call("fit", place / "flat.csv", "--generate")
    assert done.exit_code == 2
    assert "must have a column to learn from" in done.output


def test_a_grid_that_is_too_large_is_refused_before_anything_is_drawn(tmp_path):
    model = Endless()
    model.adapter_ = type("", (), {"shape": (1, 2, 2)})
    with pytest.raises(InvalidParameter, match="10,000 images at most; got 10,001"):
        write_samples(model, 10_001, tmp_path / "x.png")
    assert model.most == 0
