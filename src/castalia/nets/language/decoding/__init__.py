"""Text from a network: greedy, drawn, or by beam search."""

from castalia.nets.language.decoding.beam import Beams, beam_search
from castalia.nets.language.decoding.text_generation import generate
from castalia.nets.language.decoding.token_picker import Picker

__all__ = ["Beams", "Picker", "beam_search", "generate"]
