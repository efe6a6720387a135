"""Networks on an encoder: what goes in, which token answers, what padding may not do."""

import torch
from torch.testing import assert_close

from castalia.nets.language import BERT, EncoderClassifier, EncoderSpans, EncoderTagger
from castalia.nets.language.heads import segments_of

PAD, BEGIN, END = 0, 1, 2
PAIR = torch.tensor([[BEGIN, 7, 8, END, 9, END, PAD, PAD]])


def encoder() -> BERT:
    torch.manual_seed(0)
    return BERT(20, context=16, dim=8, depth=2, heads=2).eval()


def test_the_input_is_the_sum_of_token_segment_and_position():
    net = encoder()
    segments = segments_of(PAIR, end=END, padding=PAD)
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1, 0, 0]]
    found = net.embed(PAIR[:, :6], segments[:, :6])
    for t in range(6):
        parts = net.tokens.weight[PAIR[0, t]], net.segments.weight[segments[0, t]]
        assert_close(found[0, t], parts[0] + parts[1] + net.positions.weight[t])


def test_the_class_comes_from_the_first_token_and_sees_both_texts():
    net = EncoderClassifier(encoder(), 3, end=END, padding=PAD).eval()
    h = net.features(PAIR)
    assert_close(net(PAIR), net.head(torch.tanh(net.encoder.pooler(h[:, 0]))))
    other = PAIR.clone()
    other[0, 4] = 11
    assert (net(other) - net(PAIR)).abs().max() > 1e-6


def test_the_class_may_come_from_the_mean_of_the_real_tokens():
    net = EncoderClassifier(encoder(), 3, end=END, padding=PAD, pool="mean").eval()
    real = net.features(PAIR)[0, PAIR[0] != PAD]
    assert_close(net(PAIR)[0], net.head(real.mean(dim=0)))


def test_padding_never_changes_a_head():
    for net, marks in (
        (EncoderClassifier(encoder(), 3, end=END, padding=PAD), 1),
        (EncoderClassifier(encoder(), 3, end=END, padding=PAD, pool="mean"), 1),
        (EncoderTagger(encoder(), 3, end=END, padding=PAD), 2),
        (EncoderSpans(encoder(), end=END, padding=PAD), 3),
    ):
        x = PAIR if marks == 1 else torch.stack([PAIR] + [(PAIR > 6).long()] * (marks - 1), dim=1)
        whole, cut = net.eval()(x), net(x[..., :6])
        assert_close(whole if marks == 1 else whole[:, :6], cut)


def test_an_encoder_without_segments_reads_pairs_too():
    torch.manual_seed(0)
    small = BERT(20, context=16, dim=8, depth=1, heads=2, segments=1, next_sentence=False)
    assert EncoderClassifier(small, 2, end=END, padding=PAD)(PAIR).shape == (1, 2)
