"""The computation graph that ``trace`` gives: boxes with passes, and what is made of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from castalia.autodiff.graphs.box_graph import BoxGraph
from castalia.autodiff.graphs.code import code
from castalia.autodiff.graphs.cost import Cost, cost
from castalia.autodiff.graphs.draw import draw, html_of
from castalia.autodiff.graphs.gradient import gradient
from castalia.autodiff.graphs.simplify import simplify

__all__ = ["Graph"]


class Graph(BoxGraph):
    """A function as boxes that one can run forwards and backwards, read and differentiate.

    Made by ``trace``; the constructor is for graphs put together by hand.

    Parameters
    ----------
    boxes
        The nodes, in any order; an order in which parents come first is found.
    outputs
        What the function returns: a box, or a nested tuple, list or dict of boxes.
    tensors
        The tensor of every leaf. Those of parameters are read again at each pass, so a training
        step is seen; those of inputs are the default of ``fprop``.
    arguments
        How the function was called: its arguments with boxes in the place of tensors.
    keywords
        The names of the last arguments, where they were given by name.
    name
        Name of the function, for ``code``.

    Attributes
    ----------
    boxes, order
        The boxes, parents before children.
    values, adjoints
        What the last passes left, by box or by name.
    inputs, parameters, buffers
        The leaves of each kind, in order.

    Examples
    --------
    >>> import torch
    >>> from castalia.autodiff import trace
    >>> graph = trace(lambda t: t**2 * (3 * t + 1), torch.tensor(2.0))
    >>> graph.fprop(torch.tensor(2.0))
    tensor(28.)
    >>> graph.bprop()
    {'t': tensor(40.)}
    """

    def gradient(self, wrt: Any = 0, seed: Any = None) -> Graph:
        """Return the graph that computes the gradient; it may be differentiated again.

        Parameters
        ----------
        wrt
            By what: the number of an input, the name of any box, or a list of them.
        seed
            Adjoint of the output, as in ``bprop``; a scalar output needs none.

        Returns
        -------
        Graph
            Of the same inputs. Its output has the shape of ``wrt``; for a list, a tuple.

        Examples
        --------
        >>> import torch
        >>> from castalia.autodiff import trace
        >>> graph = trace(lambda x: x**5, torch.tensor(2.0))
        >>> graph.gradient().gradient().fprop(torch.tensor(2.0))  # 20 x^3
        tensor(160.)
        """
        return gradient(self, wrt, seed)

    def simplify(self) -> Graph:
        """Return an equal graph with fewer boxes.

        Equal operations become one, what the output does not need goes, and so do products with
        one, sums with zero, double transposes, views of views and the like.
        """
        return simplify(self)

    def code(self) -> str:
        """Return the graph as Python one can read, and run.

        Examples
        --------
        >>> import torch
        >>> from castalia.autodiff import trace
        >>> graph = trace(lambda x: x**5, torch.tensor(2.0)).gradient().gradient().simplify()
        >>> print(graph.code())
        import torch
        <BLANKLINE>
        <BLANKLINE>
        def f(x):
            pow_1 = x ** 3.0
            d_x_1 = pow_1 * 20.0
            return d_x_1
        <BLANKLINE>
        """
        return code(self)

    def cost(self) -> Cost:
        """Return FLOPs, bytes, memory and growth class of every box, and the totals.

        Examples
        --------
        >>> import torch
        >>> from castalia.autodiff import trace
        >>> graph = trace(torch.mm, torch.ones(2, 3), torch.ones(3, 4))
        >>> cost = graph.cost().boxes[0]
        >>> cost.multiplications, cost.growth
        (24, 'O(N D M)')
        """
        return cost(self)

    def draw(self, path: str | os.PathLike[str], fold: bool | None = None) -> Path:
        """Write an image: values on the edges that go down, adjoints on those that come back.

        Boxes are coloured by the size of their adjoint after ``bprop``, so that a gradient which
        vanishes or explodes is seen at a glance.

        Parameters
        ----------
        path
            Where to; ends in ``.svg``, ``.png`` or ``.pdf``.
        fold
            Draw the boxes of a layer, and of each step of a loop, as one; None does so for graphs
            of more than 14 operations.

        Returns
        -------
        Path
            The file.
        """
        return draw(self, path, fold)

    def _repr_html_(self) -> str:
        """Show the image in a notebook."""
        return html_of(self)
