"""Images, texts and series in the page of a run: answers equal those of the model in Python."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

import castalia
from castalia.data.images import as_images
from castalia.errors import InvalidData
from castalia.method.images.fit_images import read_unlabelled
from castalia.studio.image_form import ImageForm
from castalia.studio.run_index import RunRow
from castalia.studio.run_marks import Marks
from castalia.studio.try_form import form_of
from castalia.studio.uploaded_file import uploaded
from castalia.testing.toys.toy_images import scenes, shapes, stripes
from castalia.testing.toys.toy_texts import chain, opinions


@pytest.fixture
def row(tmp_path):
    return RunRow(1, "r", "finished", 0.0, 0.0, {}, tmp_path, Marks())


def png(array):
    out = io.BytesIO()
    Image.fromarray(array).save(out, "png")
    return base64.b64encode(out.getvalue()).decode()


def opened(uri):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_a_image_gets_its_classes_and_what_speaks_for_them(row):
    X, y = stripes(40)
    X = np.clip(80 * X + 128, 0, 255).astype(np.uint8)
    model = castalia.ConvNetClassifier(widths=(4,), convs=1, epochs=1, random_state=0).fit(X, y)
    form = form_of(row, model)
    found = form.answer({"file": png(X[0])})
    chances = dict(zip(map(str, model.classes_), model.predict_proba(X[:1])[0], strict=True))
    assert dict(found["classes"]) == pytest.approx(chances, abs=1e-6)
    assert found["prediction"] == max(chances, key=chances.get)
    assert form.takes == "image"
    heat, wanted = (
        opened(found["layer"])[..., 3],
        castalia.evaluate.GradCAM.from_estimator(model, X[:1]),
    )
    np.testing.assert_allclose(heat / 255, wanted.maps[0] / wanted.maps.max(), atol=0.003)


def test_masks_lie_over_the_image_in_the_colours_of_the_legend(row):
    X, masks = shapes(8)
    model = castalia.UNetSegmenter(widths=(4, 8), epochs=1, lr=0.02, random_state=0).fit(X, masks)
    found = form_of(row, model).answer({"file": png(X[0])})
    mask, layer = model.predict(as_images(X[:1]))[0], opened(found["layer"])
    assert layer.shape == (*mask.shape, 4)
    for each in found["legend"]:
        colour = [int(each["colour"][i : i + 2], 16) for i in (1, 3, 5)]
        there = (layer[..., :3] == colour).all(axis=2)
        np.testing.assert_array_equal(there, mask == int(each["name"]))
        assert each["share"] == pytest.approx(there.mean())
    assert opened(found["image"]).shape[:2] == mask.shape


def test_boxes_are_shares_of_the_image(row, tmp_path):
    X, y = scenes(4)
    model = castalia.YOLODetector(strides=(8,), width=4, image_size=32, epochs=1, threshold=0)
    model.fit(X, y)
    image = np.pad(X[0], ((0, 32), (0, 0), (0, 0)))  # not square
    found = form_of(row, model).answer({"file": png(image)})
    Image.fromarray(image).save(tmp_path / "scene.png")
    wanted = model.predict(read_unlabelled([tmp_path / "scene.png"])[0])[0]
    corners = np.array([each["corners"] for each in found["boxes"]])
    np.testing.assert_allclose(corners * [32, 64, 32, 64], wanted.corners, atol=1e-4)
    assert [each["name"] for each in found["boxes"]] == [str(name) for name in wanted.labels]


@pytest.mark.parametrize("output", ["mean", "quantile"])
def test_steps_are_forecast_as_python_does_with_their_interval(row, output):
    steps = np.sin(np.arange(120) / 3)[:, None]
    model = castalia.WindowRegressor(context=8, horizon=3, hidden=(4,), epochs=1, random_state=0)
    model.set_params(output=output).fit(steps)
    form = form_of(row, model)
    typed = "\n".join(str(step) for step in steps[:40, 0])
    found = form.answer({"steps": typed})
    np.testing.assert_allclose(found["forecast"]["prediction"], model.predict(steps[:40])[:, 0])
    low, _ = model.predict_interval(steps[:40], 0.9)
    np.testing.assert_allclose(found["forecast"]["low"], low[:, 0])
    assert (len(found["past"]), form.schema()["least"]) == (40, 8)
    with pytest.raises(InvalidData, match="one a line"):
        form.answer({"steps": "1 two"})
    with pytest.raises(InvalidData, match="8 steps at least"):
        form.answer({"steps": "1 2"})


def test_a_text_gets_its_class_and_a_prompt_its_tokens(row):
    X, y = opinions(40)
    model = castalia.FastTextClassifier(epochs=1, random_state=0).fit(X, y)
    found = form_of(row, model).answer({"text": X[0]})
    assert dict(found["classes"]) == pytest.approx(
        dict(zip(map(str, model.classes_), model.predict_proba(X[:1])[0], strict=True)), abs=1e-6
    )
    language = castalia.RNNLanguageModel(
        hidden=8, context=8, tokenizer="characters", epochs=1, random_state=0
    ).fit(chain(30)[0])
    found = form_of(row, language).answer({"prompt": "a", "seed": 0})
    begin = list(language.tokenizer_.encode("a"))
    ids = language.generate(begin, 200, temperature=0.8, random_state=0)
    logs = language.token_log_probabilities([np.array(ids)])[0]
    chances = [chance for _, chance in found["tokens"]]
    np.testing.assert_allclose(chances, np.exp(logs[len(begin) : len(ids)]), rtol=1e-5)
    text = found["prompt"] + "".join(piece for piece, _ in found["tokens"])
    assert text == language.tokenizer_.decode([int(token) for token in ids])


def test_what_is_no_image_is_refused_and_leaves_nothing(row, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    form = ImageForm(row, castalia.ConvNetClassifier())
    script = base64.b64encode(b"import os; os.abort()").decode()
    for sent in ("", "???", script):
        with pytest.raises(InvalidData):
            form.answer({"file": sent})
    monkeypatch.setattr("castalia.studio.uploaded_file.MOST_UPLOADED", 3)
    with pytest.raises(InvalidData, match="1 to 3 bytes"), uploaded({"file": script}, ".png"):
        pass
    assert list(tmp_path.iterdir()) == []
