"""Texts come out as the rules say, with and without a cache, alone and in batches."""

import gc
import itertools
import weakref

import pytest
import torch
from tests.nets.language import peers
from tests.nets.language.peers import lively
from torch import nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from castalia.errors import InvalidData, InvalidParameter
from castalia.nets.language import (
    BART,
    GPT,
    T5,
    Llama,
    Picker,
    Transformer,
    beam_search,
    generate,
    load_pretrained,
)
from castalia.nets.language.decoding.decode_loop import Loop
from castalia.nets.language.decoding.prompt_tensors import Reader, as_prompt
from castalia.nets.language.decoding.token_picker import nucleus, top
from castalia.nn.attention import causal, local, prefix

SMALL = {"dim": 16, "depth": 2, "heads": 4, "hidden": 24}
ONE_PART = {
    "gpt": lambda: GPT(30, context=32, **SMALL),
    "rotary": lambda: GPT(30, context=32, rotary=True, **SMALL),
    "llama": lambda: Llama(30, context=32, kv_heads=2, **SMALL),
    "window": lambda: Llama(30, context=32, kv_heads=1, window=4, unwindowed=1, **SMALL),
}
TWO_PARTS = {
    "t5": lambda: T5(30, head_dim=6, **SMALL),
    "bart": lambda: BART(30, context=32, **SMALL),
    "marian": lambda: BART(30, context=32, sinusoidal=True, embedding_norm=False, **SMALL),
    "transformer": lambda: Transformer(30, **SMALL),
    "pre-norm": lambda: Transformer(30, pre_norm=True, **SMALL),
}
PROMPTS = [[5, 9, 2, 11, 7], [8, 3], [1, 2, 3]]


def network(name):
    net = {**ONE_PART, **TWO_PARTS}[name]()
    return lively(net), {"start": 4} if name in TWO_PARTS else {}


class Table(nn.Module):
    """A language model of fixed logits after each token: (V, V)."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(torch.as_tensor(logits))
        self.inner = GPT(len(logits), context=64, dim=4, depth=1, heads=1)

    def features(self, ids, *, keep=None, cache=None):
        self.inner.features(ids, keep=keep, cache=cache)
        return self.logits[ids]

    def head(self, h):
        return h

    def cache(self, batch, length, *, keep=None):
        return self.inner.cache(batch, length, keep=keep)


def constant(*logits):
    return Table([list(logits)] * len(logits))


# ---- the cache ----


@pytest.mark.parametrize("name", [*ONE_PART, *TWO_PARTS])
def test_the_cache_changes_no_token(name):
    net, settings = network(name)
    ids = torch.tensor([[5, 9, 2, 11], [8, 3, 7, 7]])
    whole = generate(net, ids, tokens=12, cached=False, **settings)
    assert generate(net, ids, tokens=12, **settings).equal(whole)


@pytest.mark.parametrize("name", ONE_PART)
def test_logits_with_a_cache_equal_those_computed_at_once(name):
    net, _ = network(name)
    ids = torch.randint(30, (2, 9), generator=torch.Generator().manual_seed(0))
    cache = net.cache(2, 16)
    pieces = [net(ids[:, a:b], cache=cache) for a, b in [(0, 4), (4, 5), (5, 8), (8, 9)]]
    assert_close(torch.cat(pieces, dim=1), net(ids), atol=1e-5, rtol=1e-5)


def test_a_prefix_read_in_both_directions_can_be_cached():
    net, _ = network("gpt")
    ids = torch.randint(30, (2, 9), generator=torch.Generator().manual_seed(0))
    for mask in (prefix(4), causal() & local(3)):
        cache = net.cache(2, 16)
        pieces = [net(ids[:, a:b], mask=mask, cache=cache) for a, b in [(0, 4), (4, 6), (6, 9)]]
        whole = net(ids, mask=mask)
        assert_close(torch.cat(pieces, dim=1), whole, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(whole, net(ids), atol=1e-3)


@pytest.mark.parametrize("name", TWO_PARTS)
def test_decoding_with_a_cache_equals_decoding_at_once(name):
    net, _ = network(name)
    draw = torch.Generator().manual_seed(0)
    ids, answer = (torch.randint(30, (2, n), generator=draw) for n in (6, 7))
    memory, cache = net.encode(ids), net.cache(2, 9)
    pieces = [net.decode(answer[:, a:b], memory, cache=cache) for a, b in [(0, 1), (1, 2), (2, 7)]]
    assert_close(torch.cat(pieces, dim=1), net.decode(answer, memory), atol=1e-5, rtol=1e-5)


def test_a_cache_that_is_full_says_so():
    net, _ = network("gpt")
    cache = net.cache(1, 3)
    net(torch.tensor([[1, 2]]), cache=cache)
    with pytest.raises(InvalidData, match="room for 4 tokens; got length=3"):
        net(torch.tensor([[1, 2]]), cache=cache)


def test_a_decode_step_has_the_same_shapes_every_time():
    net, _ = network("gpt")
    cache = net.cache(1, 8)
    net(torch.tensor([[1, 2]]), cache=cache)
    shapes = []
    for _ in range(3):
        cache.begin(1)
        shapes.append((cache.mask.shape, cache.keys_at.shape, cache.slots.shape))
        cache.advance()
    assert len(set(shapes)) == 1


# ---- batches ----


@pytest.mark.parametrize("name", [*ONE_PART, *TWO_PARTS])
def test_padding_changes_no_token(name):
    net, settings = network(name)
    together = generate(net, PROMPTS, tokens=10, **settings)
    alone = [generate(net, [prompt], tokens=10, **settings) for prompt in PROMPTS]
    assert together.equal(torch.cat(alone))
    anew = generate(net, PROMPTS, tokens=10, cached=False, **settings)
    assert together.equal(anew)


def test_a_tensor_padded_on_the_right_is_read_as_lists_are():
    net, _ = network("gpt")
    ids = torch.tensor([[5, 9, 2, 11, 7], [8, 3, 0, 0, 0], [1, 2, 3, 0, 0]])
    keep = torch.arange(5) < torch.tensor([[5], [2], [3]])
    found = generate(net, ids, keep=keep, tokens=8)
    assert found.equal(generate(net, PROMPTS, tokens=8))


# ---- choosing ----


def test_greedy_takes_the_best_and_sampling_follows_the_softmax():
    net = constant(0.0, 2.0, 1.0, -1.0)
    assert generate(net, [[0]], tokens=5).tolist() == [[1] * 5]
    drawn = generate(net, [[0]] * 400, tokens=20, temperature=1.0, random_state=0)
    share = drawn.flatten().bincount(minlength=4) / drawn.numel()
    assert_close(share, torch.tensor([0.0, 2.0, 1.0, -1.0]).softmax(0), atol=0.015, rtol=0)


def test_a_temperature_divides_the_scores():
    net = constant(0.0, 2.0)
    drawn = generate(net, [[0]] * 400, tokens=20, temperature=2.0, random_state=0)
    assert_close(
        drawn.float().mean().item(), torch.sigmoid(torch.tensor(1.0)).item(), atol=0.015, rtol=0
    )


def test_top_k_and_nucleus_draw_only_what_they_keep():
    net = constant(*torch.tensor([0.4, 0.3, 0.2, 0.1]).log().tolist())
    settings = {"tokens": 20, "temperature": 1.0, "random_state": 0}
    assert set(generate(net, [[0]] * 50, top_k=2, **settings).unique().tolist()) == {0, 1}
    assert set(generate(net, [[0]] * 50, top_p=0.75, **settings).unique().tolist()) == {0, 1, 2}
    assert set(generate(net, [[0]] * 50, top_p=1e-6, **settings).unique().tolist()) == {0}


def test_filters_equal_those_of_transformers():
    from transformers import TopKLogitsWarper, TopPLogitsWarper

    logits = torch.randn(20, 50, generator=torch.Generator().manual_seed(0)) * 3
    assert top(logits, 7).equal(TopKLogitsWarper(7)(None, logits))
    for p in (0.1, 0.5, 0.9, 0.999):
        assert nucleus(logits, p).equal(TopPLogitsWarper(p)(None, logits))


def test_one_seed_gives_one_text_and_leaves_the_global_generator_alone():
    net, _ = network("gpt")
    before = torch.get_rng_state()
    first, again, other = (
        generate(net, PROMPTS, tokens=10, temperature=1.0, random_state=seed) for seed in (1, 1, 2)
    )
    assert first.equal(again)
    assert not first.equal(other)
    assert torch.get_rng_state().equal(before)


def test_a_stop_token_ends_its_row_only():
    logits = torch.full((4, 4), -9.0)
    logits[[0, 1, 2, 3], [1, 2, 1, 3]] = 9.0  # 0 -> 1 -> 2 -> 1 …, 3 -> 3
    written = generate(Table(logits), [[0], [3]], tokens=6, stop=2, pad=0)
    assert written.tolist() == [[1, 2, 0, 0, 0, 0], [3] * 6]
    assert generate(Table(logits), [[0], [3]], tokens=3, stop=[2, 3]).tolist() == [
        [1, 2, 0],
        [3, 0, 0],
    ]


def test_a_penalty_lowers_what_occurred():
    assert generate(constant(1.0, 1.1, 0.5), [[1]], tokens=3, repetition_penalty=2.0).tolist() == [
        [0, 1, 1]
    ]


def test_the_network_is_left_in_its_mode():
    net = GPT(30, context=32, dropout=0.5, **SMALL).train()
    first, again = (generate(net, PROMPTS, tokens=10) for _ in range(2))
    assert first.equal(again)
    assert net.training


# ---- the context ----


def test_a_text_longer_than_the_context_is_an_error_or_slides():
    net = lively(GPT(30, context=8, **SMALL))
    prompt = torch.tensor([[5, 9, 2, 11, 7, 1]])
    with pytest.raises(InvalidData, match=r"context of 8; got 6 \+ 9.*3 tokens at most"):
        generate(net, prompt, tokens=9)
    assert generate(net, prompt, tokens=3).shape == (1, 3)
    text = prompt
    for _ in range(9):
        text = torch.cat([text, net(text[:, -8:])[:, -1].argmax(-1, keepdim=True)], dim=1)
    assert generate(net, prompt, tokens=9, slide=True).equal(text[:, 6:])


def test_sliding_texts_are_never_longer_than_the_context_and_follow_the_seed():
    net = lively(GPT(30, context=8, **SMALL))
    lengths = []
    plain = net.features
    net.features = lambda ids, **rest: lengths.append(ids.shape[1]) or plain(ids, **rest)
    first, again = (
        generate(net, [[1] * 12], tokens=9, slide=True, temperature=1.0, random_state=3)
        for _ in range(2)
    )
    assert max(lengths) == 8
    assert first.equal(again)


# ---- what cannot be done ----


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"top_p": 0.0}, r"`top_p` must be above 0 and at most 1; got 0.0.*temperature=0"),
        ({"top_p": 1.5}, r"`top_p` must be"),
        ({"top_k": 0}, r"`top_k` must be a whole number from 1, or None; got 0"),
        ({"temperature": -1.0}, r"`temperature` must be a number from 0; got -1.0"),
        ({"temperature": float("nan")}, r"`temperature` must be a number from 0; got nan"),
        ({"repetition_penalty": 0.0}, r"`repetition_penalty` must be above 0; got 0.0"),
        ({"tokens": 0}, r"`tokens` must be a whole number from 1; got 0"),
        ({"tokens": 2.5}, r"`tokens` must be a whole number from 1; got 2.5"),
        ({"temperature": "hot"}, r"`temperature` must be a number from 0; got 'hot'"),
        ({"top_k": 1.5}, r"`top_k` must be a whole number from 1, or None; got 1.5"),
        ({"top_p": None}, r"`top_p` must be above 0 and at most 1; got None"),
        ({"repetition_penalty": None}, r"`repetition_penalty` must be above 0; got None"),
    ],
)
def test_settings_out_of_range_are_named(settings, said):
    with pytest.raises(InvalidParameter, match=said):
        generate(constant(0.0, 1.0), [[0]], **settings)


@pytest.mark.parametrize("prompts", [[], [[]], [[1], []], torch.zeros(1, 0, dtype=torch.long)])
def test_an_empty_prompt_is_an_error(prompts):
    with pytest.raises(InvalidData, match="at least one token; got an empty one"):
        generate(constant(0.0, 1.0), prompts)


def test_a_row_of_padding_alone_is_an_error():
    with pytest.raises(InvalidData, match="at least one token"):
        generate(constant(0.0, 1.0), torch.ones(2, 2).long(), keep=torch.tensor([[1, 1], [0, 0]]))


def test_prompts_that_are_no_tokens_are_an_error():
    with pytest.raises(InvalidData, match=r"whole numbers \(B, P\).*\(3,\)"):
        generate(constant(0.0, 1.0), torch.ones(3))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_no_numbers_are_an_error(bad):
    net = Table([[0.0, 0.0, 0.0], [bad] * 3, [0.0, 0.0, 1.0]])
    with pytest.raises(InvalidData, match=r"NaN or infinity in row 1 \(1 of 2 rows\)"):
        generate(net, [[2], [1]], tokens=2, temperature=1.0, random_state=0)


def test_a_network_of_two_parts_needs_the_token_an_answer_begins_with():
    with pytest.raises(InvalidParameter, match="`start` must be the token an answer of T5"):
        generate(network("t5")[0], [[1]])


def test_a_picker_can_be_used_alone():
    assert Picker(top_k=1, temperature=1.0)(torch.tensor([[0.0, 5.0, 1.0]])).tolist() == [1]


# ---- beam search ----


def log_probabilities(net, prompt, texts, start=None):
    """The log-probability of each text, all computed at once: what follows an end says nothing."""
    longest = max(map(len, texts))
    ids = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
    before = torch.tensor([prompt] * len(texts))
    if start is None:
        logits = net(torch.cat([before, ids], dim=1))[:, len(prompt) - 1 : -1]
    else:
        first = torch.full((len(texts), 1), start)
        logits = net(before, torch.cat([first, ids[:, :-1]], dim=1))
    logs = logits.log_softmax(-1).gather(2, ids[..., None])[..., 0]
    return [row[: len(text)].sum().item() for row, text in zip(logs, texts, strict=True)]


def texts(vocabulary, longest, stop):
    """All texts that end with the stop token, or have the longest length."""
    for length in range(1, longest + 1):
        for text in itertools.product(range(vocabulary), repeat=length):
            if stop not in text[:-1] and (text[-1] == stop or length == longest):
                yield list(text)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("stop", [None, 2])
@pytest.mark.parametrize("name", ["gpt", "t5", "bart"])
def test_a_wide_beam_finds_what_exhaustive_search_finds(name, stop, penalty):
    sizes = {"dim": 8, "depth": 1, "heads": 2}
    net, start = {
        "gpt": lambda: (lively(GPT(4, context=9, **sizes)), None),
        "t5": lambda: (lively(T5(4, head_dim=4, hidden=8, **sizes)), 1),
        "bart": lambda: (lively(BART(4, context=9, **sizes)), 1),
    }[name]()
    prompts = [[1, 3], [0]]
    found = beam_search(
        net,
        prompts,
        tokens=4,
        beams=64,
        length_penalty=penalty,
        stop=() if stop is None else stop,
        start=start,
        pad=9,
    )
    for row, prompt in enumerate(prompts):
        every = list(texts(4, 4, stop))
        logs = log_probabilities(net, prompt, every, start)
        scores = {tuple(t): log / len(t) ** penalty for t, log in zip(every, logs, strict=True)}
        best = sorted(scores, key=scores.get, reverse=True)[:5]
        got = [tuple(t for t in text.tolist() if t != 9) for text in found.ids[row, :5]]
        assert got == best
        assert_close(
            found.scores[row, :5].tolist(), [scores[t] for t in best], atol=1e-4, rtol=1e-4
        )


@pytest.mark.parametrize("name", [*ONE_PART, *TWO_PARTS])
def test_one_beam_is_greedy(name):
    net, settings = network(name)
    found = beam_search(net, PROMPTS, tokens=8, beams=1, **settings).ids[:, 0]
    assert found.equal(generate(net, PROMPTS, tokens=8, **settings))


def test_two_beams_see_past_a_first_word_that_leads_nowhere():
    p = torch.tensor([[0.01, 0.59, 0.4], [0.33, 0.34, 0.33], [0.98, 0.01, 0.01]])
    net = Table(p.log())
    greedy, wide = (beam_search(net, [[0]], tokens=2, beams=k) for k in (1, 2))
    assert greedy.ids[0, 0].tolist() == [1, 1]
    assert wide.ids[0, 0].tolist() == [2, 0]
    assert_close(wide.scores[0, 0].exp().item(), 0.4 * 0.98)


def test_beam_search_refuses_what_it_cannot_do():
    with pytest.raises(InvalidParameter, match="`beams` and `tokens`.*got 0 and 20"):
        beam_search(constant(0.0, 1.0), [[0]], beams=0)
    with pytest.raises(InvalidParameter, match="`length_penalty` must be from 0; got -1"):
        beam_search(constant(0.0, 1.0), [[0]], length_penalty=-1)
    with pytest.raises(InvalidData, match="NaN or infinity"):
        beam_search(constant(float("nan"), 1.0), [[0]])


class Watching(TorchDispatchMode):
    """Notes every operation with its shapes; a word from the device to the host is an error."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        assert not any(word in name for word in ("local_scalar", "nonzero", "unique", "equal"))
        shapes = [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]
        self.seen.append((name, shapes))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("tokens", [1, 2, 3, 4, 5, 20])
@pytest.mark.parametrize("stop", [(), (7,)])
def test_recording_writes_as_many_tokens_in_the_same_order(monkeypatch, tokens, stop):
    monkeypatch.setattr("castalia.nets.language.decoding.decode_loop._aside", lambda step: step())
    monkeypatch.setattr(Loop, "_record", lambda self, act, cache: None)  # as where recording fails
    net, _ = network("gpt")
    with torch.no_grad():
        read = Reader(net, as_prompt(PROMPTS, None, torch.device("cpu")), None)
        cache = read.cache(tokens)
        loop = Loop(read, Picker(), room=tokens, stop=stop, cache=cache)
        loop.records = True
        assert loop.run(tokens).equal(generate(net, PROMPTS, tokens=tokens, stop=stop))


@pytest.mark.parametrize("name", ONE_PART)
@pytest.mark.parametrize("settings", [{}, {"repetition_penalty": 1.3}])
def test_a_loop_begins_again_with_other_prompts(name, settings):
    net, _ = network(name)
    others = [[3, 3], [2, 9, 4, 8, 8], [6, 1, 1]]
    with torch.no_grad():
        first, second = (
            Reader(net, as_prompt(p, None, torch.device("cpu")), None) for p in (PROMPTS, others)
        )
        loop = Loop(first, Picker(**settings), room=20, stop=(7,), cache=first.cache(20))
        for tokens, read, prompts in ((12, first, PROMPTS), (9, second, others)):
            loop.restart(read)
            plain = generate(net, prompts, tokens=tokens, stop=7, cached=False, **settings)
            assert loop.run(tokens).equal(plain)


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7, "top_k": 5, "top_p": 0.9}])
@pytest.mark.parametrize("name", [*ONE_PART, *TWO_PARTS])
def test_a_step_reads_nothing_back_and_is_the_same_every_time(name, settings):
    net, start = network(name)
    with torch.no_grad():
        read = Reader(net, as_prompt(PROMPTS, None, torch.device("cpu")), start.get("start"))
        loop = Loop(
            read,
            Picker(repetition_penalty=1.2, **settings),
            room=9,
            stop=(3, 4),
            cache=read.cache(9),
        )
        loop.take(read(read.first.ids, None, loop.cache))
        notes = []
        for _ in range(2):
            with Watching() as watching:
                loop.step()
            notes.append(watching.seen)
    assert notes[0] == notes[1]


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*ONE_PART, *TWO_PARTS])
def test_a_recorded_step_writes_what_eager_steps_write(name):
    net, settings = network(name)
    net = net.cuda()
    for more in ({}, {"repetition_penalty": 1.3, "stop": 7}):
        plain = generate(net, PROMPTS, tokens=20, cached=False, **settings, **more)
        assert generate(net, PROMPTS, tokens=20, **settings, **more).equal(plain)
    drawn = [
        generate(net, PROMPTS, tokens=20, temperature=1.0, random_state=seed, **settings)
        for seed in (0, 0, 1)
    ]
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(drawn[2])


@pytest.mark.gpu
def test_a_call_of_the_same_sizes_replays_what_the_last_one_recorded(monkeypatch):
    net, _ = network("gpt")
    net = net.cuda()
    others = [[3, 3], [2, 9, 4, 8, 8], [6, 1, 1]]
    plain = [generate(net, p, tokens=20, cached=False) for p in (PROMPTS, others)]
    assert generate(net, PROMPTS, tokens=20).equal(plain[0])
    record, recorded = Loop._record, []
    monkeypatch.setattr(Loop, "_record", lambda *args: recorded.append(1) or record(*args))
    assert generate(net, others, tokens=20).equal(plain[1])
    assert generate(net, PROMPTS, tokens=18).equal(plain[0][:, :18])
    with torch.no_grad():
        net.tokens.weight.mul_(-1)  # in place: the recording sees it
    assert generate(net, others, tokens=20).equal(generate(net, others, tokens=20, cached=False))
    assert len(recorded) == 1  # how prompts are read, the second time they were
    net.tokens.weight = nn.Parameter(-net.tokens.weight.detach())
    assert generate(net, others, tokens=20).equal(plain[1])
    assert len(recorded) == 2


@pytest.mark.gpu
def test_a_kept_recording_does_not_keep_its_network():
    net, _ = network("gpt")
    net = net.cuda()
    generate(net, PROMPTS, tokens=8)
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("penalty", [0.0, 0.6])
@pytest.mark.parametrize("kind, start", [("t5", 0), ("bart", 2)])
def test_beams_of_answers_are_those_of_transformers(tmp_path, kind, start, penalty):
    ids = torch.tensor([[5, 9, 2, 30, 11, 7], [8, 3, 3, 21, 12, 19]])
    depth = {"num_decoder_layers": 2} if kind == "t5" else {"decoder_layers": 2}
    for seed in range(3):
        model = peers.lively(getattr(peers, kind)(**depth), seed=seed)
        model.save_pretrained(tmp_path)
        given = {"decoder_start_token_id": start, "eos_token_id": 33, "pad_token_id": 0}
        given |= {"num_beams": 4, "do_sample": False, "length_penalty": penalty}
        found = model.generate(ids, max_new_tokens=10, forced_eos_token_id=None, **given)[:, 1:]
        search = {"tokens": 10, "beams": 4, "length_penalty": penalty, "stop": 33, "pad": 33}
        ours = beam_search(load_pretrained(tmp_path), ids, start=start, **search).ids[:, 0]
        assert ours[:, : found.shape[1]].equal(found)
