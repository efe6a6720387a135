"""Captions of images: exact on what was never seen, and looking at what they name."""

from functools import cache

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.testing import assert_close

from castalia import load, save
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.vision import ConvNetClassifier, ImageCaptioner
from castalia.testing.toys.toy_images import paint_pairs

X, y, _ = paint_pairs(500)
NEW, TRUE, WHERE = paint_pairs(200, seed=1)
TINY = {"convs": 1, "dim": 16, "hidden": 32, "batch_size": 20, "random_state": 0}


@cache
def fitted(attention):
    if attention:
        kind = {"widths": (12, 16, 24), "epochs": 12, "lr": 1e-2}
        return ImageCaptioner(**{**TINY, **kind}).fit(X[:300], y[:300])
    kind = {"widths": (12, 16), "epochs": 12, "lr": 5e-3, "hidden": 64, "attention": False}
    return ImageCaptioner(**{**TINY, **kind}).fit(X, y)


@pytest.mark.parametrize("attention", [True, False])
def test_nearly_every_new_picture_gets_its_very_caption(attention):
    model = fitted(attention)
    told = model.predict(NEW)
    assert (told == TRUE).mean() > 0.95
    assert model.score(NEW, TRUE) > 95


def test_a_word_looks_at_the_thing_it_names():
    on_it, alike = [], []
    for (words, weights), caption, things in zip(
        fitted(True).attention_maps(NEW), TRUE, WHERE, strict=True
    ):
        assert np.allclose(weights.sum(axis=(1, 2)), 1)
        if words != [*caption.split(), "</s>"]:
            continue
        cells = things.reshape(2, 4, 4, 4, 4).any(axis=(2, 4))  # 4 x 4 cells of 4 x 4 pixels
        for place, thing in ((1, 0), (2, 0), (-3, 1), (-2, 1)):  # colours and shapes
            on_it.append(weights[place][cells[thing]].sum())
            alike.append(cells[thing].mean())
    assert len(on_it) > 700
    assert np.mean(on_it) > 2 * np.mean(alike)


def test_a_wider_search_finds_captions_at_least_as_probable():
    greedy = fitted(True)
    wide = clone(greedy).set_params(beams=3)
    vars(wide).update({k: v for k, v in vars(greedy).items() if k.endswith("_")})
    one, other = (log_probabilities(greedy, model.predict(NEW[:40])) for model in (greedy, wide))
    assert (other >= one - 1e-4).all()


def log_probabilities(model, captions):
    ids = model.codec.encode(model, np.array(captions, dtype=object)).y
    blocks = model.adapter_.blocks(model.adapter_.check(NEW[:40], ""), "float32")
    x = torch.cat(list(blocks))
    start = torch.full((len(ids), 1), model.tokenizer_.id_of("begin"))
    with torch.no_grad():
        logs = model.module_(x, torch.cat([start, ids[:, :-1]], dim=1)).log_softmax(dim=-1)
    of_words = logs.gather(2, ids[..., None])[..., 0]
    return torch.where(ids == model._padding, 0, of_words).sum(dim=1)


def short(**settings):
    return ImageCaptioner(**{**TINY, "widths": (6, 8), "epochs": 1, **settings})


def test_convolutions_of_a_classifier_are_taken_over_and_kept(tmp_path):
    colour = np.array([caption.split()[1] for caption in y])
    seer = ConvNetClassifier(widths=(6, 8), convs=1, epochs=1, random_state=0)
    seer.fit(X[:60], colour[:60])
    learnt = seer.module_.features.state_dict()
    model = clone(short(start=seer, train_body=False)).fit(X[:60], y[:60])
    for name, value in model.module_.features.state_dict().items():
        assert_close(value, learnt[name], rtol=0, atol=0)
    moved = short(start=seer).fit(X[:60], y[:60]).module_.features.state_dict()
    assert not torch.equal(moved["stage1.0.weight"], learnt["stage1.0.weight"])
    again = load(save(model, tmp_path / "model"))
    assert again.predict(NEW[:5]).tolist() == model.predict(NEW[:5]).tolist()


def test_what_cannot_be_used_is_named():
    with pytest.raises(InvalidData, match="caption 2 is empty"):
        short().fit(X[:4], ["a", "b", " ", "c"])
    with pytest.raises(InvalidData, match="ImageCaptioner: X and y must have the same number"):
        short().fit(X[:4], ["a", "b"])
    with pytest.raises(InvalidParameter, match="`start` must be a fitted ConvNetClassifier"):
        short(start=ConvNetClassifier()).fit(X[:4], y[:4])
    other = ConvNetClassifier(widths=(6, 4), convs=1, epochs=1, random_state=0)
    other.fit(X[:20], np.arange(20) % 2)
    with pytest.raises(InvalidParameter, match=r"must have the convolutions .* widths=\(6, 8\)"):
        short(start=other).fit(X[:20], y[:20])
    with pytest.raises(InvalidParameter, match="`attention` must be True for attention maps"):
        fitted(False).attention_maps(NEW[:2])
