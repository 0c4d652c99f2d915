"""Arrow tables, where pyarrow is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import needs

if TYPE_CHECKING:
    import pyarrow

__all__ = ["arrow", "from_parquet", "from_rows"]


def arrow() -> Any:
    """The library."""
    try:
        import pyarrow
    except ImportError as error:
        raise needs("pyarrow", "tables", "an Arrow table") from error
    return pyarrow


def from_parquet(content: bytes) -> pyarrow.Table:
    """The table that a Parquet file holds."""
    library = arrow()
    import pyarrow.parquet

    return pyarrow.parquet.read_table(library.BufferReader(content))


def from_rows(rows: list[dict[str, Any]], columns: dict[str, str]) -> pyarrow.Table:
    """A table of rows; `columns` has the type of each by Arrow's name, so that an empty table has them as well."""
    library = arrow()
    schema = library.schema([(name, library.type_for_alias(alias)) for name, alias in columns.items()])
    return library.Table.from_pylist(rows, schema=schema)
