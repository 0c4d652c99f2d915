"""What the command has this package do: `sidestep compare --on`, `sidestep results`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import _native
from .errors import Error
from .results import results, save
from .sweeps import fill

if TYPE_CHECKING:
    import pyarrow

#: Exit codes as of the command.
FAILED = 1
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the arguments say; answers the exit code."""
    parser = argparse.ArgumentParser(prog="sidestep", description="What the command leaves to the Python package.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    filling = commands.add_parser("fill", help="compute points of a cache on a cluster; requests are JSON on stdin")
    filling.add_argument("--on", required=True, help="the scheduler's address")
    filling.add_argument("--cache", required=True, type=Path, help="the folder of finished points")
    filling.add_argument("--version", required=True, help="the version of the command that asks")
    filling.set_defaults(run=run_fill)

    asking = commands.add_parser("results", help="ask finished points")
    asking.add_argument("--from", dest="folders", action="append", type=Path, default=[], metavar="FOLDER")
    asking.add_argument("--sql", default="", help="a question of the table `points`")
    asking.add_argument("--diff", nargs=2, metavar=("OLD", "NEW"), help="what moved between two versions")
    asking.add_argument("--output", type=Path, help="where the answer goes: .parquet, .csv or .json")
    asking.set_defaults(run=run_results)

    given = parser.parse_args(arguments)
    try:
        given.run(given)
    except Error as error:
        print(f"sidestep: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def run_fill(given: argparse.Namespace) -> None:
    if given.version != _native.VERSION:
        here = f"the Python package is sidestep {_native.VERSION}"
        raise Error(f"{here}, and the command is {given.version}: build both of the same sources")
    fill(json.load(sys.stdin), given.cache, given.on)


def run_results(given: argparse.Namespace) -> None:
    found = results(*given.folders)
    for problem in found.problems:
        print(f"sidestep: {problem}", file=sys.stderr)
    asked = given.sql or "SELECT * FROM points"
    table = found.diff(*given.diff) if given.diff else found.sql(asked)
    if given.output:
        save(table, given.output)
    else:
        show(table)


def show(table: pyarrow.Table) -> None:
    """Prints a table: columns as wide as what is in them."""
    rows = [table.column_names] + [[plain(of) for of in row.values()] for row in table.to_pylist()]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def plain(of: object) -> str:
    """A cell of a table."""
    return "" if of is None else f"{of:.9g}" if isinstance(of, float) else str(of)


if __name__ == "__main__":
    sys.exit(main())
