"""Computation graphs: boxes in topological order, passed through forwards and backwards.

fprop   v_i = f_i(v_parents(i))                              for i in topological order
bprop   adjoint_p = sum over children c of adjoint_c . dv_c/dv_p   in reverse order

Reference: 1986, Rumelhart, Hinton, Williams, Learning representations by back-propagating errors,
Nature 323.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from castalia.autodiff.functional_calls import differentiating
from castalia.autodiff.graphs.box import Box, boxes_in
from castalia.autodiff.graphs.box_values import add, any_nan, detached, leaf_of
from castalia.autodiff.graphs.graph_inputs import check_input, origin, scalar_end, seeds_of
from castalia.autodiff.graphs.readings import Readings
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["AnyGraph", "BoxGraph"]

AnyGraph = TypeVar("AnyGraph", bound="BoxGraph")


class BoxGraph:
    """The boxes of a ``Graph`` and its passes; what is made from a whole graph comes on top."""

    def __init__(
        self,
        boxes: Iterable[Box],
        outputs: Any,
        tensors: dict[Box, Tensor],
        *,
        arguments: tuple[Any, ...] | None = None,
        keywords: tuple[str, ...] = (),
        name: str = "f",
    ) -> None:
        self.order = _sorted(list(boxes))
        self.outputs, self.tensors, self.name = outputs, tensors, name
        self.keywords = keywords
        self.arguments = self.inputs if arguments is None else arguments
        self._by_name = {box.name: box for box in self.order}
        for box in self.order:
            box.children = []
        for box in self.order:
            for parent in box.parents:
                parent.children.append(box)
        self.values, self.adjoints = Readings(self, "value"), Readings(self, "adjoint")

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Every box, parents before children."""
        return self.order

    @property
    def inputs(self) -> tuple[Box, ...]:
        """The tensors that ``fprop`` takes."""
        return self._of_kind("input")

    @property
    def parameters(self) -> tuple[Box, ...]:
        """The parameters of the module, named as there."""
        return self._of_kind("parameter")

    @property
    def buffers(self) -> tuple[Box, ...]:
        """The buffers of the module, named as there."""
        return self._of_kind("buffer")

    @property
    def ends(self) -> tuple[Box, ...]:
        """The boxes that the function returns, flattened."""
        return tuple(boxes_in(self.outputs))

    def __getitem__(self, box: Box | str) -> Box:
        """Find a box by its name."""
        found = self._by_name.get(box.name if isinstance(box, Box) else box)
        if found is None or (isinstance(box, Box) and found is not box):
            name = box.name if isinstance(box, Box) else box
            near = did_you_mean(name, self._by_name)
            raise InvalidParameter(f"Graph: `box` must be one of this graph; got `{name}`.{near}")
        return found

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        operations = sum(not box.is_leaf for box in self.order)
        return (
            f"{type(self).__name__}({self.name}: {len(self.inputs)} inputs, "
            f"{len(self.parameters)} parameters, {operations} operations)"
        )

    def fprop(self, *inputs: Any, **keywords: Any) -> Any:
        """Evaluate every box once, in topological order, and return the outputs.

        Parameters
        ----------
        inputs
            What the function takes, in the shapes it was traced with; without any, the inputs of
            the last pass.
        keywords
            Those that were given by name when it was traced; they may also follow the others.
        """
        before = dict(self.tensors)
        inputs = (*inputs, *self._named(keywords))
        try:
            if inputs:
                self._bind(inputs)
            self.run()
        except InvalidData:  # inputs that do not fit leave the graph as it was
            if inputs:
                self.tensors.update(before)
                self.run()
            raise
        self._refuse_nan("Graph.fprop")
        return self._outputs()

    def bprop(self, seed: Any = None) -> dict[str, Tensor]:
        """Send adjoints back through the boxes, in reverse order, and return those of the leaves.

        Parameters
        ----------
        seed
            Adjoint of the output, of its shape; a scalar output needs none. A function with
            several outputs takes one for each, None for those that do not count.

        Returns
        -------
        dict
            Gradients by inputs and parameters, by name; leaves that the output does not depend on
            are left out.
        """
        if self.order and self.order[0].leaf is None:
            self.run()
        self._refuse_nan("Graph.bprop")
        values = {box: box.leaf for box in self.order}
        for box in self.order:
            box.adjoint = None
        for box, part in self._seeds(seed):
            box.adjoint = add(box.adjoint, part)
        for box in reversed(self.order):
            if box.adjoint is not None and not box.is_leaf:
                parts = box.pull(box.output, values, box.adjoint)
                for parent, part in zip(box.parents, parts, strict=True):
                    parent.adjoint = add(parent.adjoint, part)
        return {
            box.name: box.adjoint
            for box in (*self.inputs, *self.parameters)
            if isinstance(box.adjoint, Tensor)
        }

    def first_nan(self) -> Box | None:
        """Return the first box of the last forward pass whose value holds a NaN, or None."""
        written = (box for box in self.order if not box.operation.startswith("empty"))
        return next((box for box in written if any_nan(box.value)), None)

    # ---- inside ----

    @differentiating()
    def run(self) -> None:
        """Evaluate the boxes; each has then its value and what autograd pulls through."""
        values: dict[Box, Any] = {}
        for box in self.order:
            box.adjoint = None
            if box.is_leaf:
                tensor = self.tensors[box]
                box.leaf = leaf_of(tensor) if box.is_variable else tensor.detach()
                box.output = None
            else:
                box.leaf, box.output = box.run(values)
                box.describe()
            values[box] = box.leaf

    def _of_kind(self, kind: str) -> tuple[Box, ...]:
        return tuple(box for box in self.order if box.kind == kind)

    def _outputs(self) -> Any:
        return pytree.tree_map_only(Box, lambda box: detached(box.leaf), self.outputs)

    def _named(self, keywords: dict[str, Any]) -> list[Any]:
        """Return keyword arguments in the order of the traced call."""
        if keywords and set(keywords) != set(self.keywords):
            raise InvalidData(
                f"Graph.fprop: keyword arguments must be those of the traced call, "
                f"{listing(self.keywords, 'and') or 'none'}; got {listing(keywords, 'and')}."
            )
        return [keywords[name] for name in self.keywords if name in keywords]

    def _bind(self, inputs: Sequence[Any]) -> None:
        """Put the tensors of a call where the boxes of the inputs are."""
        wanted, structure = pytree.tree_flatten(tuple(self.arguments))
        given, got = pytree.tree_flatten(tuple(inputs))
        if got != structure:
            raise InvalidData(
                f"Graph.fprop: `inputs` must be as in the traced call, {len(self.arguments)} "
                f"arguments of the same structure; got {len(inputs)}. Trace again to change that."
            )
        for box, tensor in zip(wanted, given, strict=True):
            if isinstance(box, Box):
                check_input(box, tensor)
                self.tensors[box] = tensor
            elif box is not tensor and box != tensor:
                raise InvalidData(
                    f"Graph.fprop: arguments that are no tensors must be as traced, {box!r}; "
                    f"got {tensor!r}. Trace again with the new one."
                )

    def _seeds(self, seed: Any) -> list[tuple[Box, Tensor]]:
        if seed is None:
            end = scalar_end("Graph.bprop", self.ends)
            return [(end, torch.ones_like(end.leaf).detach())]
        return seeds_of("Graph.bprop", self.ends, seed)

    def _refuse_nan(self, owner: str) -> None:
        """Name the box where a NaN of the output comes from; values stay readable."""
        if not any(any_nan(box.leaf) for box in self.ends):
            return
        box = self.first_nan()
        if box is not None:
            raise InvalidData(f"{owner}: values must be numbers; got NaN, {origin(box)}.")


def _sorted(boxes: list[Box]) -> tuple[Box, ...]:
    """Topological order, the given one where it is valid already."""
    seen: set[Box] = set()
    valid = True
    for box in boxes:
        valid = valid and seen.issuperset(box.parents)
        seen.add(box)
    if valid:
        return tuple(boxes)
    try:
        return tuple(TopologicalSorter({box: box.parents for box in boxes}).static_order())
    except CycleError as error:
        cycle = " -> ".join(box.name for box in error.args[1])
        raise InvalidData(
            f"Graph: `boxes` must form a graph without cycles; got the cycle {cycle}."
        ) from None
