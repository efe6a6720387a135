"""OpenAI's API over our language models, and texts and arrays over ``/predict``."""

import base64
import json

import numpy as np
import pytest
from tests.export.test_model_graph import GOLDEN, golden
from tests.serve.running import running

from castalia.serve.served_model import ServedModel

NAMES = ("GPTLanguageModel", "BERT", "TransformerClassifier", "MLPRegressor")


@pytest.fixture(scope="module")
def ask():
    served = {name: ServedModel(name, GOLDEN / name / "model") for name in NAMES}
    with running(served) as found:
        yield found


def test_a_completion_is_what_generate_adds(ask):
    model, texts = golden("GPTLanguageModel")
    prompt = texts[0].split()[0]
    body = {"model": "GPTLanguageModel", "prompt": prompt, "max_tokens": 5, "temperature": 0}
    status, found = ask("POST", "/v1/completions", body)
    assert status == 200, found
    wanted = model.generate(prompt, 5, temperature=0)
    assert prompt + found["choices"][0]["text"] == wanted
    assert found["usage"]["completion_tokens"] <= 5
    assert ask("GET", "/v1/models")[1]["data"][0]["id"] == "GPTLanguageModel"


def test_a_stream_says_the_same_in_pieces(ask):
    body = {"model": "GPTLanguageModel", "prompt": "the", "max_tokens": 20, "temperature": 0}
    whole = ask("POST", "/v1/completions", body)[1]["choices"][0]
    _, text = ask("POST", "/v1/completions", body | {"stream": True}, raw=True)
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert "".join(choice["text"] for choice in choices) == whole["text"]
    assert choices[-1]["finish_reason"] == whole["finish_reason"]


def test_a_setting_out_of_range_is_refused(ask):
    for wrong in ({"max_tokens": 0}, {"temperature": "hot"}, {"prompt": 3}, {"n": True}):
        body = {"model": "GPTLanguageModel", "prompt": "a"} | wrong
        status, found = ask("POST", "/v1/completions", body)
        assert status == 422
        assert next(iter(wrong)) in found["error"]["message"]  # where OpenAI's clients look
    assert ask("POST", "/v1/completions", {"model": "MLPRegressor", "prompt": "a"})[0] == 404


def test_embeddings_are_what_transform_gives(ask):
    model, texts = golden("BERT")
    status, found = ask("POST", "/v1/embeddings", {"model": "BERT", "input": texts[:2]})
    assert status == 200, found
    wanted = np.asarray(model.transform(texts[:2]), np.float32)
    np.testing.assert_allclose([each["embedding"] for each in found["data"]], wanted, rtol=1e-5)
    body = {"model": "BERT", "input": texts[0], "encoding_format": "base64"}
    packed = ask("POST", "/v1/embeddings", body)[1]["data"][0]["embedding"]
    vector = np.frombuffer(base64.b64decode(packed), "<f4")
    np.testing.assert_allclose(vector, wanted[0], rtol=1e-4, atol=1e-6)


def test_texts_and_arrays_are_answered(ask):
    model, texts = golden("TransformerClassifier")
    _, found = ask("POST", "/predict/TransformerClassifier", {"rows": texts})
    assert [row["prediction"] for row in found["predictions"]] == model.predict(texts).tolist()
    model, X = golden("MLPRegressor")
    _, found = ask("POST", "/predict/MLPRegressor", {"rows": X.tolist()})
    np.testing.assert_allclose(
        [row["prediction"] for row in found["predictions"]], model.predict(X), rtol=1e-5
    )
    status, found = ask("POST", "/predict/MLPRegressor", {"rows": [[1, 2, 3]]})
    assert status == 422
    assert "shape (1,)" in found["error"]
