"""The columns of several files of one table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from castalia.errors import InvalidData

__all__ = ["joined_schema"]

ALIKE = "Make the files alike, or read them one by one."


def joined_schema(schemas: Sequence[pa.Schema], names: Sequence[str]) -> pa.Schema:
    """Return the columns of all files, each of the wider type; a file that does not fit is named.

    Parameters
    ----------
    schemas
        Columns of each file, in any order.
    names
        What messages call the files.

    Examples
    --------
    >>> one, other = pa.schema([("a", pa.int64())]), pa.schema([("a", pa.float64())])
    >>> joined_schema([one, other], ["1.csv", "2.csv"]).field("a").type
    DataType(double)
    """
    kinds = dict(zip(schemas[0].names, schemas[0].types, strict=True))
    for schema, path in zip(schemas[1:], names[1:], strict=True):
        odd = sorted(kinds.keys() ^ set(schema.names))
        if odd:
            has = "lacks" if odd[0] in kinds else "has"
            raise InvalidData(
                f"read: `{path}` must have the columns of `{names[0]}`; it {has} `{odd[0]}`. "
                f"{ALIKE}"
            )
        for field in schema:
            kinds[field.name] = _wider(kinds[field.name], field, path, names[0])
    return pa.schema(list(kinds.items()))


def _wider(one: pa.DataType, field: pa.Field, path: str, first: str) -> pa.DataType:
    """Return the type that holds the values of both, or say which file does not fit."""
    try:
        schemas = [pa.schema([(field.name, kind)]) for kind in (one, field.type)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException as error:
        raise InvalidData(
            f"read: column `{field.name}` of `{path}` must be {one} as in `{first}`; got "
            f"{field.type}. {ALIKE}"
        ) from error
