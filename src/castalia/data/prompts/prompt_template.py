"""Templates of prompts: an instruction, solved examples, and a query whose answer is left open.

Nothing is trained on the examples; they stand in the text that the model continues. References:
2019, Radford et al., Language models are unsupervised multitask learners; 2020, Brown et al.,
Language models are few-shot learners, arXiv 2005.14165.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import Any

from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing, shorten

__all__ = ["Prompt", "PromptTemplate"]


@dataclass(frozen=True)
class Prompt:
    """The beginning of a text, up to where the answer to its query belongs.

    Attributes
    ----------
    parts
        Instruction, where there is one, solved examples and query, each as it is written.
    shots
        How many solved examples there are.
    separator
        What stands between the parts.
    lead
        White space that the answer begins with. It belongs to the answer, since tokenizers read a
        word together with the space before it.
    tail
        What follows an answer.

    Examples
    --------
    >>> from castalia.data.prompts import TRANSLATE_LIST
    >>> prompt = TRANSLATE_LIST("cheese", examples=[("sea otter", "loutre de mer")])
    >>> print(prompt.text)
    sea otter = loutre de mer
    cheese =
    >>> prompt.shots, prompt.answered("fromage").splitlines()[1]
    (1, 'cheese = fromage')
    """

    parts: tuple[str, ...]
    shots: int = 0
    separator: str = "\n"
    lead: str = " "
    tail: str = ""

    @property
    def text(self) -> str:
        """What a model is given."""
        return self.separator.join(self.parts)

    def __str__(self) -> str:
        return self.text

    def answered(self, answer: str) -> str:
        """Return the whole text with an answer, as a model is trained on it."""
        return f"{self.text}{self.lead}{answer}{self.tail}"

    @property
    def stop(self) -> str:
        """What an answer ends with: the tail, or else what separates the parts."""
        return self.tail or self.separator

    def read_answer(self, written: str) -> str:
        """Return the answer in what a model wrote behind the prompt."""
        written = written.removeprefix(self.lead)
        return (written.split(self.stop)[0] if self.stop else written).strip()


@dataclass(frozen=True)
class PromptTemplate:
    r"""How an example is written, and so how a query is: the same, without its answer.

    Calling it makes a ``Prompt``: zero-shot without examples, one-shot with one, few-shot with
    several.

    Parameters
    ----------
    pattern
        An example, with the names of its fields in braces; the last field is the answer.
    instruction
        What stands before everything, such as a description of the task; it may be empty.
    separator
        What stands between instruction, examples and query.

    Examples
    --------
    >>> plus = PromptTemplate("Q: {question}\nA: {answer}", separator="\n\n")
    >>> plus("What is 48 plus 76?").text
    'Q: What is 48 plus 76?\nA:'
    >>> plus.fields
    ('question', 'answer')
    """

    pattern: str
    instruction: str = ""
    separator: str = "\n"

    def __post_init__(self) -> None:
        if not self.fields or self.fields[-1] in self.fields[:-1]:
            raise InvalidParameter(
                "PromptTemplate: `pattern` must hold named fields, the last of which is the "
                f"answer and stands there once; got {self.pattern!r}. Write it as in "
                "'{english} = {french}'."
            )

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields in order; the last one is the answer."""
        try:
            found = [part for part in Formatter().parse(self.pattern) if part[1] is not None]
            plain = all(
                str(name).isidentifier() and not (how or as_) for _, name, how, as_ in found
            )
        except ValueError:
            plain = False
        if not plain:
            raise InvalidParameter(
                "PromptTemplate: braces of `pattern` must hold the name of a field and nothing "
                f"else; got {self.pattern!r}. Write a brace that is meant as {{{{ or }}}}."
            )
        return tuple(str(name) for _, name, _, _ in found)

    def __call__(
        self, query: Any, *, examples: Sequence[Any] = (), instruction: str | None = None
    ) -> Prompt:
        """Return the prompt of a query.

        Parameters
        ----------
        query
            All fields but the answer: a mapping, a sequence in the order of the pattern, or a
            string where there is one field.
        examples
            All fields of each solved example, as mappings or sequences.
        instruction
            Another one than the template's.
        """
        said = self.instruction if instruction is None else instruction
        solved = [self.example(example) for example in examples]
        before, _, after = self._cut
        asked = before.format(**self._values(query, self.fields[:-1]))
        text = asked.rstrip()
        return Prompt(
            parts=(*([said] if said else []), *solved, text),
            shots=len(solved),
            separator=self.separator,
            lead=asked[len(text) :],
            tail=after.format(),
        )

    def example(self, values: Any) -> str:
        """Return a solved example as it is written.

        Parameters
        ----------
        values
            All fields, as a mapping or a sequence in the order of the pattern.
        """
        return self.pattern.format(**self._values(values, self.fields))

    @property
    def _cut(self) -> tuple[str, str, str]:
        """The pattern before the answer, the answer's field, and what follows it."""
        return self.pattern.rpartition(f"{{{self.fields[-1]}}}")

    def _values(self, values: Any, names: tuple[str, ...]) -> dict[str, str]:
        """Return the values of some fields by name."""
        if isinstance(values, str) or not hasattr(values, "__len__"):
            values = (values,)
        if not isinstance(values, Mapping):
            if len(values) != len(dict.fromkeys(names)):
                raise InvalidData(
                    f"PromptTemplate: {self._kind(names)} must have the fields "
                    f"{listing(names, 'and')}; got {shorten(repr(values))}."
                )
            values = dict(zip(dict.fromkeys(names), values, strict=True))
        missing = [name for name in names if name not in values]
        if missing:
            raise InvalidData(
                f"PromptTemplate: {self._kind(names)} must have the field `{missing[0]}`; got "
                f"{shorten(repr(dict(values)))}.{did_you_mean(missing[0], list(values))}"
            )
        return {name: str(values[name]) for name in names}

    def _kind(self, names: tuple[str, ...]) -> str:
        return "an example" if names == self.fields else "a query"
