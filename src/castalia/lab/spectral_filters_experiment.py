"""Filters of graph frequencies: by eigenvectors exactly, by polynomials without any.

Eigenvectors of L = I - D^-1/2 A D^-1/2 with small eigenvalues vary slowly over the graph, those
with large ones from node to node. A polynomial of degree K - 1 in L is a filter g(lambda) that
reaches K - 1 hops; one mix of a GCN is close to 1 - lambda, and k mixes to its power.
Reference: 2016, Defferrard, Bresson, Vandergheynst, arXiv 1606.09375.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.polynomial import chebyshev

from castalia.data import Graph
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.nn.graph import ChebyshevConv, fourier_basis
from castalia.utils.figure_style import COLOURS, INK, caption, log_scale, signed

__all__ = ["filtered", "pass_band", "run", "sensors"]

TERMS = (3, 6, 12)


def sensors(n: int = 160, seed: int = 0) -> tuple[Graph, np.ndarray]:
    """Return points of a square, each joined with its six nearest, and their places."""
    places = np.random.default_rng(seed).random((n, 2))
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    near = np.argsort(apart, axis=1)[:, 1:7]
    pairs = np.stack([np.repeat(np.arange(n), 6), near.ravel()], axis=1)
    return Graph(np.unique(np.sort(pairs, axis=1), axis=0), nodes=np.arange(n)), places


def pass_band(values: np.ndarray) -> np.ndarray:
    """Return a filter that lets slow signals through: 1 below 0.4, falling smoothly to 0."""
    return 1 / (1 + np.exp(12 * (values - 0.45)))


def polynomial(terms: int) -> np.ndarray:
    """Return the weights of Chebyshev polynomials that interpolate the filter, lambda = t + 1."""
    knots = chebyshev.chebpts1(terms)
    found: np.ndarray = chebyshev.chebfit(knots, pass_band(knots + 1), terms - 1)
    return found


def filtered(graph: Graph, x: np.ndarray, terms: int) -> np.ndarray:
    """Return x after the layer ChebyshevConv whose weights approximate the filter, (N, 1)."""
    layer = ChebyshevConv(1, 1, terms=terms).double()
    maps: Any = layer.maps
    with torch.no_grad():
        maps[0].bias.zero_()
        for linear, weight in zip(maps, polynomial(terms), strict=True):
            linear.weight.fill_(weight)
        found: np.ndarray = layer(torch.from_numpy(x), graph.adjacency).numpy()
    return found


def run(*, quick: bool = False) -> Outcome:
    """Draw slow and fast eigenvectors, responses of filters, and a noisy signal made clean."""
    graph, places = sensors(80 if quick else 160)
    basis = fourier_basis(graph.adjacency)
    values, vectors = basis.values.numpy(), basis.vectors.numpy()
    figure, axes = panels(4, (12.8, 3.4))
    for ax, number in zip(axes[:2], (2, len(graph) - 3), strict=True):
        ax.plot(*places[graph.edges].transpose(2, 1, 0), color=INK, lw=0.4, alpha=0.5)
        wave = vectors[:, number]
        shades = {"c": wave, "cmap": signed(), "vmin": -abs(wave).max(), "vmax": abs(wave).max()}
        ax.scatter(
            places[:, 0], places[:, 1], s=18, zorder=3, edgecolors=INK, linewidths=0.3, **shades
        )
        ax.set(xticks=[], yticks=[], title=f"eigenvalue {values[number]:.2f}")
        ax.grid(False)
    line, exact = np.linspace(0, 2, 200), pass_band(np.linspace(0, 2, 200))
    axes[2].plot(line, exact, color=INK, lw=2.5, alpha=0.5, label="wanted")
    clean = np.sin(3 * places[:, :1]) + np.cos(4 * places[:, 1:])
    noisy = clean + 0.8 * np.random.default_rng(1).normal(size=clean.shape)
    wanted = vectors @ (pass_band(values)[:, None] * (vectors.T @ noisy))
    numbers: dict[str, float] = {"largest eigenvalue": float(values[-1])}
    for terms, colour in zip(TERMS, COLOURS, strict=False):
        response = chebyshev.chebval(line - 1, polynomial(terms))
        axes[2].plot(line, response, color=colour, lw=1.3, label=f"{terms} terms")
        far = np.linalg.norm(filtered(graph, noisy, terms) - wanted) / np.linalg.norm(wanted)
        numbers[f"{terms} terms: distance from the exact filter"] = float(far)
    axes[2].set(xlabel="eigenvalue", ylabel="response", ylim=(-0.35, 1.25))
    caption(axes[2], 2)
    made = filtered(graph, noisy, TERMS[-1])
    mixed = graph.adjacency.normalised().dense().numpy()
    numbers |= {
        "error of the noisy signal": float(np.sqrt(np.mean((noisy - clean) ** 2))),
        "error after the filter": float(np.sqrt(np.mean((made - clean) ** 2))),
    }
    for name, signal, colour in (("noisy", noisy, COLOURS[1]), ("filtered", made, COLOURS[0])):
        power = np.abs(vectors.T @ signal).ravel()
        axes[3].plot(values, np.maximum(power, 1e-3), ".", ms=5, color=colour, label=name)
    slopes = np.polyfit(values, np.diag(vectors.T @ mixed @ vectors), 1)
    numbers["slope of one mix of a GCN"] = float(slopes[0])
    log_scale(axes[3])
    axes[3].set(xlabel="eigenvalue", ylabel="size of the coefficient")
    caption(axes[3], 2)
    gap = numbers["12 terms: distance from the exact filter"]
    before, after = numbers["error of the noisy signal"], numbers["error after the filter"]
    said = (
        f"Twelve terms come within {100 * gap:.1f} % of the filter by eigenvectors; noise falls "
        f"from {before:.2f} to {after:.2f}."
    )
    return Outcome(figure, numbers, said)
