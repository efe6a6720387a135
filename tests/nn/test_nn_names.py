"""The names that `castalia.nn` promises."""

import pytest

import castalia.nn

PROMISED = """
Sign Step Identity Sigmoid Tanh ReLU LeakyReLU PReLU ELU Swish Softplus Maxout Softmax
LocallyConnected1d LocallyConnected2d SeparableConv1d SeparableConv2d Unpool2d GlobalPool Residual
MultistepResidual ODEBlock HierarchicalSoftmax NegativeSampling Embedding
Dropout OriginalDropout MonteCarloDropout
ElmanCell JordanCell OutputRecurrentCell LSTMCell GRUCell LeakyIntegratorCell Recurrent
AdditiveAttention MultiplicativeAttention DotProductAttention MultiHeadAttention
causal prefix padding local strided block
SinusoidalPositions LearnedPositions RelativeBias Rotary
TransformerEncoderBlock TransformerDecoderBlock init summary dense_to_conv
"""


@pytest.mark.parametrize("name", PROMISED.split())
def test_a_promised_name_is_exported(name):
    assert callable(getattr(castalia.nn, name))
    assert name in castalia.nn.__all__
