"""What an experiment gives back, and how one is found by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENTS", "Outcome", "run"]

# In the order of the course.
EXPERIMENTS: dict[str, str] = {
    "perceptron-convergence": "Each mistake turns the line until there are none; on XOR there are",
    "novikoff": "From zero weights, a perceptron makes at most R²/γ² corrections",
    "noise-cancelling": "A filter learns the path of a noise and leaves the signal alone",
    "xor": "No straight line computes exclusive or; two hidden units do",
    "gradient-descent": "Too small a step crawls, too large a one diverges: the limit is 2 / L",
    "ill-conditioned-momentum": "Momentum walks along the valley where plain descent zigzags",
    "polynomial-overfitting": "Degree 9 goes through ten points and is wrong between them",
    "bias-variance": "A large penalty makes fits alike and wrong, a small one each different",
    "double-descent": "The test error peaks where the rows are just fitted, then falls again",
    "l1-l2-geometry": "The diamond touches a line on an axis, the circle beside it",
    "early-stopping": "The weights to keep are those of the lowest validation loss",
    "dropout-ensemble": "Halved weights are the geometric mean over all masks of dropout",
    "adversarial-examples": "Small steps along the gradient undo a classifier, random ones do not",
    "vanishing-by-activation": "Sigmoids leave the first layers without gradient; ReLU does not",
    "long-memory": "An LSTM adds and counts over many steps; an Elman network forgets",
    "lstm-ablation": "Of all parts of an LSTM the forget gate is missed most",
    "rtrl-cost": "Gradients carried forward in time are exact, and cost the fourth power",
    "hidden-states": "With time, modes that noise hides can be separated, and BIC counts them",
    "kalman": "A filter knows what it does not see, and a smoother knows it better",
    "echo-state": "A random network forgets where it began, below radius one",
    "receptive-field": "What a stack of convolutions can see, and the smaller part that counts",
    "bpe-merges": "Neighbours that often stand together become one symbol, again and again",
    "loss-landscape": "With shortcuts a deep network ends far lower in the landscape of its loss",
    "conv-features": "The first filters of a trained network are edges, random ones are not",
    "sliding-window": "A classifier as a convolution looks everywhere in a larger image",
    "style-transfer": "Pixels are changed until a network sees one content and another's style",
    "text-transfer": "What pretraining on texts owes to objective, network, mixture and compute",
    "encoder-bottleneck": "One vector cannot hold a long sentence; attention looks where it must",
    "word-analogies": "Paris - France + Italy is Rome: sums of vectors that predict neighbours",
    "in-context": "Examples in the prompt teach a large enough model, and no weight changes",
    "positional-encoding": "A shift turns sinusoidal codes; only what knows distances goes on",
    "attention-map": "Heads of a transformer find the letter they write next, by place or by order",
    "char-generation": "Counts and networks write Shakespeare letter by letter, cool and hot",
    "graph-receptive-field": "After k layers a node sees k hops, and near nodes count most",
    "oversmoothing": "Mixed often enough, all nodes of a graph become the same",
    "spectral-filters": "Polynomials of the Laplacian are filters of a graph's frequencies",
    "weisfeiler-lehman": "What colours of neighbourhoods cannot tell apart, no such network can",
    "explaining-away": "An alarm suggests a burglary, until an earthquake explains the alarm",
    "ising": "Neighbouring pixels agree: noise disappears, and gaps are filled in",
    "importance-sampling": "Draws from where it matters, weighted, beat draws from everywhere",
    "gibbs-mixing": "The more neighbours agree, the longer a chain takes to forget its start",
    "rbm-filters": "Hidden units of a Boltzmann machine become strokes, and draw new digits",
    "linear-ae-is-pca": "Gradients on a linear autoencoder find the space of principal components",
    "dae-field": "What a denoising autoencoder takes away points back to where the data are",
    "vae-latent": "Two numbers for a digit: neighbours in the code are neighbours in shape",
    "draw-attention": "An image is painted step by step, through a window that moves",
    "gan-game": "Forger and judge take turns until the judge can only guess",
    "diffusion-steps": "Noise is taken out step by step, and what is left looks like data",
    "gp-prior-posterior": "Points cut away functions; the evidence chooses how smooth they are",
    "active-learning": "Labels asked for where two classes are close teach more than others",
    "label-noise": "Wrong labels cost less where the law of the mistakes is in the loss",
    "drift": "A kernel sees what no single column shows; a stream is cut where it jumps",
    "maml-sine": "From a learnt start, one step on five points finds one sine among all",
    "distillation": "A student learns more from a teacher's doubts than from careless labels",
    "forgetting": "Digits learnt two at a time are forgotten two at a time, unless some are kept",
    "grid-world": "Trying and remembering comes near what Bellman's equation gives",
}


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    figure
        The image.
    numbers
        What the image shows, in numbers; the tests hold them.
    said
        One sentence.
    """

    figure: Figure
    numbers: Mapping[str, float]
    said: str


def run(name: str, *, quick: bool = False) -> Outcome:
    """Run an experiment.

    Examples
    --------
    >>> run("xor", quick=True).numbers["linear accuracy"]
    0.75
    """
    if name not in EXPERIMENTS:
        raise InvalidParameter(
            f"lab: the experiment must be {listing(EXPERIMENTS)}; got "
            f"{name!r}.{did_you_mean(name, EXPERIMENTS)}"
        )
    return import_module(f"castalia.lab.{name.replace('-', '_')}_experiment").run(quick=quick)
