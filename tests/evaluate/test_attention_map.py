"""Attention weights, heard from networks of several makes."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch import nn
from torch.nn import functional as F

from castalia import MLPClassifier
from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.evaluate import AttentionMap, to_svg
from castalia.evaluate.attention import attention_weights, dot_product_weights
from castalia.testing.toys import moons


class Written(nn.Module):
    """Multi-head self-attention in three ways: torch's kernel, by hand, by hand as a method."""

    def __init__(self, way, heads=2, causal=False):
        super().__init__()
        self.way, self.heads, self.causal = way, heads, causal
        self.project = nn.Linear(8, 24)

    def forward(self, x):  # (B, T, 8)
        q, k, v = self.project(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.way == "kernel":
            return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return (F.softmax(scores, dim=-1) if self.way == "function" else scores.softmax(3)) @ v


def encoder(**own):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **own)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def test_weights_of_multihead_attention_are_its_own():
    torch.manual_seed(0)
    net, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(3, 5, 8)
    (found,) = attention_weights(net, (x, x, x))
    _, expected = net(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(found.weights, expected)
    shown = AttentionMap.from_network(net, (x, x, x), row=1)
    np.testing.assert_allclose(shown.weights, expected[1].detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_encoders_give_every_layer_by_name_and_their_outputs_stay(training):
    net, x = encoder().train(training), torch.randn(2, 6, 8)
    seen = []
    handle = net.register_forward_hook(lambda _, __, out: seen.append(out))
    found = attention_weights(net, x)
    handle.remove()
    assert [one.name for one in found] == ["layers.0.self_attn", "layers.1.self_attn"]
    for one in found:
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(2, 2, 6))
    torch.testing.assert_close(seen[0], net.eval()(x), rtol=1e-4, atol=1e-5)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_masks_are_respected():
    net, x = encoder().eval(), torch.randn(2, 6, 8)

    class Padded(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x, pad):
            return self.net(x, src_key_padding_mask=pad)

    pad = torch.zeros(2, 6, dtype=torch.bool)
    pad[1, 4:] = True
    shown = AttentionMap.from_network(Padded(), (x, pad), "net.layers.1.self_attn", row=1)
    assert not shown.weights[:, :, 4:].any()
    np.testing.assert_allclose(shown.weights.sum(axis=2), 1.0, rtol=1e-5)


@pytest.mark.parametrize("way", ["kernel", "function", "method"])
def test_attention_in_other_words_is_heard_too(way):
    torch.manual_seed(0)
    net, twin, x = Written(way), Written("function"), torch.randn(1, 5, 8)
    twin.load_state_dict(net.state_dict())
    found, expected = attention_weights(net, x), attention_weights(twin, x)
    assert len(found) == 1
    torch.testing.assert_close(found[0].weights, expected[0].weights)


def test_the_weights_make_the_output_of_the_kernel():
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 5, 3), torch.randn(2, 2, 6, 3), torch.randn(2, 2, 6, 3)
    mask = torch.rand(5, 6) > 0.3
    mask[:, 0] = True
    for own in ({"attn_mask": mask}, {"attn_mask": torch.randn(5, 6)}, {"is_causal": True}):
        weights = dot_product_weights(q, k, v, scale=0.7, enable_gqa=True, **own)
        expected = F.scaled_dot_product_attention(q, k, v, scale=0.7, enable_gqa=True, **own)
        torch.testing.assert_close(weights @ v.repeat_interleave(2, 1), expected)
    causal = AttentionMap.from_network(Written("kernel", causal=True), torch.randn(1, 5, 8))
    assert not np.triu(causal.weights, 1).any()


def test_a_planted_coreference_is_found():
    """Head 1 asks every word for what it refers to: "it" shares a feature with "robot" alone."""
    words = ["a", "robot", "must", "obey", "the", "orders", "given", "it"]
    x = torch.zeros(1, 8, 8)
    x[0, :, 0] = 1  # nothing to tell the words apart, for head 0
    x[0, words.index("robot"), 4] = x[0, words.index("it"), 5] = 1
    net = nn.MultiheadAttention(8, 2, bias=False, batch_first=True)
    with torch.no_grad():
        net.in_proj_weight.zero_()
        net.in_proj_weight[0, 0] = net.in_proj_weight[8, 0] = 1  # head 0: all alike
        net.in_proj_weight[4, 5] = net.in_proj_weight[12, 4] = 4  # head 1: 5 asks for 4
    shown = AttentionMap.from_network(net, (x, x, x), tokens=words)
    np.testing.assert_allclose(shown.weights.sum(axis=2), 1.0, rtol=1e-6)
    nowhere, found = shown.of("it")
    np.testing.assert_allclose(nowhere, 1 / 8, rtol=1e-6)
    assert words[found.argmax()] == "robot"
    assert found.max() > 0.9
    assert shown.entropy[1, words.index("it")] < 0.1 < shown.entropy[1, 0]
    assert shown.entropy[0] == pytest.approx(np.log(8))


def test_training_on_references_is_seen_in_the_map():
    """A pronoun must answer with the noun of its sentence, wherever that stands."""
    torch.manual_seed(0)
    rows, length, nouns = 256, 7, 6

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(nouns + 6, 16)
            self.attend = nn.MultiheadAttention(16, 1, batch_first=True)
            self.answer = nn.Linear(16, nouns)

        def forward(self, words):
            h = self.embed(words)
            return self.answer(self.attend(h, h, h, need_weights=False)[0][:, -1])

    source = torch.Generator().manual_seed(1)
    words = torch.randint(nouns, nouns + 5, (rows, length), generator=source)
    place = torch.randint(0, length - 1, (rows,), generator=source)
    noun = torch.randint(0, nouns, (rows,), generator=source)
    words[torch.arange(rows), place] = noun
    words[:, -1] = nouns + 5  # "it"
    net = Reader()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(120):
        optimizer.zero_grad()
        F.cross_entropy(net(words), noun).backward()
        optimizer.step()
    looked = [AttentionMap.from_network(net, words[:40], row=i).of(length - 1) for i in range(40)]
    found = np.array([weights[0].argmax() for weights in looked])
    assert (found == place[:40].numpy()).mean() > 0.95


@pytest.mark.parametrize("heads", [1, 3, 5])
def test_it_is_drawn_head_by_head_or_as_their_mean_on_given_axes(heads):
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(heads, 6))
    shown = AttentionMap.from_weights(weights, keys=list("abcd")).plot()
    assert len(shown.axes_) == heads
    assert "<svg" in to_svg(shown.figure_)
    mine = Figure().add_subplot()
    assert shown.plot(ax=mine).ax_ is mine
    drawn = np.asarray(mine.collections[0].get_array()).reshape(6, 4)
    np.testing.assert_allclose(drawn, weights.mean(axis=0))
    assert len(shown.plot(head=heads - 1).axes_) == 1


def test_errors_name_the_values():
    with pytest.raises(ShapeMismatch, match=r"`tokens` must have one word for each of 2.*got 3"):
        AttentionMap.from_weights(np.eye(2), ["a", "b", "c"])
    with pytest.raises(ShapeMismatch, match=r"got \(2,\)"):
        AttentionMap.from_weights(np.ones(2))
    shown = AttentionMap.from_weights(np.eye(2), ["a", "a"])
    with pytest.raises(InvalidParameter, match="a word that occurs once; got 'a'"):
        shown.of("a")
    with pytest.raises(InvalidParameter, match="number of heads, 1; got 1"):
        shown.plot(head=1)
    net, x = encoder().eval(), torch.randn(2, 3, 8)
    with pytest.raises(InvalidParameter, match="number of attentions, 2; got 2"):
        AttentionMap.from_network(net, x, 2)
    with pytest.raises(InvalidParameter, match="Did you mean `layers.0.self_attn`"):
        AttentionMap.from_network(net, x, "layers.0.self_atn")
    with pytest.raises(InvalidParameter, match="one of the 2 rows; got 2"):
        AttentionMap.from_network(net, x, row=2)
    X, y = moons(60)
    model = MLPClassifier(hidden=(5,), epochs=1, random_state=0).fit(X, y)
    with pytest.raises(InvalidParameter, match="MLP called none that is known"):
        AttentionMap.from_estimator(model, X)
